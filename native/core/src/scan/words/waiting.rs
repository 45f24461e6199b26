//! Words that wait for their slots in the table of all words.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;

use super::near::{Counted, Leaving, Place};
use crate::short_key::{KEY_BYTES, ShortKey};

const LONG_HASH: FixedState = FixedState::with_seed(0x5bd1_e995);

/// A word that waits for its slot.
#[derive(Clone, Copy, Default)]
pub(super) struct WaitingWord {
    pub(super) key: ShortKey,
    /// The high bits of its hash, more than any table has slots.
    pub(super) hash: u32,
    /// Where it is, if it is long.
    start: u32,
    end: u32,
    pub(super) counted: Counted,
    /// Where it is among the words met most recently, if it is there.
    pub(super) place: Option<Place>,
}

impl WaitingWord {
    pub(super) fn short(Leaving { key, counted }: Leaving, place: Option<Place>) -> Self {
        Self { key, hash: high_bits(key), counted, place, ..Self::default() }
    }

    pub(super) fn long(source: &[u8], start: usize, end: usize, counted: Counted) -> Self {
        let key = ShortKey::of_hash(LONG_HASH.hash_one(&source[start..end]));
        Self { key, hash: high_bits(key), start: start as u32, end: end as u32, counted, place: None }
    }

    /// The bytes of the word, in `buffer` if they are few.
    #[inline]
    pub(super) fn text<'a>(&self, source: &'a [u8], buffer: &'a mut [u8; KEY_BYTES]) -> &'a [u8] {
        if self.key.is_long() { &source[self.start as usize..self.end as usize] } else { self.key.bytes(buffer) }
    }
}

fn high_bits(key: ShortKey) -> u32 {
    (key.hash() >> u32::BITS) as u32
}
