//! From bytes to token ids: split into words, look each up, merge those not met before.

use std::sync::Arc;

use super::artifact::Artifact;
use super::batch::Id;
use super::cache::{Key, WordCache};
use super::lanes::{LANES, Lane, MAX_CELLS, join};
use super::merges::{Merges, Scratch};
use super::superwords::{Lines, Superwords};
use super::vocabulary::Vocabulary;
use crate::pattern::{Starts, lines};
use crate::{Error, Result};

/// How many words wait for each other, so that the memory where they belong is on its way while the next ones are cut.
const BATCH: usize = 32;

/// What encoding needs of a tokenizer; shared by all workers.
pub(super) struct Encoder {
    units: Units,
    merges: Merges,
}

/// What text is cut into.
enum Units {
    Words,
    /// Lines of which each is merged as if it were a word: for merges that [`Superwords`] cannot do.
    WholeLines,
    /// Lines of words.
    Lines(Superwords),
}

/// A word that waits to be looked up.
#[derive(Clone, Copy, Default)]
struct Waiting {
    key: Key,
    start: u32,
    end: u32,
    ends_line: bool,
}

/// What one thread keeps between documents.
pub(super) struct Worker<T: Id> {
    cache: WordCache<T>,
    starts: Starts,
    /// The tokens of the word that was merged last.
    merged: Vec<u32>,
    scratch: Scratch,
    lines: Lines<T>,
    waiting: [Waiting; BATCH],
}

impl<T: Id> Default for Worker<T> {
    fn default() -> Self {
        Self {
            cache: WordCache::new(),
            starts: Starts::default(),
            merged: Vec::new(),
            scratch: Scratch::default(),
            lines: Lines::default(),
            waiting: [Waiting::default(); BATCH],
        }
    }
}

impl Encoder {
    /// Makes the encoder of a tokenizer directory.
    ///
    /// # Errors
    /// As those of [`Vocabulary::merges`] and [`Vocabulary::byte_ids`].
    pub(super) fn new(artifact: &Artifact, vocabulary: &Vocabulary) -> Result<Self> {
        let merges = vocabulary.merges(artifact)?;
        let lengths = vocabulary.lengths();
        let byte_ids = vocabulary.byte_ids()?;
        let whole = Merges::new(byte_ids.clone(), &merges, Arc::clone(&lengths));
        if !artifact.pattern.is_lines() {
            return Ok(Self { units: Units::Words, merges: whole });
        }
        let words = Merges::new(byte_ids, &merges[..artifact.first_superword], lengths);
        if words.borders().is_none() || whole.borders().is_none() {
            return Ok(Self { units: Units::WholeLines, merges: whole });
        }
        let superwords = Superwords::new(&words, whole, &merges, artifact.first_superword);
        Ok(Self { units: Units::Lines(superwords), merges: words })
    }

    /// Appends the ids of `text` to `out`.
    ///
    /// # Errors
    /// `Invalid` if `text` has 4 GiB or more.
    pub(super) fn encode<T: Id>(&self, worker: &mut Worker<T>, text: &[u8], out: &mut Vec<T>) -> Result<()> {
        if u32::try_from(text.len()).is_err() {
            return Err(Error::invalid(format!("a document of {} bytes is too long: the limit is 4 GiB", text.len())));
        }
        worker.starts.find(text);
        if std::str::from_utf8(text).is_ok() {
            self.encode_run(worker, text, 0, out);
            return Ok(());
        }
        let mut at = 0;
        for chunk in text.utf8_chunks() {
            let end = at + chunk.valid().len();
            self.encode_run(worker, &text[..end], at, out);
            out.extend(chunk.invalid().iter().map(|&byte| T::new(self.merges.byte_id(byte))));
            at = end + chunk.invalid().len();
        }
        Ok(())
    }

