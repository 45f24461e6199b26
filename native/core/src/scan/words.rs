//! Word counts, merged and sorted.

use std::cmp::Ordering;

use arrow_array::{BinaryArray, RecordBatch, UInt64Array};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use rayon::slice::ParallelSliceMut;

use super::bytemap::ByteMap;
use super::output::batch;
use crate::{Error, Result};

/// A word in the arena with its count.
struct Entry {
    /// Its first 8 bytes as a big-endian number, zeros after its end: most comparisons need no more.
    prefix: u64,
    start: usize,
    length: usize,
    count: u64,
}

/// The words of all `maps` with the sums of their counts, sorted bytewise: word (binary), count (u64).
///
/// # Errors
///
/// If the words together are longer than 2 GiB.
pub(super) fn merge(maps: Vec<ByteMap<u64>>) -> Result<RecordBatch> {
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
    batch([("word", words(&arena, &entries)?), ("count", std::sync::Arc::new(counts))])
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

fn words(arena: &[u8], entries: &[Entry]) -> Result<arrow_array::ArrayRef> {
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
    Ok(std::sync::Arc::new(BinaryArray::try_new(offsets, Buffer::from_vec(values), None)?))
}
