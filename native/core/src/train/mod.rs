//! Byte-level BPE training, exact and seeded: word counts in, ranked merges out.
//!
//! Without seeds the merges equal those of Hugging Face's `BpeTrainer` on the same words, with the byte alphabet as
//! its `initial_alphabet` and `min_frequency = 0`: the most frequent pair first, among equals the smaller one by
//! creation order of its tokens (the bytes in alphabet order, then merges as they were made). Counts are 64-bit.
//! With seeds, merges come in phases: 0 for the seeds inside runs of identifier bytes, 1 for the seeds across the
//! borders of such runs, 2 for the words as the seed merges leave them, and 3 for superwords, learned in lines
//! as all merges before leave them, the borders of words forgotten. Encoding by rank gives exactly the segmentation
//! that training ended with: of words after phase 2, of lines after phase 3.
//!
//! No merge, in any phase, may join an atomic token to a byte that is not an identifier byte (`[A-Za-z0-9_]`),
//! spell a forbidden string, or make a token longer than the bound. So an atomic token that is a whole word
//! is one token in any context: its run is settled by phase 0, and nothing joins it to its neighbours.
//!
//! Method: pair counts and occurrence lists updated at each merge (as in Hugging Face's trainer), on a flat array of
//! symbols, for the frequent pairs only: when these are used up, the texts are counted again for rarer ones. It does
//! not split text into words and knows no ids of a vocabulary.

mod bound;
mod corpus;
mod engine;
mod group_cap;
mod input;
mod merges;
mod options;
mod pair_counts;
mod pairs;
mod queue;
mod rules;
mod seed;
mod seed_merges;
#[cfg(test)]
mod tests;
mod texts;
mod tokens;
mod usage;

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, RecordBatch, UInt8Array, UInt64Array};
use hashbrown::HashSet;

use crate::pattern::Pattern;
use crate::pools::thread_pool;
use crate::{Error, ErrorKind, Result};
use bound::{Bound, Excess, LeftOut};
use group_cap::GroupCap;
use merges::{LearnedMerge, Phase};
pub use options::{Options, SuperwordBounds};
use rules::Rules;
use seed::Seed;
use texts::{Collector, Held};
use tokens::Tokens;
pub use usage::{SuperwordRanks, count_tokens};

/// Learns merges from word counts and seeds, and then from the counts of lines.
///
/// `words` and `lines` have columns `word` (binary) and `count` (uint64), in any order; counts of equal ones add up.
/// Both are read a batch at a time and not held. With `group_cap` they have `group` (uint16) too, below which no row is
/// added to another.
/// `seeds` has `token` (binary) and `atomic` (bool). The result has one row per merge in rank order: `left` and `right`
/// (binary), `count` (uint64; among the seeds in phases 0 and 1), `phase` (uint8: 0 to 3). The same input in any order
/// gives the same rows.
///
/// Where there is more than `max_held_tokens`, words below a count are dropped, and lines below a count are thinned: so
/// many are kept, chosen by their CRC-32, that each represents that count. Each text must then be in one row only. The
/// metadata of the result say what was left out: `words_least_count`, `words_left_out`, `units_least_count`,
/// `units_left_out`; a least count of 1 leaves out nothing.
///
/// # Errors
/// [`ErrorKind::Vocabulary`]: a seed cannot become one token, there are no words or lines, or the vocabulary cannot be
/// filled. [`ErrorKind::Invalid`]: columns that are missing or of another type, an atomic seed that is not an
/// identifier, or superwords without bounds.
pub fn train_bpe(
    words: impl Iterator<Item = Result<RecordBatch>> + Send,
    lines: impl Iterator<Item = Result<RecordBatch>> + Send,
    seeds: &RecordBatch,
    options: &Options,
) -> Result<RecordBatch> {
    if options.superword_tokens > 0 && options.superwords.is_none() {
        return Err(Error::invalid("superword_tokens without unit_pattern and bounds"));
    }
    thread_pool(options.threads.max(1))?.install(|| train(words, lines, seeds, options))
}

fn train(
    words: impl Iterator<Item = Result<RecordBatch>>,
    lines: impl Iterator<Item = Result<RecordBatch>>,
    seeds: &RecordBatch,
    options: &Options,
) -> Result<RecordBatch> {
    let seeds = input::seeds(seeds)?;
    let rules =
        Rules::new(&seeds, &options.forbidden, options.max_token_bytes).with_superwords(options.superwords.clone());
    let (mut tokens, mut learned) = seed_merges::learn(&seeds, &rules)?;
    let (texts, words_left_out) = collect(
        words,
        Collector::new(&tokens, Bound::new(options.max_held_tokens, Excess::Drop), word_pattern(options))?,
        "words",
    )?;
    let pieces = count_pieces(&seeds, &tokens);
    let least = pieces + options.superword_tokens;
    let wanted = options.vocab_tokens.checked_sub(least).ok_or_else(|| too_few(pieces, options))?;
    let corpus = corpus::learn(texts, &mut tokens, &rules, wanted, Phase::Corpus, cap(options).as_ref())?;
    if corpus.len() < wanted {
        return Err(unfilled(pieces, corpus.len(), options));
    }
    learned.extend(corpus);
    let mut lines_left_out = LeftOut { least: 1, texts: 0 };
    if options.superword_tokens > 0 {
        let (superwords, left_out) = learn_superwords(lines, &mut tokens, &rules, options)?;
        learned.extend(superwords);
        lines_left_out = left_out;
    }
    to_batch(&learned, &tokens, metadata(words_left_out, lines_left_out))
}

