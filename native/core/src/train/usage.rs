//! How often each token occurs in encoded texts.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{ArrayRef, BinaryArray, RecordBatch, UInt64Array};
use hashbrown::HashMap;
use rayon::prelude::*;

use super::input::{Rows, merges};
use super::tokens::{BYTES, Tokens, byte_numbers};
use crate::encode::{LineSegmenter, Merges, Scratch, SuperwordMerges};
use crate::pattern::Pattern;
use crate::pools::thread_pool;
use crate::stop::NEVER;
use crate::{Error, Result};

/// How many rows one thread encodes at a time.
const CHUNK_ROWS: usize = 1 << 14;

/// Which merges are of superwords, and how lines are cut. The counts do not depend on either.
#[derive(Clone, Copy, Debug)]
pub struct SuperwordRanks {
    /// The rank of the first merge of superwords.
    pub first: usize,
    /// The pattern of the lines.
    pub pattern: Pattern,
}

/// Encodes texts by the rank of merges and counts the tokens, each text times its count.
///
/// `merge_rows` has `left` and `right` (binary) in rank order, as [`super::train_bpe`] gives them; `texts` have `word`
/// (binary) and `count` (uint64), as the pattern of the merges cuts them. With `superwords` the words of lines are
/// encoded once, and then joined, which takes much less time. The result has `token` (binary) and `count` (uint64): a
/// row for each single byte in alphabet order, then one for each merge in rank order. A count of 0 is a token that
/// never occurs.
///
/// # Errors
/// [`crate::ErrorKind::Invalid`]: columns that are missing or of another type, a merge of what is not a token before
/// it, one that makes a token again, more merges than the encoder knows, a rank of the first superword beyond all
/// merges, or counts whose sum 64 bits do not hold.
pub fn count_tokens(
    merge_rows: &RecordBatch,
    texts: impl Iterator<Item = Result<RecordBatch>> + Send,
    superwords: Option<SuperwordRanks>,
    threads: usize,
) -> Result<RecordBatch> {
    let tokens = tokens_of(merge_rows)?;
    let encoder = Encoder::new(&tokens, superwords)?;
    let (mut counts, mut bytes) = (vec![0; tokens.next() as usize], 0);
    thread_pool(threads.max(1))?.install(|| {
        for batch in texts {
            let batch = batch?;
            let rows = Rows::new(&batch)?;
            bytes = rows.add_bytes(bytes)?;
            add(&mut counts, &encoder.count(&rows));
        }
        Ok::<_, Error>(())
    })?;
    let strings: ArrayRef =
        Arc::new(BinaryArray::from_iter_values((0..tokens.next()).map(|token| tokens.bytes(token))));
    let counts: ArrayRef = Arc::new(UInt64Array::from(counts));
    Ok(RecordBatch::try_from_iter_with_nullable([("token", strings, false), ("count", counts, false)])?)
}

/// Encodes rows on the threads of a pool.
struct Encoder {
    merges: EncoderMerges,
    /// The length of each token in bytes.
    lengths: Arc<[u32]>,
    /// Those that no thread uses now.
    segmenters: Mutex<Vec<LineSegmenter>>,
}

enum EncoderMerges {
    /// Each text is merged at once.
    Whole(Merges),
    /// The words of lines come from a cache.
    Lines(Box<SuperwordMerges>),
}

impl Encoder {
    fn new(tokens: &Tokens, superwords: Option<SuperwordRanks>) -> Result<Self> {
        let merges: Vec<_> = tokens.merges().collect();
        let lengths: Arc<[u32]> = (0..tokens.next()).map(|token| tokens.bytes(token).len() as u32).collect();
        let table = |count| Merges::new(Box::new(byte_numbers()), &merges[..count], Arc::clone(&lengths));
        let all = merges.len();
        let lines = |SuperwordRanks { first, pattern }| {
            SuperwordMerges::new(table(first), table(all), &merges, first, pattern.words())
        };
        if let Some(SuperwordRanks { first, .. }) = superwords.filter(|ranks| ranks.first > all) {
            return Err(Error::invalid(format!("the first superword is merge {first}, but there are {all} merges")));
        }
        let merges = match superwords.and_then(lines) {
            Some(lines) => EncoderMerges::Lines(Box::new(lines)),
            None => EncoderMerges::Whole(table(all)),
        };
        Ok(Self { merges, lengths, segmenters: Mutex::default() })
    }

    /// How often each token occurs in some rows, each row times its count.
    fn count(&self, rows: &Rows<'_>) -> Vec<u64> {
        let starts: Vec<usize> = (0..rows.len()).step_by(CHUNK_ROWS).collect();
        let count = |mut counts: Vec<u64>, start: usize| {
            let rows = (start..rows.len().min(start + CHUNK_ROWS)).map(|row| rows.get(row));
            let rows = rows.filter(|&(text, count, _)| count > 0 && !text.is_empty());
            match &self.merges {
                EncoderMerges::Whole(merges) => count_each(merges, rows, &mut counts),
                EncoderMerges::Lines(merges) => self.count_lines(merges, rows, &mut counts),
            }
            counts
        };
        let sum = |mut counts: Vec<u64>, others: Vec<u64>| {
            add(&mut counts, &others);
            counts
        };
        let none = || vec![0; self.lengths.len()];
        starts.into_par_iter().fold(none, count).reduce(none, sum)
    }

    fn count_lines<'r>(
        &self,
        merges: &SuperwordMerges,
        rows: impl Iterator<Item = (&'r [u8], u64, u16)>,
        counts: &mut [u64],
    ) {
        let (mut text, mut ends, mut weights, mut tokens) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (line, count, _) in rows {
            text.extend_from_slice(line);
            ends.push(text.len());
            weights.push(count);
        }
        let resting = self.segmenters.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut segmenter = resting.unwrap_or_default();
        segmenter.segment_superwords(merges, &text, &ends, &mut tokens);
        self.segmenters.lock().unwrap_or_else(PoisonError::into_inner).push(segmenter);
        let (mut at, mut line) = (0, 0);
        for token in tokens {
            counts[token as usize] += weights[line];
            at += self.lengths[token as usize] as usize;
            line += usize::from(at == ends[line]);
        }
    }
}

fn count_each<'r>(merges: &Merges, rows: impl Iterator<Item = (&'r [u8], u64, u16)>, counts: &mut [u64]) {
    let (mut tokens, mut scratch) = (Vec::new(), Scratch::default());
    for (text, count, _) in rows {
        tokens.clear();
        merges.merge(&mut scratch, text, &NEVER, &mut tokens);
        for &token in &tokens {
            counts[token as usize] += count;
        }
    }
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
        let (joined, token) = ([left, right].concat(), tokens.merge(find(left)?, find(right)?));
        if known.contains_key(&joined) {
            return Err(Error::invalid(format!("merge {rank}: \"{}\" is a token before it", joined.escape_ascii())));
        }
        known.insert(joined, token);
    }
    tokens.check_number()?;
    Ok(tokens)
}
