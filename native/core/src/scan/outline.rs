//! Where a document is plain code: found by looking only at the bytes that can begin or end something else.
//!
//! [`Outline::draw`] leaves to the lexer every comment, literal and directive, and skips what is between them. There,
//! an identifier is a word of the pattern, and one look at it is enough. A document in which that may be wrong (line
//! splices in code, `$` or other bytes than ASCII in identifiers, a `::` with a gap beside it) is *odd*: it must be
//! counted token by token.

use super::keywords::is_keyword;
use crate::blocks::Classes;
use crate::lexer::{Lexer, Token, TokenKind, continues_identifier};

/// A range that is not plain code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Region {
    pub(super) start: usize,
    pub(super) end: usize,
    /// What follows it, up to the next region, is in an `#if 0` group.
    pub(super) disabled: bool,
}

/// A token of a region.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) token: Token,
    /// It is in an `#if 0` group.
    pub(super) disabled: bool,
}

/// The regions of a document and their tokens, in order. Made to be used again for the next document.
#[derive(Default)]
pub(super) struct Outline {
    pub(super) regions: Vec<Region>,
    pub(super) parts: Vec<Part>,
    conditionals: Conditionals,
    /// The last region is a comment.
    after_comment: bool,
    /// Before that comment its line had no token.
    comment_begins_line: bool,
}

/// The document must be counted token by token.
pub(super) struct Odd;

impl Outline {
    /// Finds the regions of `source`, whose bytes have these classes.
    ///
    /// # Errors
    ///
    /// If it is odd; then there is one region of everything, and no parts.
    pub(super) fn draw(&mut self, source: &[u8], classes: &Classes) -> Result<(), Odd> {
        *self = Self {
            regions: std::mem::take(&mut self.regions),
            parts: std::mem::take(&mut self.parts),
            ..Self::default()
        };
        self.regions.clear();
        self.parts.clear();
        let drawn = self.draw_regions(source, classes);
        if drawn.is_err() {
            self.parts.clear();
            self.regions.clear();
            self.regions.push(Region { start: 0, end: usize::MAX, disabled: false });
        }
        drawn
    }

    fn draw_regions(&mut self, source: &[u8], classes: &Classes) -> Result<(), Odd> {
        let mut settled = if source.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        if settled > 0 && source.get(settled).is_some_and(|&byte| continues_identifier(byte)) {
            // To the pattern, the byte order mark and the name behind it are one word.
            return Err(Odd);
        }
        let mut at = settled;
        loop {
            let event = classes.next_event(at);
            let Some(&byte) = source.get(event) else { return Ok(()) };
            let end = match byte {
                b':' => {
                    self.check_scope(source, settled, event)?;
                    None
                }
                b'/' => Some(self.comment(source, settled, event)?),
                b'"' | b'\'' => Some(self.literal(source, settled, event)?),
                b'#' if self.begins_line(source, settled, event) => self.directive(source, event),
                b'#' => None,
                _ => return Err(Odd),
            };
            at = end.unwrap_or(event + 1);
            settled = end.unwrap_or(settled);
        }
    }

    /// Refuses a `::` at `event` unless its neighbours show how it belongs to a chain of names.
    fn check_scope(&self, source: &[u8], settled: usize, event: usize) -> Result<(), Odd> {
        let before = &source[settled..event];
        let near = match before {
            [.., b'<'] => source.get(event + 2) != Some(&b'>'),
            [.., b':'] | [.., b'-' | b'=' | b'%' | b':', b'>'] => false,
            [.., byte] if is_space(*byte) => self.stands_apart(before.trim_ascii_end()),
            [] => !self.after_comment,
            _ => true,
        };
        let gap_behind = source.get(event + 2).is_none_or(|&byte| is_space(byte) || matches!(byte, b'/' | b':'));
        if near && !gap_behind { Ok(()) } else { Err(Odd) }
    }

    /// Whether a `::` after `code` and a gap continues no chain of names.
    fn stands_apart(&self, code: &[u8]) -> bool {
        match code {
            [] => !self.after_comment,
            [.., b'>' | b':' | 0x0b | 0x0c] => false,
            [.., byte] if continues_identifier(*byte) => {
                let length = code.iter().rev().take_while(|&&byte| continues_identifier(byte)).count();
                is_keyword(&code[code.len() - length..])
            }
            _ => true,
        }
    }

    fn comment(&mut self, source: &[u8], settled: usize, event: usize) -> Result<usize, Odd> {
        let begins_line = self.begins_line(source, settled, event);
        let token = Lexer::within_line(source, event).next().ok_or(Odd)?;
        if !matches!(token.kind, TokenKind::LineComment | TokenKind::BlockComment) {
            return Err(Odd);
        }
        self.push(token);
        (self.after_comment, self.comment_begins_line) = (true, begins_line);
        Ok(token.end)
    }

