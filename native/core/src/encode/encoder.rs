//! From bytes to token ids: split into words, look each up, merge those not met before.

use super::batch::Id;
use super::cache::{Key, WordCache};
use super::merges::Merges;
use crate::pattern::{Pattern, Starts};
use crate::{Error, Result};

/// How many words wait for each other, so that the memory where they belong is on its way while the next ones are cut.
const BATCH: usize = 32;

/// What encoding needs of a tokenizer; shared by all workers.
pub(super) struct Encoder {
    pattern: Pattern,
    merges: Merges,
}

/// A word that waits to be looked up.
#[derive(Clone, Copy, Default)]
struct Waiting {
    key: Key,
    start: u32,
    end: u32,
}

/// What one thread keeps between documents.
pub(super) struct Worker<T> {
    cache: WordCache<T>,
    starts: Starts,
    /// The tokens of the word that was merged last.
    merged: Vec<u32>,
}

impl<T: Id> Default for Worker<T> {
    fn default() -> Self {
        Self { cache: WordCache::new(), starts: Starts::default(), merged: Vec::new() }
    }
}

impl Encoder {
    /// Makes an encoder.
    pub(super) fn new(pattern: Pattern, merges: Merges) -> Self {
        Self { pattern, merges }
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
        let Worker { cache, starts, merged } = worker;
        let (mut waiting, mut length, mut at) = ([Waiting::default(); BATCH], 0, start);
        self.pattern.split_run(starts, run, start, |end| {
            let key = Key::new(run, at, end);
            cache.prefetch(key);
            waiting[length % BATCH] = Waiting { key, start: at as u32, end: end as u32 };
            length += 1;
            at = end;
            if length == BATCH {
                self.settle(cache, merged, &waiting, run, out);
                length = 0;
            }
        });
        self.settle(cache, merged, &waiting[..length], run, out);
    }

    /// Appends the ids of the waiting words.
    #[inline]
    fn settle<T: Id>(
        &self,
        cache: &mut WordCache<T>,
        merged: &mut Vec<u32>,
        waiting: &[Waiting],
        run: &[u8],
        out: &mut Vec<T>,
    ) {
        for word in waiting {
            let text = || &run[word.start as usize..word.end as usize];
            if !cache.append(word.key, text, out) {
                self.merge(cache, merged, word.key, text(), out);
            }
        }
    }

    #[inline(never)]
    fn merge<T: Id>(&self, cache: &mut WordCache<T>, merged: &mut Vec<u32>, key: Key, word: &[u8], out: &mut Vec<T>) {
        merged.clear();
        merged.shrink_to(1 << 20);
        self.merges.merge(word, merged);
        let before = out.len();
        out.extend(merged.iter().map(|&id| T::new(id)));
        cache.keep(key, word, &out[before..]);
    }
}
