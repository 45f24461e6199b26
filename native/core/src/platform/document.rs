//! Finding the evidence of one document.

use std::collections::BTreeMap;

use super::code::{self, Code};
use super::rules::Rules;
use super::sequences::Progress;
use crate::blocks::Classes;
use crate::lexer::{Lexer, Token, TokenKind};

/// How many pieces of evidence of a label are written down.
const MAX_SHOWN: usize = 5;

/// What was found in one document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Platforms {
    /// Ids of the labels, ascending.
    pub ids: Vec<u16>,
    /// Canonical JSON: category to label to the first pieces of its evidence, in the order of the rules.
    pub info: String,
}

/// Finds evidence in one document after the other; keeps its buffers.
pub(super) struct Finder<'r> {
    rules: &'r Rules,
    /// One bit a piece of evidence.
    seen: Vec<u64>,
    progress: Progress,
    place: Place,
    classes: Classes,
    lower: Vec<u8>,
}

impl<'r> Finder<'r> {
    pub(super) fn new(rules: &'r Rules) -> Self {
        let seen = vec![0; rules.evidence.len().div_ceil(64)];
        let (progress, classes) = (Progress::default(), Classes::default());
        Self { rules, seen, progress, place: Place::Text, classes, lower: Vec::new() }
    }

    /// The platforms of a document.
    pub(super) fn find(&mut self, path: &str, content: &[u8]) -> Platforms {
        self.begin(path);
        self.content(content);
        self.rank()
    }

    /// The same by a look at every token: what [`Finder::find`] must agree with.
    #[cfg(test)]
    pub(super) fn find_by_token(&mut self, path: &str, content: &[u8]) -> Platforms {
        self.begin(path);
        Lexer::new(content).for_each(|token| self.token(&token, content));
        self.rank()
    }

    fn begin(&mut self, path: &str) {
        self.seen.fill(0);
        self.progress.reset();
        self.place = Place::Text;
        self.path(path);
    }

    fn path(&mut self, path: &str) {
        self.lower.clear();
        self.lower.extend(path.bytes().map(|byte| byte.to_ascii_lowercase()));
        let (rules, seen) = (self.rules, &mut self.seen);
        let mut components = self.lower.rsplit(|&byte| byte == b'/');
        let name = components.next().unwrap_or_default();
        if let Some(dot) = memchr::memrchr(b'.', name).filter(|&dot| dot > 0) {
            rules.paths.find(&name[dot..], |number| mark(seen, number));
        }
        for folder in components.filter(|folder| !folder.starts_with(b".")) {
            rules.paths.find(folder, |number| mark(seen, number));
        }
    }

    fn content(&mut self, source: &[u8]) {
        let rules = self.rules;
        let mut classes = std::mem::take(&mut self.classes);
        classes.classify(source);
        let mut code = Code::new(source, &classes, &rules.beginnings);
        while let Some(place) = code.next() {
            let lexer = match place {
                code::Place::Tokens(lexer, last) => Some(self.tokens(source, lexer, last)),
                code::Place::Identifier(start, end) => {
                    self.identifier(source, start, end).then(|| self.tokens(source, code.lexer_at(start), start))
                }
            };
            if let Some(lexer) = lexer {
                code.go_on_after(&lexer);
            }
        }
        self.classes = classes;
    }

    /// Marks the identifier `source[start..end]`, and says whether it may begin a sequence.
    fn identifier(&mut self, source: &[u8], start: usize, end: usize) -> bool {
        let (rules, seen, text) = (self.rules, &mut self.seen, &source[start..end]);
        rules.identifiers.find(text, |number| mark(seen, number));
        rules.sequences.opening(text).is_some_and(|atom| rules.beginnings.may_go_on(atom, source, end))
    }

    /// Looks at the tokens up to the one at `last`, and while there are more of a directive or maybe of a sequence.
    fn tokens<'s>(&mut self, source: &'s [u8], mut lexer: Lexer<'s>, last: usize) -> Lexer<'s> {
        for token in lexer.by_ref() {
            self.token(&token, source);
            if token.end > last && self.place == Place::Text && self.progress.is_empty() {
                break;
            }
        }
        lexer
    }