/// Learns the merges of superwords from lines, and says which lines were left out.
fn learn_superwords(
    lines: impl Iterator<Item = Result<RecordBatch>>,
    tokens: &mut Tokens,
    rules: &Rules,
    options: &Options,
) -> Result<(Vec<LearnedMerge>, LeftOut)> {
    let (texts, left_out) = collect(
        lines,
        Collector::new(tokens, Bound::new(options.max_held_tokens, Excess::Thin), word_pattern(options))?,
        "units",
    )?;
    let superwords =
        corpus::learn(texts, tokens, rules, options.superword_tokens, Phase::Superword, cap(options).as_ref())?;
    if superwords.len() < options.superword_tokens {
        return Err(few_superwords(superwords.len(), options));
    }
    Ok((superwords, left_out))
}

fn word_pattern(options: &Options) -> Pattern {
    options.superwords.as_ref().map_or(Pattern::NAMES, |superwords| superwords.pattern.words())
}

fn cap(options: &Options) -> Option<GroupCap> {
    options.group_cap.map(GroupCap::new)
}

fn metadata(words: LeftOut, lines: LeftOut) -> HashMap<String, String> {
    let named = [("words", words), ("units", lines)].into_iter();
    named
        .flat_map(|(what, LeftOut { least, texts })| {
            [(format!("{what}_least_count"), least), (format!("{what}_left_out"), texts)]
        })
        .map(|(name, number)| (name, number.to_string()))
        .collect()
}

/// Cuts the texts of all batches into tokens, one batch at a time, and says which were left out.
fn collect(
    batches: impl Iterator<Item = Result<RecordBatch>>,
    mut collector: Collector<'_>,
    what: &str,
) -> Result<(Held, LeftOut)> {
    let mut occur = false;
    for batch in batches {
        let batch = batch?;
        let rows = input::Rows::new(&batch)?;
        occur |= rows.occur();
        collector.add_rows(&rows);
    }
    if !occur {
        return Err(no_text(what));
    }
    let left_out = collector.left_out();
    Ok((collector.finish()?, left_out))
}

fn no_text(what: &str) -> Error {
    let message = format!("no {what} with a count above 0: there is no text to learn from");
    Error::new(ErrorKind::Vocabulary, message)
}

fn count_pieces(seeds: &[Seed], tokens: &Tokens) -> usize {
    let spelled: HashSet<&[u8]> = seeds.iter().map(|seed| seed.token.as_slice()).collect();
    tokens.merges().filter(|&(_, _, token)| !spelled.contains(tokens.bytes(token))).count()
}

fn too_few(pieces: usize, options: &Options) -> Error {
    let Options { vocab_tokens, superword_tokens, .. } = options;
    let superwords =
        if *superword_tokens > 0 { format!(" beside {superword_tokens} superwords") } else { String::new() };
    Error::new(
        ErrorKind::Vocabulary,
        format!(
            "the seeds need {pieces} pieces as tokens of their own{superwords}, but only {vocab_tokens} may be made: \
             ask for vocab_tokens >= {}",
            pieces + superword_tokens
        ),
    )
}

fn unfilled(pieces: usize, learned: usize, options: &Options) -> Error {
    let most = pieces + learned + options.superword_tokens;
    let wanted = options.vocab_tokens;
    Error::new(
        ErrorKind::Vocabulary,
        format!(
            "only {most} of {wanted} tokens could be learned ({pieces} pieces of seeds, {learned} from the words): \
             ask for vocab_tokens <= {most} or give more text"
        ),
    )
}

fn few_superwords(learned: usize, options: &Options) -> Error {
    let (wanted, tokens) = (options.superword_tokens, options.vocab_tokens);
    let most = tokens - wanted + learned;
    Error::new(
        ErrorKind::Vocabulary,
        format!(
            "only {learned} of {wanted} superwords could be learned from the units: ask for vocab_tokens <= {most} with \
             superword_tokens <= {learned}, or give more text"
        ),
    )
}

fn to_batch(learned: &[LearnedMerge], tokens: &Tokens, metadata: HashMap<String, String>) -> Result<RecordBatch> {
    let side = |number: fn(&LearnedMerge) -> u32| -> ArrayRef {
        Arc::new(BinaryArray::from_iter_values(learned.iter().map(|merge| tokens.bytes(number(merge)))))
    };
    let counts: UInt64Array = learned.iter().map(|merge| merge.count).collect();
    let phases: UInt8Array = learned.iter().map(|merge| merge.phase as u8).collect();
    let columns: [(&str, ArrayRef, bool); 4] = [
        ("left", side(|merge| merge.left), false),
        ("right", side(|merge| merge.right), false),
        ("count", Arc::new(counts), false),
        ("phase", Arc::new(phases), false),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(columns)?;
    let schema = batch.schema().as_ref().clone().with_metadata(metadata);
    Ok(batch.with_schema(Arc::new(schema))?)
}
