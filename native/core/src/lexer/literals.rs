//! String, raw string and character literals, and the prefixes that make an identifier part of one.

use std::borrow::Cow;

use super::bytes::{DELIMITER, LITERAL_STOP, has};
use super::forms::{Span, with_suffix};
use super::kind::TokenKind;
use super::splice::{peek, splice_end, unspliced};

/// The longest delimiter that a raw string may have.
const MAX_DELIMITER_BYTES: usize = 16;

/// The literal that the identifier `prefix` begins when the quote at `quote` follows it, if it is a literal's prefix.
pub(super) fn prefixed(source: &[u8], prefix: &[u8], quote: usize) -> Option<(TokenKind, Span)> {
    let (encoding, raw) = match prefix.strip_suffix(b"R") {
        Some(encoding) => (encoding, true),
        None => (prefix, false),
    };
    if !matches!(encoding, b"" | b"u8" | b"u" | b"U" | b"L") {
        return None;
    }
    match source[quote] {
        b'"' if raw => Some(raw_string(source, quote)),
        b'"' => Some((TokenKind::String, string(source, quote))),
        b'\'' if !raw => Some((TokenKind::Char, character(source, quote))),
        _ => None,
    }
}

/// A string literal from its opening quote; without a closing one it ends before the line ending.
pub(super) fn string(source: &[u8], quote: usize) -> Span {
    match quoted(source, quote) {
        (span, true) => with_suffix(source, span, is_string_suffix),
        (span, false) => span,
    }
}

/// A character literal from its opening quote; without a closing one it ends before the line ending.
pub(super) fn character(source: &[u8], quote: usize) -> Span {
    match quoted(source, quote) {
        (span, true) => with_suffix(source, span, is_user_suffix),
        (span, false) => span,
    }
}

/// From the opening quote past the same quote, and whether it was there.
fn quoted(source: &[u8], quote: usize) -> (Span, bool) {
    let closing = source[quote];
    let mut span = Span::new(quote + 1);
    loop {
        while source.get(span.end).is_some_and(|&byte| !has(byte, LITERAL_STOP)) {
            span.end += 1;
        }
        match source.get(span.end) {
            None | Some(b'\n' | b'\r') => return (span, false),
            Some(&byte) if byte == closing => return (Span { end: span.end + 1, ..span }, true),
            Some(b'\\') => span = escape(source, span),
            Some(_) => span.end += 1,
        }
    }
}

/// Past the splice or the escaped byte at the backslash where `span` ends.
fn escape(source: &[u8], span: Span) -> Span {
    if let Some(end) = splice_end(source, span.end) {
        return Span { end, spliced: true };
    }
    let (byte, at) = peek(source, span.end + 1);
    let length = usize::from(byte.is_some_and(|byte| !matches!(byte, b'\n' | b'\r')));
    Span { end: at + length, spliced: span.spliced || at != span.end + 1 }
}

/// A raw string from its opening quote, up to the end of the source if it is not closed. Where no valid delimiter and
/// parenthesis follow the quote it is an ordinary string.
fn raw_string(source: &[u8], quote: usize) -> (TokenKind, Span) {
    let Some(delimiter) = raw_delimiter(&source[quote + 1..]) else {
        return (TokenKind::String, string(source, quote));
    };
    let open = quote + 1 + delimiter.len();
    let closing = [b")", delimiter, b"\""].concat();
    let span = match memchr::memmem::find(&source[open..], &closing) {
        Some(at) => with_suffix(source, Span::new(open + at + closing.len()), is_string_suffix),
        None => Span::new(source.len()),
    };
    (TokenKind::RawString, span)
}

/// The delimiter that `text` begins with, if it is a valid one and a parenthesis follows. It may hold quotes.
fn raw_delimiter(text: &[u8]) -> Option<&[u8]> {
    let text = &text[..text.len().min(MAX_DELIMITER_BYTES + 1)];
    let length = text.iter().position(|&byte| !has(byte, DELIMITER))?;
    (text[length] == b'(').then_some(&text[..length])
}

/// Suffixes that people may define: `_km`. Others are separate tokens for GCC and Clang, as in `"%"PRId64`.
fn is_user_suffix(suffix: &[u8]) -> bool {
    suffix.first().is_some_and(|&byte| byte == b'_' || byte >= 0x80)
}

/// Suffixes of string literals: people's, and the standard library's (also in `operator""min`).
fn is_string_suffix(suffix: &[u8]) -> bool {
    const STANDARD: [&[u8]; 12] = [b"s", b"sv", b"h", b"min", b"ms", b"us", b"ns", b"d", b"y", b"i", b"il", b"if"];
    is_user_suffix(suffix) || STANDARD.contains(&suffix)
}

/// The text of a raw string literal without the splices of its prefix and suffix; those between its quotes are content.
pub(super) fn unspliced_raw(text: &[u8]) -> Cow<'_, [u8]> {
    let open = memchr::memchr(b'"', text).unwrap_or(0);
    let close = memchr::memrchr(b'"', text).map_or(text.len(), |at| at + 1);
    let (prefix, body, suffix) = (&text[..open], &text[open..close], &text[close..]);
    Cow::Owned([&unspliced(prefix, true), body, &unspliced(suffix, true)].concat())
}
