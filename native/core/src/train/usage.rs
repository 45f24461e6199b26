//! How often each token occurs in encoded texts.

use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, RecordBatch, UInt64Array};
use hashbrown::HashMap;
use rayon::prelude::*;

use super::input::{Rows, merges};
use super::tokens::{BYTES, Tokens, byte_numbers};
use crate::encode::{Merges, Scratch};
use crate::pools::thread_pool;
use crate::stop::NEVER;
use crate::{Error, Result};

/// How many rows one thread encodes at a time.
const CHUNK_ROWS: usize = 1 << 14;

/// Encodes texts by the rank of merges and counts the tokens, each text times its count.
///
/// `merge_rows` has `left` and `right` (binary) in rank order, as [`super::train_bpe`] gives them; `texts` have `word`
/// (binary) and `count` (uint64), as the pattern of the merges cuts them. The result has `token` (binary) and `count`
/// (uint64): a row for each single byte in alphabet order, then one for each merge in rank order. A count of 0 is a
/// token that never occurs.
///
/// # Errors
/// [`crate::ErrorKind::Invalid`]: columns that are missing or of another type, or a merge of what is not a token before
/// it.
pub fn count_tokens(
    merge_rows: &RecordBatch,
    texts: impl Iterator<Item = Result<RecordBatch>> + Send,
    threads: usize,
) -> Result<RecordBatch> {
    let tokens = tokens_of(merge_rows)?;
    let lengths = (0..tokens.next()).map(|token| tokens.bytes(token).len() as u32).collect();
    let merges = Merges::new(Box::new(byte_numbers()), &tokens.merges().collect::<Vec<_>>(), lengths);
    let mut counts = vec![0; tokens.next() as usize];
    thread_pool(threads.max(1))?.install(|| {
        for batch in texts {
            let batch = batch?;
            add(&mut counts, &count_rows(&Rows::new(&batch)?, &merges, tokens.next() as usize));
        }
        Ok::<_, Error>(())
    })?;
    let strings: ArrayRef =
        Arc::new(BinaryArray::from_iter_values((0..tokens.next()).map(|token| tokens.bytes(token))));
    let counts: ArrayRef = Arc::new(UInt64Array::from(counts));
    Ok(RecordBatch::try_from_iter_with_nullable([("token", strings, false), ("count", counts, false)])?)
}

fn count_rows(rows: &Rows<'_>, merges: &Merges, tokens: usize) -> Vec<u64> {
    let starts: Vec<usize> = (0..rows.len()).step_by(CHUNK_ROWS).collect();
    let nothing = || (vec![0; tokens], Vec::new(), Scratch::default());
    let count = |(mut counts, mut ids, mut scratch): (Vec<u64>, Vec<u32>, Scratch), start: usize| {
        for row in start..rows.len().min(start + CHUNK_ROWS) {
            let (text, count, _) = rows.get(row);
            ids.clear();
            merges.merge(&mut scratch, text, &NEVER, &mut ids);
            for &id in &ids {
                counts[id as usize] += count;
            }
        }
        (counts, ids, scratch)
    };
    let sum = |mut counts: Vec<u64>, others: Vec<u64>| {
        add(&mut counts, &others);
        counts
    };
    starts.into_par_iter().fold(nothing, count).map(|(counts, ..)| counts).reduce(|| vec![0; tokens], sum)
}

fn add(counts: &mut [u64], others: &[u64]) {
    counts.iter_mut().zip(others).for_each(|(count, other)| *count += other);
}

fn tokens_of(batch: &RecordBatch) -> Result<Tokens> {
    let mut tokens = Tokens::new();
    let numbers = byte_numbers();
    let mut known: HashMap<Vec<u8>, u32> = (0..=u8::MAX).map(|byte| (vec![byte], numbers[usize::from(byte)])).collect();
    debug_assert_eq!(known.len(), BYTES as usize);
    for (rank, (left, right)) in merges(batch)?.into_iter().enumerate() {
        let find = |part: &[u8]| {
            let missing = || Error::invalid(format!("merge {rank}: \"{}\" is no token before it", part.escape_ascii()));
            known.get(part).copied().ok_or_else(missing)
        };
        let token = tokens.merge(find(left)?, find(right)?);
        known.insert([left, right].concat(), token);
    }
    Ok(tokens)
}
