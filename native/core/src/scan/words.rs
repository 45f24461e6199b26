//! Word counts: counted by each thread, then merged and sorted.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, RecordBatch, UInt64Array};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use rayon::slice::ParallelSliceMut;

use super::bytemap::ByteMap;
use super::inline::{Cache, Inline, Slot};
use super::output::batch;
use crate::{Error, Result};

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

    /// Every word with its count.
    fn finish(mut self) -> ByteMap<u64> {
        let cached = self.cache.take();
        self.queue.extend(cached.into_iter().filter(|slot| slot.value > 0));
        self.flush();
        self.counts
    }
}

/// A word in the arena with its count.
struct Entry {
    /// Its first 8 bytes as a big-endian number, zeros after its end: most comparisons need no more.
    prefix: u64,
    start: usize,
    length: usize,
    count: u64,
}

/// The words of all `counters` with the sums of their counts, sorted bytewise: word (binary), count (u64).
///
/// # Errors
///
/// If the words together are longer than 2 GiB.
pub(super) fn merge(counters: Vec<WordCounter>) -> Result<RecordBatch> {
    let maps: Vec<_> = counters.into_iter().map(WordCounter::finish).collect();
    let mut arena = Vec::new();
    let mut entries = Vec::with_capacity(maps.iter().map(ByteMap::len).sum());
    for map in maps {
        map.for_each(|word, count| {
            entries.push(Entry { prefix: prefix(word), start: arena.len(), length: word.len(), count });
            arena.extend_from_slice(word);
        });
    }
    entries.par_sort_unstable_by(|left, right| compare(&arena, left, right));
    entries.dedup_by(|next, first| {
        let same = compare(&arena, next, first).is_eq();
        first.count += if same { next.count } else { 0 };
        same
    });
    let counts = UInt64Array::from_iter_values(entries.iter().map(|entry| entry.count));
    batch([("word", words(&arena, &entries)?), ("count", Arc::new(counts))])
}

fn prefix(word: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let length = word.len().min(8);
    bytes[..length].copy_from_slice(&word[..length]);
    u64::from_be_bytes(bytes)
}

fn text<'a>(arena: &'a [u8], entry: &Entry) -> &'a [u8] {
    &arena[entry.start..entry.start + entry.length]
}

fn compare(arena: &[u8], left: &Entry, right: &Entry) -> Ordering {
    left.prefix.cmp(&right.prefix).then_with(|| text(arena, left).cmp(text(arena, right)))
}

fn words(arena: &[u8], entries: &[Entry]) -> Result<ArrayRef> {
    let mut values = Vec::with_capacity(entries.iter().map(|entry| entry.length).sum());
    let mut offsets = Vec::with_capacity(entries.len() + 1);
    offsets.push(0);
    for entry in entries {
        values.extend_from_slice(text(arena, entry));
        offsets.push(i32::try_from(values.len()).map_err(|_| {
            Error::invalid("the distinct words of one scan are longer than 2 GiB: finish scans more often")
        })?);
    }
    let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
    Ok(Arc::new(BinaryArray::try_new(offsets, Buffer::from_vec(values), None)?))
}
