//! The places of a document's code that may hold evidence.
//!
//! Between comments, literals and directives a word is an identifier if it begins with no digit and nothing odd is
//! beside it, and most words and punctuators are in no rule. So the lexer runs only where a filter says that evidence
//! may begin, and from each comment, literal, splice and directive on until plain code goes on. Everything it must know
//! there is whether its line has had a token, as only then a `#` begins no directive.

use super::beginnings::{Beginnings, is_space, needs_lexer};
use crate::blocks::{Classes, Starts};
use crate::lexer::Lexer;

/// What may hold evidence.
pub(super) enum Place<'a> {
    /// The identifier between these positions, and nothing else.
    Identifier(usize, usize),
    /// The lexer must run up to this position at least, and then while what it found may go on.
    Tokens(Lexer<'a>, usize),
}

/// Moves along a document.
pub(super) struct Code<'a> {
    source: &'a [u8],
    classes: &'a Classes,
    beginnings: &'a Beginnings,
    starts: Starts<'a>,
    /// Where the last token ends that the lexer has seen: all before is done.
    settled: usize,
    /// The line of `settled` has had no token before it.
    begins_line: bool,
}

impl<'a> Code<'a> {
    /// Begins with a `source` whose bytes have these classes.
    pub(super) fn new(source: &'a [u8], classes: &'a Classes, beginnings: &'a Beginnings) -> Self {
        Self { source, classes, beginnings, starts: classes.starts(), settled: 0, begins_line: true }
    }

    /// Goes on where `lexer` has come to, which is in no directive.
    pub(super) fn go_on_after(&mut self, lexer: &Lexer<'_>) {
        (self.settled, self.begins_line) = (lexer.position(), lexer.begins_line());
        self.starts.skip_to(self.settled);
    }

    /// The lexer from `at` on, where a token begins.
    pub(super) fn lexer_at(&self, at: usize) -> Lexer<'a> {
        if self.begins_line(at) { Lexer::at_line_start(self.source, at) } else { Lexer::within_line(self.source, at) }
    }

    /// Whether there is no token between the beginning of the line and `at`.
    fn begins_line(&self, at: usize) -> bool {
        let before = self.source[self.settled..at].iter().rev();
        match before.copied().find(|byte| !matches!(byte, b' ' | b'\t' | 0x0b | 0x0c)) {
            Some(byte) => matches!(byte, b'\n' | b'\r'),
            None => self.begins_line,
        }
    }

    /// The lexer from the last position before `at` on where, whatever the text is, a token begins.
    fn lexer_before(&self, at: usize) -> Lexer<'a> {
        let before = &self.source[self.settled..at];
        self.lexer_at(self.settled + before.iter().rposition(|&byte| ends_token(byte)).map_or(0, |last| last + 1))
    }

    /// Whether the identifier at `start..end` may be part of a number, of a literal, or of a longer identifier.
    fn is_odd(&self, start: usize, end: usize) -> bool {
        let before = self.source[self.settled..start].last();
        before.is_some_and(|byte| matches!(byte, b'.' | b'+' | b'-'))
            || self.source.get(end).is_some_and(|&byte| needs_lexer(byte))
    }

    fn word(&self, start: usize) -> Option<Place<'a>> {
        let end = self.classes.word_end(start);
        if self.source[start].is_ascii_digit() {
            return Some(Place::Tokens(self.lexer_before(start), start));
        }
        if !self.beginnings.may_have_word(self.source, start, end) {
            return None;
        }
        Some(if self.is_odd(start, end) {
            Place::Tokens(self.lexer_before(start), start)
        } else {
            Place::Identifier(start, end)
        })
    }

    fn mark(&self, at: usize) -> Option<Place<'a>> {
        let byte = self.source[at];
        let looks = needs_lexer(byte) || matches!(byte, b'/' | b'%') || self.beginnings.may_have_mark(self.source, at);
        looks.then(|| Place::Tokens(self.lexer_before(at), at))
    }
}

impl<'a> Iterator for Code<'a> {
    type Item = Place<'a>;

    #[inline]
    fn next(&mut self) -> Option<Place<'a>> {
        loop {
            let at = self.starts.next()?;
            if !self.beginnings.may_begin(&self.source[at..]) {
                continue;
            }
            let byte = self.source[at];
            let place = if byte.is_ascii_alphanumeric() || byte == b'_' { self.word(at) } else { self.mark(at) };
            if place.is_some() {
                return place;
            }
        }
    }
}

/// Whether a token always begins behind this byte where there is plain code.
fn ends_token(byte: u8) -> bool {
    is_space(byte) || matches!(byte, b'(' | b')' | b'{' | b'}' | b'[' | b']' | b';' | b',' | b'?' | b'~')
}
