//! From the lines of a text to ids.
//!
//! Lines are taken in batches. All are looked up in the line cache. The words of unknown lines are looked up in turn
//! ([`crate::encode::words`]), and their tokens are joined to superwords ([`super::joiner`]).

use super::cache::{CachedLine, LineCache, LineKey};
use super::joiner::{LineJoiner, LineSource};
use super::superwords::Superwords;
use crate::encode::bpe::LANES;
use crate::encode::id::Id;
use crate::encode::words::{WordEncoder, WordSpan};
use crate::pattern::Starts;

/// A line that waits to be looked up.
#[derive(Clone, Copy, Default)]
struct PendingLine {
    key: LineKey,
    start: usize,
    end: usize,
    /// Whether it is a byte that is not UTF-8.
    invalid: bool,
}

/// What one thread keeps between documents.
pub(crate) struct LineMemory<T: Id> {
    cache: LineCache<T>,
    joiner: LineJoiner<T>,
    /// The tokens of the words of the lines that the cache does not have.
    tokens: Vec<T>,
}

impl<T: Id> Default for LineMemory<T> {
    fn default() -> Self {
        Self { cache: LineCache::default(), joiner: LineJoiner::default(), tokens: Vec::new() }
    }
}

/// What the lines of a text are encoded with.
pub(crate) struct LineEncoder<'a, T: Id> {
    superwords: &'a Superwords,
    starts: &'a Starts,
    words: WordEncoder<'a, T>,
    memory: &'a mut LineMemory<T>,
    waiting: [PendingLine; LANES],
    count: usize,
    /// Where the next line starts.
    at: usize,
}

impl<'a, T: Id> LineEncoder<'a, T> {
    /// Takes the words of a text, of which none was taken, and its starts.
    pub(crate) fn new(
        superwords: &'a Superwords,
        starts: &'a Starts,
        words: WordEncoder<'a, T>,
        memory: &'a mut LineMemory<T>,
    ) -> Self {
        memory.cache.prepare();
        Self { superwords, starts, words, memory, waiting: [PendingLine::default(); LANES], count: 0, at: 0 }
    }

    /// Takes the line that goes on to `end`; [`Self::settle`] must come after the last one.
    pub(crate) fn take(&mut self, end: usize, invalid: bool, out: &mut Vec<T>) {
        let key = LineKey::new(&self.words.run[self.at..end]);
        self.memory.cache.prefetch(key);
        self.waiting[self.count] = PendingLine { key, start: self.at, end, invalid };
        self.count += 1;
        self.at = end;
        if self.count == LANES {
            self.settle(out);
        }
    }

    /// Appends the ids of the lines that wait; none once it is to stop.
    #[inline(never)]
    pub(crate) fn settle(&mut self, out: &mut Vec<T>) {
        let count = std::mem::take(&mut self.count);
        let mut found = [const { None }; LANES];
        for (found, line) in found.iter_mut().zip(&self.waiting[..count]) {
            *found = self.memory.cache.find(line.key);
        }
        for (found, line) in found.iter_mut().zip(&self.waiting[..count]) {
            *found = found.take().filter(|found| self.memory.cache.holds(found, self.text(*line)));
        }
        self.look_up_words(&found[..count]);
        if self.words.stop.is_set() {
            return;
        }
        self.memory.joiner.join(self.superwords, self.words.stop);
        self.write(&found[..count], out);
        if !self.words.stop.is_set() {
            self.keep(&found[..count]);
        }
    }

    fn text(&self, line: PendingLine) -> &'a [u8] {
        &self.words.run[line.start..line.end]
    }

    /// Finds the tokens of the words of those lines that were not found.
    fn look_up_words(&mut self, found: &[Option<CachedLine>]) {
        let Self { superwords, starts, words, memory: LineMemory { joiner, tokens, .. }, waiting, .. } = self;
        let source = LineSource { superwords, words: words.merges, text: words.run };
        tokens.clear();
        joiner.begin();
        let mut take = |word: WordSpan, token: usize, tokens: &mut Vec<T>| {
            joiner.begin_word(source, word.start, token, tokens);
            if word.ends_line {
                joiner.end_line(source, word.end, tokens);
            }
        };
        for (_, line) in found.iter().zip(&*waiting).filter(|(found, _)| found.is_none()) {
            if line.start != words.end() {
                words.settle(tokens, &mut take);
                words.at = line.start;
            }
            if line.invalid {
                words.take(line.end, true, tokens, &mut take);
                continue;
            }
            starts.words_of_line(&source.text[..line.end], line.start, |end, ends_line| {
                words.take(end, ends_line, tokens, &mut take);
            });
        }
        words.settle(tokens, take);
    }

    fn write(&self, found: &[Option<CachedLine>], out: &mut Vec<T>) {
        let mut number = 0;
        for found in found {
            if let Some(found) = found {
                out.extend_from_slice(self.memory.cache.tokens(found));
            } else {
                out.extend_from_slice(self.memory.joiner.tokens(number));
                number += 1;
            }
        }
    }

    /// Keeps the tokens of the lines that were not found.
    fn keep(&mut self, found: &[Option<CachedLine>]) {
        let unknown = found.iter().zip(self.waiting).filter(|(found, _)| found.is_none());
        for (number, (_, line)) in unknown.enumerate() {
            let text = self.text(line);
            self.memory.cache.keep(line.key, text, self.memory.joiner.tokens(number));
        }
    }
}
