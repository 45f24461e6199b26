//! From bytes to token ids: split into words, look each up, merge those not met before.

use std::sync::Arc;

use super::artifact::Artifact;
use super::batch::Id;
use super::cache::{Key, WordCache};
use super::merges::Merges;
use super::superwords::{Line, PairMemo, Superwords};
use super::vocabulary::Vocabulary;
use crate::pattern::{Starts, lines};
use crate::{Error, Result, Stop};

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
    memo: PairMemo,
    /// The tokens at which a check of the line is due.
    suspects: Vec<usize>,
    waiting: [Waiting; BATCH],
}

impl<T: Id> Default for Worker<T> {
    fn default() -> Self {
        Self {
            cache: WordCache::new(),
            starts: Starts::default(),
            merged: Vec::new(),
            memo: PairMemo::default(),
            suspects: Vec::new(),
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
        let superwords = || Superwords::new(&byte_ids, &merges, artifact.first_superword, Arc::clone(&lengths));
        let (units, of_words) = match artifact.pattern.is_lines().then(superwords) {
            None => (Units::Words, &merges[..]),
            Some(None) => (Units::WholeLines, &merges[..]),
            Some(Some(superwords)) => (Units::Lines(superwords), &merges[..artifact.first_superword]),
        };
        let merges = Merges::new(byte_ids, of_words, Arc::clone(&lengths));
        Ok(Self { units, merges })
    }

    /// Appends the ids of `text` to `out`.
    ///
    /// # Errors
    /// `Invalid` if `text` has 4 GiB or more; `Stopped` if `stop` is set meanwhile.
    pub(super) fn encode<T: Id>(
        &self,
        worker: &mut Worker<T>,
        text: &[u8],
        stop: &Stop,
        out: &mut Vec<T>,
    ) -> Result<()> {
        if u32::try_from(text.len()).is_err() {
            return Err(Error::invalid(format!("a document of {} bytes is too long: the limit is 4 GiB", text.len())));
        }
        worker.starts.find(text);
        if std::str::from_utf8(text).is_ok() {
            self.encode_run(worker, text, 0, stop, out);
            return stop.check();
        }
        let mut at = 0;
        for chunk in text.utf8_chunks() {
            stop.check()?;
            let end = at + chunk.valid().len();
            self.encode_run(worker, &text[..end], at, stop, out);
            out.extend(chunk.invalid().iter().map(|&byte| T::new(self.merges.byte_id(byte))));
            at = end + chunk.invalid().len();
        }
        stop.check()
    }

    /// Appends the ids of the valid UTF-8 in `run[start..]`.
    fn encode_run<T: Id>(&self, worker: &mut Worker<T>, run: &[u8], start: usize, stop: &Stop, out: &mut Vec<T>) {
        let Worker { cache, starts, merged, memo, suspects, waiting } = worker;
        let mut words = Words { encoder: self, cache, merged, run, at: start, waiting, length: 0, stop };
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
                memo.prepare();
                suspects.clear();
                let (mut line_start, mut first) = (start, out.len());
                let mut finish = |word: &Waiting, token: usize, out: &mut Vec<T>| {
                    let at = word.start as usize;
                    if at > line_start && superwords.may_cross(run[at - 1], run[at]) {
                        suspects.push(token);
                    }
                    if word.ends_line {
                        let line =
                            Line { text: &run[line_start..word.end as usize], first, suspects: &*suspects, stop };
                        superwords.finish(&self.merges, memo, line, out);
                        suspects.clear();
                        (line_start, first) = (word.end as usize, out.len());
                    }
                };
                starts.words_of_lines(run, start, |end, ends_line| words.take(end, ends_line, out, &mut finish));
                words.settle(out, finish);
            }
        }
    }

    /// Appends the tokens of `unit`, which is a part of a word, or of a line if lines are cut; any bytes.
    pub(super) fn merge_unit(&self, unit: &[u8], stop: &Stop, out: &mut Vec<u32>) {
        self.merges.merge(unit, stop, out);
        if let Units::Lines(superwords) = &self.units {
            superwords.join(stop, out);
        }
    }

    /// Merges a word that the cache does not have, and keeps its tokens.
    #[inline(never)]
    fn merge<T: Id>(
        &self,
        cache: &mut WordCache<T>,
        merged: &mut Vec<u32>,
        key: Key,
        word: &[u8],
        stop: &Stop,
        out: &mut Vec<T>,
    ) {
        merged.clear();
        merged.shrink_to(1 << 20);
        self.merges.merge(word, stop, merged);
        let before = out.len();
        out.extend(merged.iter().map(|&id| T::new(id)));
        if !stop.is_set() {
            cache.keep(key, word, &out[before..]);
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
    waiting: &'a mut [Waiting; BATCH],
    length: usize,
    stop: &'a Stop,
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

    /// Appends the ids of the words that wait, and calls `each` with each word, the place of its first id, and the output; does
    /// nothing more once it is to stop.
    #[inline(never)]
    fn settle(&mut self, out: &mut Vec<T>, mut each: impl FnMut(&Waiting, usize, &mut Vec<T>)) {
        if self.stop.is_set() {
            self.length = 0;
        }
        for index in 0..self.length {
            let word = &self.waiting[index % BATCH];
            let text = || &self.run[word.start as usize..word.end as usize];
            let token = out.len();
            if !self.cache.append(word.key, text, out) {
                self.encoder.merge(self.cache, self.merged, word.key, text(), self.stop, out);
            }
            each(word, token, out);
        }
        self.length = 0;
    }
}
