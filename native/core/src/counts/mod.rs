//! Words with counts, more of them than memory may hold: sorted runs in memory and on disk, and their merge.
//!
//! Words are byte strings of any kind and length. They are kept in partitions, CRC-32 of the word modulo their number
//! (the CRC of zlib) or one that their table has, and sorted bytewise inside each. What does not fit in memory is
//! written as a sorted run to a temporary file, [`Spill`] keeps the runs, and a k-way merge gives the words back as
//! Arrow batches ([`WordReader`]), with equal words added up. Counts are sums, so the result does not depend on how
//! often, when, or whether words were written out. [`merge`] does the same for sorted runs that come as Arrow batches.
//!
//! Not done here: counting, and deciding when there is too much.

mod batches;
mod head;
mod merge;
mod reader;
mod run;
mod run_reader;
mod sorted_words;
mod spill;
#[cfg(test)]
mod tests;

use arrow_array::RecordBatchReader;

use crate::Result;
use batches::Batches;
pub(crate) use head::partition;
use merge::{Merge, Source};
pub use reader::WordReader;
pub(crate) use reader::{WordBatch, words_schema};
pub(crate) use sorted_words::{SortedWords, Words};
pub(crate) use spill::Spill;

/// Merges runs of words, each with the columns word (binary) and count (u64) and sorted bytewise by word, into one such
/// run that has every word once, with the sum of its counts. Of each run one batch is in memory at a time.
///
/// # Errors
///
/// If a column is missing, or has another type. The reader gives an error if a run cannot be read or is not sorted.
pub fn merge(runs: Vec<Box<dyn RecordBatchReader + Send>>) -> Result<WordReader> {
    let sources = runs.into_iter().enumerate().map(|(number, run)| Ok(Source::Batches(Batches::new(number, run)?)));
    Ok(WordReader::words(Merge::new(sources.collect::<Result<_>>()?)?))
}
