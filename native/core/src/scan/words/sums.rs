//! The words of several tables, added up, in the order of their hashes: sorting them bytewise takes longer than
//! counting.

use std::ops::Range;

use arrow_array::RecordBatch;
use rayon::prelude::*;

use super::table::{AHEAD, CountedWord, WordTable};
use crate::Result;
use crate::counts::WordBatch;
use crate::short_key::KEY_BYTES;

/// Bytes of words that are put in order at a time, about.
const RANGE_BYTES: usize = 1 << 21;

/// Every word of `tables` once, with the sum of its counts, by hash; words of one hash bytewise. The order of rows
/// depends on nothing but the words, where batches end also on the tables. Uses the current thread pool.
pub(super) fn add_up(tables: &[WordTable]) -> Result<Vec<RecordBatch>> {
    let bytes: usize = tables.iter().map(WordTable::text_bytes).sum();
    let ranges = (bytes / RANGE_BYTES + 1) as u64;
    let border = |number: u64| (number << u32::BITS) / ranges;
    let range = |number| words_within(tables, border(number)..border(number + 1));
    let batches: Result<Vec<_>> = (0..ranges).into_par_iter().map(range).collect();
    Ok(batches?.into_iter().flatten().collect())
}

fn words_within(tables: &[WordTable], hashes: Range<u64>) -> Result<Vec<RecordBatch>> {
    let mut words: Vec<CountedWord> = tables.iter().flat_map(|table| table.within(hashes.clone())).collect();
    words.sort_unstable_by(CountedWord::order);
    let (mut batches, mut batch) = (Vec::new(), WordBatch::default());
    let mut buffer = [0; KEY_BYTES];
    let mut later = words.iter().skip(AHEAD);
    for same in words.chunk_by(|left, right| left.order(right).is_eq()) {
        later.by_ref().take(same.len()).for_each(CountedWord::prefetch);
        let word = same[0].text(&mut buffer);
        if !batch.has_room(word) {
            batches.push(std::mem::take(&mut batch).finish()?);
        }
        batch.push(word, same.iter().map(CountedWord::count).sum())?;
    }
    if !batch.is_empty() {
        batches.push(batch.finish()?);
    }
    Ok(batches)
}
