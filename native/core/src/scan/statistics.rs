//! Counters of what documents are made of.

use super::lines::Lines;
use super::outline::Region;
use crate::blocks::Classes;
use crate::lexer::{Token, TokenKind};

/// A plain total.
#[derive(Clone, Copy)]
pub(super) enum Counter {
    Documents,
    DocumentsNotUtf8,
    BytesCode,
    BytesComment,
    BytesDisabled,
    BytesPreprocessor,
    BytesString,
    BytesWhitespace,
    BytesNonAscii,
    CommentsLine,
    CommentsBlock,
    LiteralsChar,
    LiteralsRawString,
    LiteralsString,
    DisabledIdentifiers,
    Directives,
    Identifiers,
    Keywords,
    Namespaces,
    Words,
    Lines,
    LinesBlank,
    LineEndingsLf,
    LineEndingsCrlf,
    LineEndingsCr,
    IndentationSpaces,
    IndentationTabs,
    IndentationMixed,
}

const COUNTERS: usize = Counter::IndentationMixed as usize + 1;

/// The name of each counter, in the order of [`Counter`].
const COUNTER_NAMES: [&str; COUNTERS] = [
    "documents",
    "not_utf8_documents",
    "bytes.code",
    "bytes.comment",
    "bytes.disabled",
    "bytes.preprocessor",
    "bytes.string",
    "bytes.whitespace",
    "bytes.non_ascii",
    "comments.line",
    "comments.block",
    "literals.char",
    "literals.raw_string",
    "literals.string",
    "disabled.identifiers",
    "directives",
    "identifiers",
    "keywords",
    "namespaces",
    "words",
    "lines",
    "lines.blank",
    "line_endings.lf",
    "line_endings.crlf",
    "line_endings.cr",
    "indentation.spaces",
    "indentation.tabs",
    "indentation.mixed",
];

/// Totals over documents; all of them add up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Statistics {
    counters: [u64; COUNTERS],
}

/// The class of a token's bytes.
fn class(kind: TokenKind, in_directive: bool) -> Counter {
    match kind {
        TokenKind::Whitespace | TokenKind::Newline => Counter::BytesWhitespace,
        TokenKind::LineComment | TokenKind::BlockComment => Counter::BytesComment,
        _ if in_directive => Counter::BytesPreprocessor,
        TokenKind::String | TokenKind::RawString | TokenKind::Char => Counter::BytesString,
        _ => Counter::BytesCode,
    }
}

/// The counter of tokens of a kind, if there is one.
fn total(kind: TokenKind) -> Option<Counter> {
    match kind {
        TokenKind::LineComment => Some(Counter::CommentsLine),
        TokenKind::BlockComment => Some(Counter::CommentsBlock),
        TokenKind::Char => Some(Counter::LiteralsChar),
        TokenKind::RawString => Some(Counter::LiteralsRawString),
        TokenKind::String => Some(Counter::LiteralsString),
        _ => None,
    }
}

impl Statistics {
    /// Counts a token; `disabled` if it is in an `#if 0` group.
    #[inline]
    pub(super) fn count_token(&mut self, token: &Token, disabled: bool) {
        let bytes = (token.end - token.start) as u64;
        if disabled {
            return self.add(Counter::BytesDisabled, bytes);
        }
        self.add(class(token.kind, token.in_directive), bytes);
        if let Some(counter) = total(token.kind) {
            self.add(counter, 1);
        }
    }

    /// Counts the bytes of a document outside `regions`: code and white space, or what `#if 0` disables.
    pub(super) fn count_code(&mut self, length: usize, classes: &Classes, regions: &[Region]) {
        let mut start = 0;
        let mut disabled = false;
        let end = Region { start: length, end: length, disabled: false };
        for region in regions.iter().chain([&end]) {
            let bytes = (region.start - start) as u64;
            if disabled {
                self.add(Counter::BytesDisabled, bytes);
            } else {
                let white = classes.white_bytes(start..region.start);
                self.add(Counter::BytesWhitespace, white);
                self.add(Counter::BytesCode, bytes - white);
            }
            (start, disabled) = (region.end, region.disabled);
        }
    }

    /// Adds `amount` to a counter.
    #[inline]
    pub(super) fn add(&mut self, counter: Counter, amount: u64) {
        self.counters[counter as usize] += amount;
    }

