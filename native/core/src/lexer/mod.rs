//! A C++ lexer over raw bytes.
//!
//! [`Lexer`] cuts any byte string into preprocessing tokens, comments, spaces and line endings whose ranges tile the
//! input exactly: nothing is skipped, nothing is an error. It follows phases 2 and 3 of [lex.phases] as GCC and Clang
//! implement them: line splices may be anywhere but in raw strings, a backslash may be separated from its line
//! ending by spaces, an unterminated string or character literal ends before the line ending, and an unterminated block
//! comment or raw string takes the rest of the input. A lone `\r` ends a line.
//!
//! What it does not do: trigraphs, universal character names in identifiers (`\u00e9` is `Other` and an identifier),
//! macro expansion, conditionals, header names after the `import` of a module, or checks of any kind. Bytes from 0x80
//! on and `$` belong to identifiers. `<<<` and `>>>` are one punctuator each, as CUDA has them.

mod bytes;
mod forms;
mod kind;
mod literals;
mod punctuators;
mod splice;
mod table;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use bytes::{FIRST, First};
use forms::Span;
pub use kind::TokenKind;
pub use table::token_table;

/// One token: its kind and its byte range in the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// Where its first byte is.
    pub start: usize,
    /// Where the byte after its last one is.
    pub end: usize,
    /// It is between a directive's `#` (included) and the end of that logical line (not included).
    pub in_directive: bool,
    /// There is a line splice inside it.
    pub spliced: bool,
}

impl Token {
    /// The bytes of the token, without line splices.
    ///
    /// # Panics
    ///
    /// If `source` is shorter than the one that the token comes from.
    #[inline]
    pub fn text<'a>(&self, source: &'a [u8]) -> Cow<'a, [u8]> {
        let bytes = &source[self.start..self.end];
        if self.spliced && self.kind == TokenKind::RawString {
            return literals::unspliced_raw(bytes);
        }
        splice::unspliced(bytes, self.spliced)
    }
}

/// Whether `byte` continues an identifier.
#[inline]
pub(crate) fn continues_identifier(byte: u8) -> bool {
    bytes::has(byte, bytes::IDENTIFIER)
}

/// How far the current logical line has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Line {
    /// Only spaces and comments so far: `#` begins a directive.
    Start,
    /// A token that begins no directive came first.
    Text,
    /// In a directive whose name comes next.
    DirectiveName,
    /// In a directive, where a header name comes next.
    Header,
    /// In a directive after `__has_include`: a header name follows if `(` comes next.
    HeaderParenthesis,
    /// In a directive, anywhere else.
    Directive,
}

/// Iterates over the tokens of a byte string.
///
/// ```
/// use cppmill_core::lexer::{Lexer, TokenKind};
///
/// let source = b"#include <vector> // why";
/// let kinds: Vec<_> = Lexer::new(source).filter(|t| t.kind != TokenKind::Whitespace).map(|t| t.kind).collect();
/// use TokenKind::*;
/// assert_eq!(kinds, [Punctuator, Identifier, HeaderName, LineComment]);
/// ```
#[derive(Clone)]
pub struct Lexer<'a> {
    source: &'a [u8],
    at: usize,
    line: Line,
    /// Up to here no header name that begins with `<` ends.
    unclosed: usize,
}

impl<'a> Lexer<'a> {
    /// Starts at the beginning of `source`.
    pub fn new(source: &'a [u8]) -> Self {
        Self { source, at: 0, line: Line::Start, unclosed: 0 }
    }

    /// Starts at `at`, where a token begins, in a line that had tokens before.
    pub(crate) fn within_line(source: &'a [u8], at: usize) -> Self {
        Self { source, at, line: Line::Text, unclosed: 0 }
    }

    /// Starts at `at`, where a token begins, in a line that had none before.
    pub(crate) fn at_line_start(source: &'a [u8], at: usize) -> Self {
        Self { source, at, line: Line::Start, unclosed: 0 }
    }

    /// Where the next token begins.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    /// Whether the current line has had no token but spaces and comments, so that a `#` would begin a directive.
    pub(crate) fn begins_line(&self) -> bool {
        self.line == Line::Start
    }

