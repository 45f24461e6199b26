//! Segments: tokens of words that superwords may join, as words of a cache.
//!
//! A segment is looked up by the bytes of its tokens, as a word is by its own. So most segments are short words, and
//! what is new is merged in lanes, its tokens in place of the bytes.

use std::marker::PhantomData;

use super::superwords::{LineTokens, Superwords};
use crate::Stop;
use crate::encode::bpe::{Lane, MAX_CELLS, Merging, Pairs, Scratch};
use crate::encode::id::Id;

/// What makes the tokens of segments.
pub(super) struct SegmentMerges<'a, T> {
    superwords: &'a Superwords,
    ids: PhantomData<T>,
}

impl<'a, T: Id> SegmentMerges<'a, T> {
    pub(super) fn new(superwords: &'a Superwords) -> Self {
        Self { superwords, ids: PhantomData }
    }
}

/// The tokens of a segment.
fn tokens<T: Id>(segment: &[u8]) -> impl ExactSizeIterator<Item = u32> {
    segment.chunks_exact(T::KEY_BYTES).map(T::from_key)
}

impl<T: Id> Merging for SegmentMerges<'_, T> {
    fn pairs(&self) -> &Pairs {
        self.superwords.pairs()
    }

    fn fill_lane(&self, lane: &mut Lane, segment: &[u8]) -> bool {
        let mut ids = [0; MAX_CELLS];
        let Some(ids) = ids.get_mut(..segment.len() / T::KEY_BYTES) else { return false };
        ids.iter_mut().zip(tokens::<T>(segment)).for_each(|(id, token)| *id = token);
        lane.fill(ids.iter().copied(), |at| self.superwords.rank(ids[at], ids[at + 1]));
        true
    }

    fn merge_any(&self, scratch: &mut Scratch, segment: &[u8], stop: &Stop, out: &mut Vec<u32>) {
        let tokens: Vec<u32> = tokens::<T>(segment).collect();
        let Scratch { lanes, windows } = scratch;
        windows.merge(&LineTokens { superwords: self.superwords, tokens: &tokens }, lanes, stop, out);
    }
}
