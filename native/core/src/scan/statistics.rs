//! Counters of what documents are made of.

use std::collections::BTreeMap;

use crate::lexer::{Token, TokenKind};

const KINDS: usize = TokenKind::Other as usize + 1;

/// A plain total.
#[derive(Clone, Copy)]
pub(super) enum Counter {
    Documents,
    DocumentsNotUtf8,
    BytesNonAscii,
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
    "bytes.non_ascii",
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
    /// Tokens by kind.
    tokens: [u64; KINDS],
    /// Bytes by kind, outside directives and inside.
    bytes: [[u64; 2]; KINDS],
}

/// The class of a token's bytes.
fn class(kind: TokenKind, in_directive: bool) -> &'static str {
    match kind {
        TokenKind::Whitespace | TokenKind::Newline => "bytes.whitespace",
        TokenKind::LineComment | TokenKind::BlockComment => "bytes.comment",
        _ if in_directive => "bytes.preprocessor",
        TokenKind::String | TokenKind::RawString | TokenKind::Char => "bytes.string",
        _ => "bytes.code",
    }
}

const KIND_NAMES: [(TokenKind, &str); KINDS] = [
    (TokenKind::Whitespace, "tokens.whitespace"),
    (TokenKind::Newline, "tokens.newline"),
    (TokenKind::LineComment, "tokens.line_comment"),
    (TokenKind::BlockComment, "tokens.block_comment"),
    (TokenKind::Identifier, "tokens.identifier"),
    (TokenKind::Number, "tokens.number"),
    (TokenKind::String, "tokens.string"),
    (TokenKind::RawString, "tokens.raw_string"),
    (TokenKind::Char, "tokens.char"),
    (TokenKind::HeaderName, "tokens.header_name"),
    (TokenKind::Punctuator, "tokens.punctuator"),
    (TokenKind::Other, "tokens.other"),
];

impl Statistics {
    /// Counts a token.
    #[inline]
    pub(super) fn count_token(&mut self, token: &Token) {
        let kind = token.kind as usize;
        self.tokens[kind] += 1;
        self.bytes[kind][usize::from(token.in_directive)] += (token.end - token.start) as u64;
    }

    /// Adds `amount` to a counter.
    #[inline]
    pub(super) fn add(&mut self, counter: Counter, amount: u64) {
        self.counters[counter as usize] += amount;
    }

    /// Counts what needs no tokens: the document, its lines, indentation and bytes that are no ASCII.
    pub(super) fn count_document(&mut self, source: &[u8]) {
        self.add(Counter::Documents, 1);
        let non_ascii = source.iter().map(|&byte| u64::from(byte >> 7)).sum::<u64>();
        self.add(Counter::BytesNonAscii, non_ascii);
        if non_ascii > 0 && std::str::from_utf8(source).is_err() {
            self.add(Counter::DocumentsNotUtf8, 1);
        }
        self.count_lines(source);
    }

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
        let add = |totals: &mut [u64], others: &[u64]| totals.iter_mut().zip(others).for_each(|(a, b)| *a += b);
        add(&mut self.counters, &other.counters);
        add(&mut self.tokens, &other.tokens);
        add(self.bytes.as_flattened_mut(), other.bytes.as_flattened());
    }

    /// Every total with its name, `bytes` and its classes included; the classes add up to `bytes`.
    pub(super) fn totals(&self) -> Vec<(&'static str, u64)> {
        let mut classes = BTreeMap::new();
        for (kind, _) in KIND_NAMES {
            for (bytes, in_directive) in self.bytes[kind as usize].into_iter().zip([false, true]) {
                *classes.entry(class(kind, in_directive)).or_insert(0) += bytes;
                *classes.entry("bytes").or_insert(0) += bytes;
            }
        }
        let tokens = KIND_NAMES.iter().map(|&(kind, name)| (name, self.tokens[kind as usize]));
        classes.into_iter().chain(COUNTER_NAMES.into_iter().zip(self.counters)).chain(tokens).collect()
    }
}