    #[inline]
    fn token(&mut self, token: &Token, source: &[u8]) {
        match token.kind {
            TokenKind::Whitespace | TokenKind::LineComment | TokenKind::BlockComment => return,
            TokenKind::Newline => {
                if self.place != Place::Text {
                    self.progress.reset();
                    self.place = Place::Text;
                }
                return;
            }
            _ => {}
        }
        let text = token.text(source);
        if token.in_directive {
            if self.place == Place::Text {
                self.progress.reset();
            }
            self.place = self.place.after(&text);
        }
        if self.place != Place::Message {
            self.text(token.kind, &text);
        }
    }

    #[inline]
    fn text(&mut self, kind: TokenKind, text: &[u8]) {
        let (rules, seen) = (self.rules, &mut self.seen);
        match kind {
            TokenKind::Identifier => rules.identifiers.find(text, |number| mark(seen, number)),
            TokenKind::HeaderName => return self.header(text),
            _ => {}
        }
        self.progress.step(&rules.sequences, kind, text, |number| mark(seen, number));
    }

    /// Takes a header name with its delimiters.
    fn header(&mut self, text: &[u8]) {
        let (rules, seen) = (self.rules, &mut self.seen);
        self.lower.clear();
        let inner = text[..text.len() - 1].iter();
        self.lower.extend(inner.map(|&byte| if byte == b'\\' { b'/' } else { byte.to_ascii_lowercase() }));
        // The `<` of `"<a.h"` is no bracket.
        if self.lower.get(1) != Some(&b'<') {
            rules.includes.find(&self.lower[1..], |number| mark(seen, number));
        }
        if text.starts_with(b"<") {
            rules.includes.find(&self.lower, |number| mark(seen, number));
        }
    }

    /// The labels with most evidence, of equals those with the lower id.
    fn rank(&self) -> Platforms {
        let mut found: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for at in ones(&self.seen) {
            found.entry(self.rules.evidence[at].label).or_default().push(at);
        }
        let mut ranked: Vec<_> = found.into_iter().collect();
        ranked.sort_by_key(|(_, evidence)| std::cmp::Reverse(evidence.len()));
        ranked.truncate(self.rules.max_ids);
        let mut ids: Vec<_> = ranked.iter().map(|&(label, _)| self.rules.labels[label].id).collect();
        ids.sort_unstable();
        Platforms { ids, info: self.describe(&ranked) }
    }

    fn describe(&self, labels: &[(usize, Vec<usize>)]) -> String {
        let mut info: BTreeMap<&str, BTreeMap<&str, Vec<&str>>> = BTreeMap::new();
        for (label, evidence) in labels {
            let label = &self.rules.labels[*label];
            let shown = evidence.iter().take(MAX_SHOWN).map(|&at| &*self.rules.evidence[at].text).collect();
            info.entry(&label.category).or_default().insert(&label.name, shown);
        }
        // Names and evidence are printable ASCII: sorted bytewise and written like this they are RFC 8785.
        serde_json::json!(info).to_string()
    }
}

#[inline]
fn mark(seen: &mut [u64], number: u32) {
    seen[number as usize / 64] |= 1 << (number % 64);
}

fn ones(bits: &[u64]) -> impl Iterator<Item = usize> {
    (0..bits.len() * 64).filter(|at| bits[at / 64] >> (at % 64) & 1 == 1)
}

/// Where the last token of a document was.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In no directive.
    Text,
    /// It was the `#` of a directive.
    Hash,
    /// In `#error` or `#warning`: what follows is prose.
    Message,
    /// Anywhere else in a directive.
    Directive,
}

impl Place {
    /// Where the next token of a directive is.
    fn after(self, text: &[u8]) -> Self {
        match self {
            Self::Text => Self::Hash,
            Self::Hash if matches!(text, b"error" | b"warning") => Self::Message,
            Self::Hash => Self::Directive,
            inside => inside,
        }
    }
}
