//! Where each form of token ends: pure functions from a source and a position to a [`Span`].

use super::bytes::{IDENTIFIER, NUMBER, SPACE, begins_identifier, has_at, run_end};
use super::splice::{newline_end, peek, skip, skip_back, splice_end, unspliced};

/// Where a token ends and whether there is a line splice inside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) end: usize,
    pub(super) spliced: bool,
}

impl Span {
    pub(super) fn new(end: usize) -> Self {
        Self { end, spliced: false }
    }
}

/// Spaces, tabs, vertical tabs, form feeds and splices.
#[inline]
pub(super) fn whitespace(source: &[u8], start: usize) -> Span {
    let mut span = Span::new(run_end(source, start, SPACE));
    while let Some(end) = splice_end(source, span.end) {
        span = Span { end: run_end(source, end, SPACE), spliced: true };
    }
    span
}

/// The bytes that continue an identifier, from `start` on (which may be none of them).
#[inline]
pub(super) fn identifier(source: &[u8], start: usize) -> Span {
    let mut span = Span::new(run_end(source, start, IDENTIFIER));
    while source.get(span.end) == Some(&b'\\') {
        let next = skip(source, span.end);
        if next == span.end || !has_at(source, next, IDENTIFIER) {
            break;
        }
        span = Span { end: run_end(source, next, IDENTIFIER), spliced: true };
    }
    span
}

/// A preprocessing number: digits, identifier bytes, dots, signed exponents, and digit separators.
pub(super) fn number(source: &[u8], start: usize) -> Span {
    let mut span = Span::new(start);
    loop {
        span.end = run_end(source, span.end, NUMBER);
        let (byte, at) = peek(source, span.end);
        let continues = match byte {
            Some(b'+' | b'-') => ends_with_exponent(source, start, span.end),
            Some(b'\'') => peek(source, at + 1).0.is_some_and(|next| next.is_ascii_alphanumeric() || next == b'_'),
            Some(_) => has_at(source, at, NUMBER),
            None => false,
        };
        if !continues {
            return span;
        }
        span.spliced |= at != span.end;
        span.end = at + 1;
    }
}

fn ends_with_exponent(source: &[u8], start: usize, end: usize) -> bool {
    matches!(source[start..skip_back(source, start, end)].last(), Some(b'e' | b'E' | b'p' | b'P'))
}

/// A `//` comment up to the end of its logical line; `body` follows the second slash.
pub(super) fn line_comment(source: &[u8], body: usize) -> Span {
    let mut span = Span::new(body);
    for at in memchr::memchr2_iter(b'\n', b'\r', &source[body..]) {
        let at = body + at;
        if at < span.end {
            continue;
        }
        let Some(newline) = newline_end(source, at) else { continue };
        if skip_back(source, span.end, newline) == newline {
            return Span { end: at, ..span };
        }
        span = Span { end: newline, spliced: true };
    }
    Span { end: source.len(), ..span }
}

/// A `/*` comment with its end, or up to the end of the source; `body` follows the star.
pub(super) fn block_comment(source: &[u8], body: usize) -> Span {
    let closing = memchr::memchr_iter(b'/', &source[body..]).map(|at| body + at).find(|&slash| {
        let before = match source[slash - 1] {
            b'\n' | b'\r' => skip_back(source, body, slash),
            _ => slash,
        };
        before > body && source[before - 1] == b'*'
    });
    let end = closing.map_or(source.len(), |slash| slash + 1);
    Span { end, spliced: super::splice::any(&source[body..end]) }
}

/// A header name from its opening `<` or `"`; where its line ends, if that has no closing one.
pub(super) fn header_name(source: &[u8], start: usize) -> Result<Span, usize> {
    let closing = if source[start] == b'<' { b'>' } else { b'"' };
    let mut span = Span::new(start + 1);
    loop {
        match source.get(span.end) {
            Some(&byte) if byte == closing => return Ok(Span { end: span.end + 1, ..span }),
            Some(b'\n' | b'\r') | None => return Err(span.end),
            Some(b'\\') => match splice_end(source, span.end) {
                Some(end) => span = Span { end, spliced: true },
                None => span.end += 1,
            },
            _ => span.end += 1,
        }
    }
}

/// `span`, joined with the identifier that follows it if that is a suffix that `allowed` accepts.
pub(super) fn with_suffix(source: &[u8], span: Span, allowed: impl Fn(&[u8]) -> bool) -> Span {
    let at = skip(source, span.end);
    if !begins_identifier(source, at) {
        return span;
    }
    let suffix = identifier(source, at);
    if !allowed(&unspliced(&source[at..suffix.end], suffix.spliced)) {
        return span;
    }
    Span { end: suffix.end, spliced: span.spliced || suffix.spliced || at != span.end }
}
