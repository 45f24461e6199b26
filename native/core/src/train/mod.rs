//! Byte-level BPE training, exact and seeded: word counts in, ranked merges out.
//!
//! Without seeds the merges are those of Hugging Face's `BpeTrainer` on the same words, with the byte alphabet as
//! its `initial_alphabet` and `min_frequency = 0`: the most frequent pair first, among equals the smaller one by
//! creation order of its tokens (the bytes in alphabet order, then merges as they were made). Counts are 64-bit.
//! With seeds, merges come in three phases: 0 for the seeds inside runs of identifier bytes, 1 for the seeds across
//! the borders of such runs, 2 for the words as the seed merges leave them. Encoding by rank gives exactly the
//! segmentation that training ended with.
//!
//! What no merge does, in any phase: join an atomic token to a byte that is no identifier byte (`[A-Za-z0-9_]`),
//! spell a forbidden string, or make a token longer than the bound. So an atomic token that stands as a whole word
//! is one token in any context: its run is settled by phase 0, and nothing joins it to its neighbours.
//!
//! Method: pair counts and occurrence lists updated at each merge (as in Hugging Face's trainer), on a flat array
//! of symbols. It does not split text into words and knows no ids of a vocabulary.

mod corpus;
mod engine;
mod input;
mod pairs;
mod queue;
mod rules;
mod seeds;
#[cfg(test)]
mod tests;
mod tokens;

use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, RecordBatch, UInt8Array, UInt64Array};
use hashbrown::HashSet;

use crate::{Error, ErrorKind, Result};
use engine::Engine;
use rules::Rules;
use tokens::Tokens;

/// How many tokens there are before the first merge.
const BYTES: u32 = 256;

/// A word with how often it occurs.
#[derive(Clone, Copy, Debug)]
struct Word<'a> {
    bytes: &'a [u8],
    count: u64,
}

/// A string that must become one token.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seed {
    token: Vec<u8>,
    atomic: bool,
}

impl Seed {
    fn new(token: Vec<u8>, atomic: bool) -> Result<Self> {
        let shown = token.escape_ascii();
        match token.first() {
            None => Err(Error::invalid("a seed is empty: a token has at least one byte")),
            Some(first) if atomic && (first.is_ascii_digit() || !rules::is_identifier_run(&token)) => {
                Err(Error::invalid(format!("seed \"{shown}\" is atomic but no identifier: it can be pinned only")))
            }
            Some(_) => Ok(Self { token, atomic }),
        }
    }
}

/// When a merge is learned; all merges of a phase rank before those of the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// For the seeds, inside runs of identifier bytes.
    Identifier = 0,
    /// For the seeds, across the borders of such runs and outside them.
    Border = 1,
    /// From the words, as the seed merges leave them.
    Corpus = 2,
}

/// A merge with how often its pair occurred when it was learned.
struct Learned {
    left: u32,
    right: u32,
    count: u64,
    phase: Phase,
}

/// What to learn, beside the words and seeds.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// How many new token strings to make: no single byte, no seed; pieces of seeds count.
    pub vocab_tokens: usize,
    /// Strings that no merge may spell: the names of control and reserved ids.
    pub forbidden: Vec<Vec<u8>>,
    /// The most bytes a token may have; `None` for no bound.
    pub max_token_bytes: Option<usize>,
    /// With 2 or more, the seed merges are learned while the words are being counted.
    pub threads: usize,
}

/// Learns merges from word counts and seeds.
///
/// `words` has columns `word` (binary) and `count` (uint64), in any order; counts of equal words add up. `seeds`
/// has `token` (binary) and `atomic` (bool). The result has one row a merge in rank order: `left` and `right`
/// (binary), `count` (uint64; among the seeds in phases 0 and 1), `phase` (uint8: 0, 1 or 2).
/// The same input in any order gives the same rows.
///
/// # Errors
/// [`ErrorKind::Vocabulary`]: a seed cannot become one token, there are no words, or the vocabulary cannot be
/// filled. [`ErrorKind::Invalid`]: columns that are missing or of another type, or an atomic seed that is no
/// identifier.
pub fn train_bpe(words: &[RecordBatch], seeds: &RecordBatch, options: &Options) -> Result<RecordBatch> {
    let seeds = input::seeds(seeds)?;
    let rules = Rules::new(&seeds, &options.forbidden, options.max_token_bytes);
    let (engine, seeded) = both(options.threads, || count(words), || seeds::learn(&seeds, &rules));
    let (engine, (mut tokens, mut learned)) = (engine?, seeded?);
    let pieces = count_pieces(&seeds, &tokens);
    let wanted = options.vocab_tokens.checked_sub(pieces).ok_or_else(|| too_few(pieces, options.vocab_tokens))?;
    let corpus = corpus::learn(engine, &mut tokens, &rules, wanted);
    if corpus.len() < wanted {
        return Err(unfilled(pieces, corpus.len(), options.vocab_tokens));
    }
    learned.extend(corpus);
    to_batch(&learned, &tokens)
}

fn both<A: Send, B: Send>(threads: usize, a: impl FnOnce() -> A + Send, b: impl FnOnce() -> B + Send) -> (A, B) {
    if threads > 1 { rayon::join(a, b) } else { (a(), b()) }
}

fn count(batches: &[RecordBatch]) -> Result<Engine> {
    let words = input::words(batches)?;
    if words.is_empty() {
        return Err(Error::new(ErrorKind::Vocabulary, "no words with a count above 0: there is no text to learn from"));
    }
    Engine::new(words)
}

fn count_pieces(seeds: &[Seed], tokens: &Tokens) -> usize {
    let spelled: HashSet<&[u8]> = seeds.iter().map(|seed| seed.token.as_slice()).collect();
    tokens.merges().filter(|&(_, _, token)| !spelled.contains(tokens.bytes(token))).count()
}

fn too_few(pieces: usize, vocab_tokens: usize) -> Error {
    Error::new(
        ErrorKind::Vocabulary,
        format!(
            "the seeds need {pieces} pieces as tokens of their own, but only {vocab_tokens} may be made: \
             ask for vocab_tokens >= {pieces}"
        ),
    )
}

fn unfilled(pieces: usize, learned: usize, vocab_tokens: usize) -> Error {
    let most = pieces + learned;
    Error::new(
        ErrorKind::Vocabulary,
        format!(
            "only {most} of {vocab_tokens} tokens could be learned ({pieces} pieces of seeds, {learned} from the words): \
             ask for vocab_tokens <= {most} or give more text"
        ),
    )
}

fn to_batch(learned: &[Learned], tokens: &Tokens) -> Result<RecordBatch> {
    let side = |number: fn(&Learned) -> u32| -> ArrayRef {
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
    Ok(RecordBatch::try_from_iter_with_nullable(columns)?)
}
