//! What a caller asks of training.

use crate::pattern::Pattern;

/// What to learn, beside the words and seeds.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// How many new token strings to make: no single byte, no seed; pieces of seeds count.
    pub vocab_tokens: usize,
    /// Strings that no merge may spell: the names of control and reserved ids.
    pub forbidden: Vec<Vec<u8>>,
    /// The most bytes a token may have; `None` for no bound.
    pub max_token_bytes: Option<usize>,
    /// How many of the new tokens to learn from lines.
    pub superword_tokens: usize,
    /// What bounds them; must be given if there are any.
    pub superwords: Option<SuperwordBounds>,
    /// The most tokens that the distinct words, or lines, may have in all as training begins, each of which takes about
    /// 20 bytes of memory; `None` for no bound.
    pub max_held_tokens: Option<usize>,
    /// How many times as often as in the other groups of texts, by the bytes of all, a pair counts in one at most;
    /// `None` for no cap.
    pub group_cap: Option<f64>,
    /// The result does not depend on them.
    pub threads: usize,
}

/// What bounds the tokens that are learned from lines.
#[derive(Clone, Debug)]
pub struct SuperwordBounds {
    /// The pattern of the lines.
    pub pattern: Pattern,
    /// The most words that a token may have, as the pattern of words cuts the token by itself.
    pub max_words: usize,
    /// The most bytes.
    pub max_bytes: usize,
}
