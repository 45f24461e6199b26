//! From bytes to token ids: split into words, look each up, merge those not met before.

use super::batch::Id;
use super::cache::{MAX_SHORT_BYTES, WordCache, pack};
use super::merges::Merges;
use crate::pattern::Pattern;
use crate::{Error, Result};

/// What encoding needs of a tokenizer; shared by all workers.
pub(super) struct Encoder {
    pattern: Pattern,
    merges: Merges,
}

/// What one thread keeps between documents.
pub(super) struct Worker {
    cache: WordCache,
    /// The tokens of the word that was merged last.
    merged: Vec<u32>,
}

impl Default for Worker {
    fn default() -> Self {
        Self { cache: WordCache::new(), merged: Vec::new() }
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
    pub(super) fn encode<T: Id>(&self, worker: &mut Worker, text: &[u8], out: &mut Vec<T>) -> Result<()> {
        if u32::try_from(text.len()).is_err() {
            return Err(Error::invalid(format!("a document of {} bytes is too long: the limit is 4 GiB", text.len())));
        }
        if std::str::from_utf8(text).is_ok() {
            self.encode_run(worker, text, out);
            return Ok(());
        }
        for chunk in text.utf8_chunks() {
            self.encode_run(worker, chunk.valid().as_bytes(), out);
            out.extend(chunk.invalid().iter().map(|&byte| T::new(self.merges.byte_id(byte))));
        }
        Ok(())
    }

    fn encode_run<T: Id>(&self, worker: &mut Worker, run: &[u8], out: &mut Vec<T>) {
        let mut start = 0;
        while start < run.len() {
            let end = self.pattern.word_end(run, start);
            if end - start <= MAX_SHORT_BYTES {
                let key = pack(run, start, end);
                if let Some(ids) = worker.cache.short(key) {
                    out.extend(ids.iter().map(|&id| T::new(id)));
                } else {
                    self.merge(worker, &run[start..end], out);
                    worker.cache.keep_short(key, &worker.merged);
                }
            } else {
                self.encode_long(worker, &run[start..end], out);
            }
            start = end;
        }
    }

    fn encode_long<T: Id>(&self, worker: &mut Worker, word: &[u8], out: &mut Vec<T>) {
        if let Some(ids) = worker.cache.long(word) {
            out.extend(ids.iter().map(|&id| T::new(id)));
        } else {
            self.merge(worker, word, out);
            worker.cache.keep_long(word, &worker.merged);
        }
    }

    fn merge<T: Id>(&self, worker: &mut Worker, word: &[u8], out: &mut Vec<T>) {
        worker.merged.clear();
        worker.merged.shrink_to(1 << 20);
        self.merges.merge(word, &mut worker.merged);
        out.extend(worker.merged.iter().map(|&id| T::new(id)));
    }
}
