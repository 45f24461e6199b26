//! The tokens that the merges of words make of lines.
//!
//! These merges need not be applied to whole lines. The tokens of single words come from a cache, and are put side by
//! side. In the words that the merges were learned from, no letter comes before a mark or a space, so no merge joins
//! two such bytes, and there is nothing to do where such words meet. Elsewhere the two tokens are looked at
//! ([`super::repairs`]).

use super::repairs::{Meeting, Repairs};
use super::superwords::Superwords;
use crate::encode::bpe::Merges;
use crate::encode::id::Id;
use crate::encode::words::WordSpan;

/// What lines are made from: the merges, and the text in which the words and lines are.
#[derive(Clone, Copy)]
pub(super) struct LineSource<'a> {
    pub(super) superwords: &'a Superwords,
    /// The merges of words.
    pub(super) words: &'a Merges,
    pub(super) text: &'a [u8],
}

/// Room that is kept for the next text, in tokens.
const MAX_KEPT: usize = 1 << 16;

/// The tokens of some lines, the last of which may go on; one per worker.
pub(super) struct OpenLines<T> {
    tokens: Vec<T>,
    /// The first tokens of the lines.
    starts: Vec<usize>,
    /// Whether the next word begins a line.
    begins_line: bool,
    repairs: Repairs,
}

impl<T> Default for OpenLines<T> {
    fn default() -> Self {
        Self { tokens: Vec::new(), starts: Vec::new(), begins_line: true, repairs: Repairs::default() }
    }
}

impl<T: Id> OpenLines<T> {
    /// Begins with a text.
    pub(super) fn begin_text(&mut self) {
        self.repairs.prepare();
        self.tokens.clear();
        self.tokens.shrink_to(MAX_KEPT);
        self.starts.clear();
        self.begins_line = true;
    }

    /// Where the tokens of the next words are to be appended, and what is to be called with each word and its first
    /// token.
    pub(super) fn begin_words<'a>(
        &'a mut self,
        source: LineSource<'a>,
    ) -> (&'a mut Vec<T>, impl FnMut(WordSpan, usize, &mut Vec<T>)) {
        let Self { tokens, starts, begins_line, repairs } = self;
        let LineSource { superwords, words, text } = source;
        let mut line = starts.last().copied().unwrap_or_default();
        let each = move |word: WordSpan, token: usize, tokens: &mut Vec<T>| {
            let at = word.start;
            if std::mem::replace(begins_line, word.ends_line) {
                line = token;
                starts.push(token);
            } else if superwords.may_cross(text[at - 1], text[at]) {
                repairs.join(Meeting { words, text, at, line, token }, tokens);
            }
        };
        (tokens, each)
    }

    /// The tokens of the lines that are complete, and the first token of each.
    pub(super) fn complete(&self) -> (&[T], &[usize]) {
        match self.starts.split_last() {
            Some((&last, starts)) if !self.begins_line => (&self.tokens[..last], starts),
            _ => (&self.tokens, &self.starts),
        }
    }

    /// Removes the tokens of the lines that are complete.
    pub(super) fn remove_complete(&mut self) {
        let (count, lines) = (self.complete().0.len(), self.complete().1.len());
        if count > 0 {
            self.tokens.drain(..count);
            self.starts.drain(..lines);
            self.starts.iter_mut().for_each(|start| *start -= count);
        }
    }
}