    /// Appends the ids of the valid UTF-8 in `run[start..]`.
    fn encode_run<T: Id>(&self, worker: &mut Worker<T>, run: &[u8], start: usize, out: &mut Vec<T>) {
        let Worker { cache, starts, merged, scratch, lines: waiting_lines, waiting } = worker;
        let first = out.len();
        let mut words = Words { encoder: self, cache, merged, scratch, run, at: start, waiting, length: 0 };
        match &self.units {
            Units::Words => {
                starts.words(run, start, |end| words.take(end, false, out, |_, _, _| {}));
                words.settle(out, |_, _, _| {});
            }
            Units::WholeLines => {
                lines(run, start, |end| words.take(end, false, out, |_, _, _| {}));
                words.settle(out, |_, _, _| {});
            }
            Units::Lines(superwords) => {
                waiting_lines.begin(start, first);
                let mut take = |word: &Waiting, token: usize, out: &mut Vec<T>| {
                    superwords.begin_word(&self.merges, waiting_lines, run, word.start as usize, token, out);
                    if word.ends_line {
                        superwords.end_line(waiting_lines, run, word.end as usize, out);
                    }
                };
                starts.words_of_lines(run, start, |end, ends_line| words.take(end, ends_line, out, &mut take));
                words.settle(out, take);
                superwords.settle(waiting_lines, run, out);
            }
        }
    }

    /// Merges those of the words that wait which the cache does not have, several at once, and keeps their tokens.
    #[inline(never)]
    fn merge_ahead<T: Id>(&self, cache: &mut WordCache<T>, lanes: &mut [Lane; LANES], run: &[u8], words: &[Waiting]) {
        let text = |word: &Waiting| &run[word.start as usize..word.end as usize];
        let (mut unknown, mut count) = ([Waiting::default(); LANES], 0);
        for (number, word) in words.iter().enumerate() {
            if text(word).len() <= MAX_CELLS && !cache.knows(word.key) {
                self.merges.fill(&mut lanes[count], text(word));
                unknown[count] = *word;
                count += 1;
            }
            if count == LANES || number + 1 == words.len() {
                join(&mut lanes[..count], self.merges.pairs());
                for (word, lane) in unknown[..count].iter().zip(&*lanes) {
                    let (mut tokens, mut length) = ([T::new(0); MAX_CELLS], 0);
                    lane.tokens(|id| {
                        tokens[length] = T::new(id);
                        length += 1;
                    });
                    cache.keep(word.key, text(word), &tokens[..length]);
                }
                count = 0;
            }
        }
    }
}

/// The words of a run, on their way from the text to the ids.
struct Words<'a, T: Id> {
    encoder: &'a Encoder,
    cache: &'a mut WordCache<T>,
    merged: &'a mut Vec<u32>,
    run: &'a [u8],
    /// Where the next word starts.
    at: usize,
    scratch: &'a mut Scratch,
    waiting: &'a mut [Waiting; BATCH],
    length: usize,
}

impl<T: Id> Words<'_, T> {
    /// Takes the word that goes on to `end`; [`Self::settle`] must come after the last one.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "a call for each word")]
    fn take(&mut self, end: usize, ends_line: bool, out: &mut Vec<T>, each: impl FnMut(&Waiting, usize, &mut Vec<T>)) {
        let key = Key::new(self.run, self.at, end);
        self.cache.prefetch(key);
        self.waiting[self.length % BATCH] = Waiting { key, start: self.at as u32, end: end as u32, ends_line };
        self.length += 1;
        self.at = end;
        if self.length == BATCH {
            self.settle(out, each);
        }
    }

    /// Merges a word that the cache does not have, and keeps its tokens.
    #[inline(never)]
    fn merge(&mut self, word: Waiting, out: &mut Vec<T>) {
        let text = &self.run[word.start as usize..word.end as usize];
        self.merged.clear();
        self.merged.shrink_to(1 << 20);
        self.encoder.merges.merge(self.scratch, text, self.merged);
        let before = out.len();
        out.extend(self.merged.iter().map(|&id| T::new(id)));
        self.cache.keep(word.key, text, &out[before..]);
    }

    /// Appends the ids of the words that wait, and calls `each` with each word, the place of its first id, and the output.
    #[inline(never)]
    fn settle(&mut self, out: &mut Vec<T>, mut each: impl FnMut(&Waiting, usize, &mut Vec<T>)) {
        for index in 0..self.length {
            let word = self.waiting[index % BATCH];
            let run = self.run;
            let text = || &run[word.start as usize..word.end as usize];
            let token = out.len();
            if !self.cache.append(word.key, text, out) {
                self.encoder.merge_ahead(
                    self.cache,
                    &mut self.scratch.lanes,
                    self.run,
                    &self.waiting[index..self.length],
                );
                if !self.cache.append(word.key, text, out) {
                    self.merge(word, out);
                }
            }
            each(&word, token, out);
        }
        self.length = 0;
    }
}