    /// Counts what needs no tokens: the document, its lines, indentation and bytes that are no ASCII.
    pub(super) fn count_document(&mut self, source: &[u8], classes: &Classes) {
        self.add(Counter::Documents, 1);
        let non_ascii = count_bytes(source, |byte| byte >= 0x80);
        self.add(Counter::BytesNonAscii, non_ascii);
        if non_ascii > 0 && std::str::from_utf8(source).is_err() {
            self.add(Counter::DocumentsNotUtf8, 1);
        }
        match Lines::of(source, classes) {
            Some(lines) => self.add_lines(&lines),
            None => self.count_lines(source),
        }
    }

    fn add_lines(&mut self, lines: &Lines) {
        self.add(Counter::Lines, lines.all);
        self.add(Counter::LineEndingsLf, lines.endings);
        self.add(Counter::LinesBlank, lines.blank);
        self.add(Counter::IndentationTabs, lines.tabs);
        self.add(Counter::IndentationSpaces, lines.spaces);
    }

    /// Counts lines one by one.
    fn count_lines(&mut self, source: &[u8]) {
        let mut start = 0;
        for at in memchr::memchr2_iter(b'\n', b'\r', source) {
            let ending = match source[at] {
                b'\r' if source.get(at + 1) == Some(&b'\n') => continue,
                b'\r' => Counter::LineEndingsCr,
                _ if at > start && source[at - 1] == b'\r' => Counter::LineEndingsCrlf,
                _ => Counter::LineEndingsLf,
            };
            self.add(ending, 1);
            self.count_line(&source[start..at]);
            start = at + 1;
        }
        if start < source.len() {
            self.count_line(&source[start..]);
        }
    }

    /// Counts a line, which may have the `\r` of its ending. Indentation counts on lines that are not blank.
    fn count_line(&mut self, line: &[u8]) {
        self.add(Counter::Lines, 1);
        let indent = line.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        if matches!(line[indent..], [] | [b'\r']) {
            self.add(Counter::LinesBlank, 1);
        } else if indent > 0 {
            let first = line[0];
            let counter = match first {
                _ if line[..indent].iter().any(|&byte| byte != first) => Counter::IndentationMixed,
                b' ' => Counter::IndentationSpaces,
                _ => Counter::IndentationTabs,
            };
            self.add(counter, 1);
        }
    }

    /// Adds another's totals.
    pub(super) fn merge(&mut self, other: &Self) {
        self.counters.iter_mut().zip(other.counters).for_each(|(total, other)| *total += other);
    }

    /// Every total with its name, `bytes` included, which its classes add up to.
    pub(super) fn totals(&self) -> Vec<(&'static str, u64)> {
        let classes = Counter::BytesCode as usize..=Counter::BytesWhitespace as usize;
        let bytes = self.counters[classes].iter().sum();
        COUNTER_NAMES.into_iter().zip(self.counters).chain([("bytes", bytes)]).collect()
    }
}

/// How many bytes are such that; in small sums, which the compiler makes vectors of.
#[inline]
fn count_bytes(bytes: &[u8], holds: impl Fn(u8) -> bool) -> u64 {
    bytes.chunks(255).map(|chunk| u64::from(chunk.iter().map(|&byte| u8::from(holds(byte))).sum::<u8>())).sum()
}

#[cfg(test)]
mod tests {
    use super::{Classes, Lines, Statistics};

    #[test]
    fn lines_by_masks_are_those_counted_one_by_one() {
        let pieces =
            ["\n", "\n", "\n\n", " ", "    ", "\t", "\t\t", "x", "int x;", "\n    x", "\n\ty", "\r", "\u{b}", "/* */"];
        let wide = " ".repeat(70);
        let (mut state, mut by_masks) = (1_u64, 0);
        let mut random = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 40) as usize % below
        };
        for round in 0..20_000 {
            let kinds = [5, pieces.len()][round % 2];
            let mut text: String = (0..random(60)).map(|_| pieces[random(kinds)]).collect();
            if round % 7 == 0 {
                text.push_str(&wide);
            }
            let mut classes = Classes::default();
            classes.classify(text.as_bytes());
            let Some(lines) = Lines::of(text.as_bytes(), &classes) else { continue };
            let [mut found, mut expected] = [Statistics::default(), Statistics::default()];
            found.add_lines(&lines);
            expected.count_lines(text.as_bytes());
            assert_eq!(found, expected, "{text:?}");
            by_masks += 1;
        }
        assert!(by_masks > 5_000, "{by_masks}");
    }
}