    /// The literal, or the number with separators, that the quote at `event` belongs to.
    fn literal(&mut self, source: &[u8], settled: usize, event: usize) -> Result<usize, Odd> {
        let before = &source[settled..event];
        let name = before.iter().rev().take_while(|&&byte| continues_identifier(byte)).count();
        let dotted = before.iter().rev().take_while(|&&byte| continues_identifier(byte) || byte == b'.').count();
        if let [.., b'.'] | [.., b'e' | b'E' | b'p' | b'P', b'+' | b'-'] = before[..before.len() - name] {
            // A number may go on over the quote.
            return Err(Odd);
        }
        let start = match &before[before.len() - name..] {
            [] => event,
            // The pattern takes `)name"` for the end of a raw string.
            _ if source[event] == b'"' && before[..before.len() - name].ends_with(b")") => return Err(Odd),
            b"u8" | b"u" | b"U" | b"L" | b"R" | b"u8R" | b"uR" | b"UR" | b"LR" => event - name,
            _ if before[before.len() - dotted..].iter().any(u8::is_ascii_digit) && source[event] == b'\'' => {
                match before[..before.len() - dotted] {
                    [.., b'+' | b'-'] => return Err(Odd),
                    _ => event - dotted,
                }
            }
            _ => event,
        };
        let token = Lexer::within_line(source, start).find(|token| token.end > event).ok_or(Odd)?;
        // To the pattern, `0'x` of `'0'x` is a number with a separator.
        let name_behind = source.get(token.end).is_some_and(|&byte| continues_identifier(byte));
        if (name_behind && token.kind == TokenKind::Char) || seems_to_open_raw(source, &token) {
            return Err(Odd);
        }
        self.push(token);
        self.after_comment = false;
        Ok(token.end)
    }

    /// The end of the directive that begins at `event`, if one does: `##` begins none.
    fn directive(&mut self, source: &[u8], event: usize) -> Option<usize> {
        let was_disabled = self.conditionals.disabled();
        let first = self.parts.len();
        let tokens = Lexer::at_line_start(source, event).take_while(|token| token.in_directive);
        self.parts.extend(tokens.map(|token| Part { token, disabled: was_disabled }));
        let end = self.parts[first..].last()?.token.end;
        let tokens = self.parts[first..].iter().map(|part| part.token);
        self.conditionals.after(source, tokens);
        let disabled = self.conditionals.disabled();
        if was_disabled && !disabled {
            self.parts[first..].iter_mut().for_each(|part| part.disabled = false);
        }
        self.regions.push(Region { start: event, end, disabled });
        self.after_comment = false;
        Some(end)
    }

    fn push(&mut self, token: Token) {
        let disabled = self.conditionals.disabled();
        self.parts.push(Part { token, disabled });
        self.regions.push(Region { start: token.start, end: token.end, disabled });
    }

    /// Whether there is no token between the beginning of the line and `event`.
    fn begins_line(&self, source: &[u8], settled: usize, event: usize) -> bool {
        match source[settled..event].iter().rev().find(|&&byte| !matches!(byte, b' ' | b'\t' | 0x0b | 0x0c)) {
            Some(byte) => matches!(byte, b'\n' | b'\r'),
            None if self.regions.is_empty() => true,
            None => self.after_comment && self.comment_begins_line,
        }
    }
}

/// Whether the pattern takes the end of a string for the opening of a raw one, `R", f(` in `"R",f(x)`, with names in
/// it.
fn seems_to_open_raw(source: &[u8], token: &Token) -> bool {
    let closing = source[token.start..token.end].iter().rposition(|&byte| byte == b'"');
    closing.is_some_and(|quote| {
        let quote = token.start + quote;
        let stop = |&byte: &u8| is_space(byte) || matches!(byte, b'(' | b')' | b'\\' | b'"');
        source[..quote].ends_with(b"R") && source[quote + 1..].iter().copied().take(65).find(stop) == Some(b'(')
    })
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// How deep a document is in conditional groups, counted inside an `#if 0` group only.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(super) struct Conditionals {
    /// In an `#if 0` group: how many conditionals began in it and have not ended.
    inside: Option<u32>,
}

impl Conditionals {
    /// Whether the text after the last directive is in a group that `#if 0` disables.
    pub(super) fn disabled(self) -> bool {
        self.inside.is_some()
    }

    /// Takes note of the directive of these tokens.
    pub(super) fn after(&mut self, source: &[u8], tokens: impl Iterator<Item = Token>) {
        let mut words = tokens.filter(|token| !token.kind.is_space()).skip(1);
        let Some(name) = words.next() else { return };
        self.inside = match (&*name.text(source), self.inside) {
            (b"if", None) => {
                let zero = words.next().is_some_and(|token| *token.text(source) == *b"0") && words.next().is_none();
                zero.then_some(0)
            }
            (b"if" | b"ifdef" | b"ifndef", Some(depth)) => Some(depth + 1),
            (b"else" | b"elif" | b"elifdef" | b"elifndef", Some(0)) => None,
            (b"endif", Some(depth)) => depth.checked_sub(1),
            (_, inside) => inside,
        };
    }
}
