//! From bytes to token ids: split into words, look each up, merge those not met before.

use std::sync::Arc;

use super::artifact::Artifact;
use super::batch::Id;
use super::cache::WordCache;
use super::merges::{Merges, Scratch};
use super::superwords::{Lines, Superwords};
use super::vocabulary::Vocabulary;
use super::words::{Batch, Word, Words};
use crate::pattern::{Starts, lines};
use crate::{Error, Result};

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

/// What one thread keeps between documents.
pub(super) struct Worker<T: Id> {
    cache: WordCache<T>,
    starts: Starts,
    /// The tokens of the word that was merged last.
    merged: Vec<u32>,
    scratch: Scratch,
    lines: Lines<T>,
    batch: Box<Batch<T>>,
}

impl<T: Id> Default for Worker<T> {
    fn default() -> Self {
        Self {
            cache: WordCache::new(),
            starts: Starts::default(),
            merged: Vec::new(),
            scratch: Scratch::default(),
            lines: Lines::default(),
            batch: Box::default(),
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
        let Worker { cache, starts, merged, scratch, lines: waiting_lines, batch } = worker;
        let first = out.len();
        let mut words = Words { merges: &self.merges, cache, scratch, merged, batch, run, at: start };
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
                let mut take = |word: Word, token: usize, out: &mut Vec<T>| {
                    superwords.begin_word(&self.merges, waiting_lines, run, word.start, token, out);
                    if word.ends_line {
                        superwords.end_line(waiting_lines, run, word.end, out);
                    }
                };
                starts.words_of_lines(run, start, |end, ends_line| words.take(end, ends_line, out, &mut take));
                words.settle(out, take);
                superwords.settle(waiting_lines, run, out);
            }
        }
    }
}
