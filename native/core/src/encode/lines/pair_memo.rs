//! A memo of which pairs of tokens of words are valid.

use crate::encode::bpe::{Merges, entry_value, pack_entry, pack_pair, pair_hash};

/// An entry that is of no pair.
const NO_PAIR: u64 = u64::MAX;
const MEMO_BITS: u32 = 16;

/// For some pairs, whether they are valid; a new one takes the place of the one before it.
#[derive(Default)]
pub(super) struct PairMemo(Vec<u64>);

impl PairMemo {
    /// Makes room; to be called before use.
    pub(super) fn prepare(&mut self) {
        self.0.resize(1 << MEMO_BITS, NO_PAIR);
    }

    /// Whether the merges of words make these two tokens of their text.
    #[inline]
    pub(super) fn is_valid_pair(&mut self, words: &Merges, left: u32, right: u32) -> bool {
        let pair = pack_pair(left, right);
        let entry = &mut self.0[(pair_hash(pair) >> (u64::BITS - MEMO_BITS)) as usize];
        if let Some(known) = entry_value(*entry, pair) {
            return known == 1;
        }
        let found = words.is_valid_pair(left, right);
        *entry = pack_entry(pair, u32::from(found));
        found
    }
}