    /// The kind of the token at the current position, which begins with `first`, and where it ends.
    #[inline]
    fn form(&mut self, first: u8) -> (TokenKind, Span) {
        let (source, start) = (self.source, self.at);
        match FIRST[first as usize] {
            First::Identifier => self.identifier_or_literal(),
            First::Space => (TokenKind::Whitespace, forms::whitespace(source, start)),
            First::Single => (TokenKind::Punctuator, Span::new(start + 1)),
            First::Newline => {
                let end = splice::newline_end(source, start).unwrap_or(start + 1);
                (TokenKind::Newline, Span::new(end))
            }
            First::Multiple | First::DoubleQuote if self.line == Line::Header && matches!(first, b'<' | b'"') => {
                if first == b'"' {
                    let string = |_| (TokenKind::String, literals::string(source, start));
                    return forms::header_name(source, start).map_or_else(string, |span| (TokenKind::HeaderName, span));
                }
                if start >= self.unclosed {
                    match forms::header_name(source, start) {
                        Ok(span) => return (TokenKind::HeaderName, span),
                        Err(end) => self.unclosed = end,
                    }
                }
                (TokenKind::Punctuator, punctuators::punctuator(source, start))
            }
            First::Multiple => (TokenKind::Punctuator, punctuators::punctuator(source, start)),
            First::Digit => (TokenKind::Number, forms::number(source, start)),
            First::DoubleQuote => (TokenKind::String, literals::string(source, start)),
            First::SingleQuote => (TokenKind::Char, literals::character(source, start)),
            First::Dot => self.dot(),
            First::Slash => self.slash(),
            First::Backslash => match forms::whitespace(source, start) {
                span if span.spliced => (TokenKind::Whitespace, span),
                _ => (TokenKind::Other, Span::new(start + 1)),
            },
            First::Other => (TokenKind::Other, Span::new(start + 1)),
        }
    }

    #[inline]
    fn identifier_or_literal(&self) -> (TokenKind, Span) {
        let (source, start) = (self.source, self.at);
        if start == 0 && source.starts_with(b"\xef\xbb\xbf") {
            return (TokenKind::Other, Span::new(3));
        }
        let span = forms::identifier(source, start);
        if matches!(source.get(span.end), Some(b'"' | b'\'' | b'\\')) && (span.spliced || span.end - start <= 3) {
            return self.prefixed_literal(span);
        }
        (TokenKind::Identifier, span)
    }

    /// The identifier at `span`, or the literal that it is the prefix of.
    #[cold]
    fn prefixed_literal(&self, span: Span) -> (TokenKind, Span) {
        let (source, start) = (self.source, self.at);
        let (byte, quote) = splice::peek(source, span.end);
        if !matches!(byte, Some(b'"' | b'\'')) {
            return (TokenKind::Identifier, span);
        }
        let prefix = splice::unspliced(&source[start..span.end], span.spliced);
        match literals::prefixed(source, &prefix, quote) {
            Some((kind, literal)) => {
                let spliced = literal.spliced || span.spliced || quote != span.end;
                (kind, Span { spliced, ..literal })
            }
            None => (TokenKind::Identifier, span),
        }
    }

    fn dot(&self) -> (TokenKind, Span) {
        match splice::peek(self.source, self.at + 1) {
            (Some(b'0'..=b'9'), _) => (TokenKind::Number, forms::number(self.source, self.at)),
            _ => (TokenKind::Punctuator, punctuators::punctuator(self.source, self.at)),
        }
    }

    fn slash(&self) -> (TokenKind, Span) {
        let (next, at) = splice::peek(self.source, self.at + 1);
        let (kind, span) = match next {
            Some(b'/') => (TokenKind::LineComment, forms::line_comment(self.source, at + 1)),
            Some(b'*') => (TokenKind::BlockComment, forms::block_comment(self.source, at + 1)),
            _ => return (TokenKind::Punctuator, punctuators::punctuator(self.source, self.at)),
        };
        (kind, Span { spliced: span.spliced || at != self.at + 1, ..span })
    }

    /// The state of the line after `token`.
    #[inline]
    fn line_after(&self, kind: TokenKind, span: Span) -> Line {
        match (self.line, kind) {
            (_, TokenKind::Newline) => Line::Start,
            (Line::Text, _) => Line::Text,
            (line, TokenKind::Whitespace | TokenKind::LineComment | TokenKind::BlockComment) => line,
            (line, TokenKind::Other) if self.at == 0 && span.end == 3 => line,
            (line, _) => {
                line_after_token(line, kind, &splice::unspliced(&self.source[self.at..span.end], span.spliced))
            }
        }
    }
}

/// The state of a line after a token that is neither space, comment nor line ending.
fn line_after_token(line: Line, kind: TokenKind, text: &[u8]) -> Line {
    match (line, kind, text) {
        (Line::Start, TokenKind::Punctuator, b"#" | b"%:") => Line::DirectiveName,
        (Line::Start | Line::Text, ..) => Line::Text,
        (Line::DirectiveName, TokenKind::Identifier, b"include" | b"include_next" | b"import" | b"embed")
        | (Line::HeaderParenthesis, TokenKind::Punctuator, b"(") => Line::Header,
        (Line::Directive, TokenKind::Identifier, b"__has_include" | b"__has_include_next" | b"__has_embed") => {
            Line::HeaderParenthesis
        }
        _ => Line::Directive,
    }
}

impl Iterator for Lexer<'_> {
    type Item = Token;

    #[inline]
    fn next(&mut self) -> Option<Token> {
        let start = self.at;
        let &first = self.source.get(start)?;
        let (kind, Span { end, spliced }) = self.form(first);
        let line = self.line_after(kind, Span { end, spliced });
        let in_directive = !matches!(line, Line::Start | Line::Text);
        (self.at, self.line) = (end, line);
        Some(Token { kind, start, end, in_directive, spliced })
    }
}
