//! The key of a word beyond the near table.

use crate::short_key::{ShortKey, mix};

/// A word, if it is short, and a hash of any word.
#[derive(Clone, Copy, Default)]
pub(crate) struct Key {
    /// The word, if it is short.
    pub(crate) short: ShortKey,
    /// A hash of the whole word.
    pub(crate) hash: u64,
}

/// A hash of a word of 16 bytes or more.
fn long_hash(word: &[u8]) -> u64 {
    let mix_in = |hash: u64, chunk: &[u8; 16]| {
        let number = u128::from_le_bytes(*chunk);
        mix(number as u64 ^ hash, (number >> 64) as u64)
    };
    let hash = word.as_chunks::<16>().0.iter().fold(word.len() as u64, mix_in);
    word.last_chunk().map_or(hash, |last| mix_in(hash, last))
}

impl Key {
    /// The key of a word whose short key is `short`.
    #[inline]
    pub(crate) fn new(short: ShortKey, word: &[u8]) -> Self {
        Self { short, hash: if short.is_long() { long_hash(word) } else { short.hash() } }
    }
}
