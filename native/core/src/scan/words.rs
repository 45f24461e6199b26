//! Word counts of one thread.

use super::bytemap::ByteMap;
use super::inline::{Cache, Inline, Slot};

/// Slots of the cache, 256 KiB in all.
const CACHE_SLOTS: usize = 1 << 13;
/// How many counts that left the cache wait for each other.
const QUEUE_LENGTH: usize = 64;

/// Counts the words of one thread.
pub(super) struct WordCounter {
    counts: ByteMap<u64>,
    cache: Cache<u64, CACHE_SLOTS>,
    /// Counts that left the cache and are not in `counts` yet.
    queue: Vec<Slot<u64>>,
}

impl WordCounter {
    pub(super) fn new() -> Self {
        Self { counts: ByteMap::new(), cache: Cache::new(), queue: Vec::with_capacity(QUEUE_LENGTH) }
    }

    /// Counts one occurrence of `word`.
    #[inline]
    pub(super) fn count(&mut self, word: &[u8]) {
        let Some(key) = Inline::new(word) else {
            *self.counts.entry(word) += 1;
            return;
        };
        let slot = self.cache.slot(key);
        if slot.key == key {
            slot.value += 1;
            return;
        }
        let evicted = std::mem::replace(slot, Slot { key, value: 1 });
        if evicted.value > 0 {
            self.queue.push(evicted);
            if self.queue.len() == QUEUE_LENGTH {
                self.flush();
            }
        }
    }

    fn flush(&mut self) {
        let counts = &mut self.counts.inline;
        std::hint::black_box(self.queue.iter().fold(0, |sum, slot| sum ^ counts.touch(slot.key)));
        for slot in self.queue.drain(..) {
            *counts.entry(slot.key) += slot.value;
        }
    }

    /// The memory of everything that grows with the words.
    pub(super) fn memory_bytes(&self) -> usize {
        self.counts.memory_bytes()
    }

    /// Every word with its count.
    pub(super) fn finish(mut self) -> ByteMap<u64> {
        let cached = self.cache.take();
        self.queue.extend(cached.into_iter().filter(|slot| slot.value > 0));
        self.flush();
        self.counts
    }
}
