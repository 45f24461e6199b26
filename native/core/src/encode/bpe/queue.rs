//! Merging a long word with a priority queue of its pairs: the lowest rank first, of equal ranks the leftmost pair.
//!
//! Most pairs of one rank are found from left to right, so each rank has a list that is popped from its front. A pair
//! that is found out of order goes to a heap beside the list. So nearly every push and pop takes constant time, and
//! none takes more than O(log n).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::pairs::{NONE, Pairs};
use crate::Stop;

/// Marks, in a [`SymbolArray`], the last symbol of a token of two or more.
const END: u32 = 1 << 31;
/// Marks a symbol inside a token.
const INSIDE: u32 = u32::MAX;

/// The lists of emptied ranks are kept up to this size.
const MAX_KEPT: usize = 1024;

/// Pairs, as rank and position, that wait to be merged.
#[derive(Default)]
pub(crate) struct PairQueue {
    buckets: Vec<Bucket>,
    index_of: HashMap<u32, u32, FixedState>,
    /// The ranks that have pairs, each with the index of its bucket.
    active: BinaryHeap<Reverse<(u32, u32)>>,
}

/// The positions of the pairs of one rank.
#[derive(Default)]
struct Bucket {
    sorted: Vec<u32>,
    next: usize,
    late: BinaryHeap<Reverse<u32>>,
}

impl Bucket {
    fn is_empty(&self) -> bool {
        self.next == self.sorted.len() && self.late.is_empty()
    }

    fn push(&mut self, at: u32) {
        if self.sorted.last().is_none_or(|&last| last <= at) {
            self.sorted.push(at);
        } else {
            self.late.push(Reverse(at));
        }
    }

    fn pop(&mut self) -> Option<u32> {
        let first = self.sorted.get(self.next).copied();
        if let Some(&Reverse(late)) = self.late.peek()
            && first.is_none_or(|first| late < first)
        {
            self.late.pop();
            return Some(late);
        }
        self.next += usize::from(first.is_some());
        first
    }

    fn reset(&mut self) {
        self.next = 0;
        self.sorted.clear();
        self.sorted.shrink_to(MAX_KEPT);
        self.late.shrink_to(MAX_KEPT);
    }
}

impl PairQueue {
    /// Adds the pair at `at`.
    pub(crate) fn push(&mut self, rank: u32, at: usize) {
        let buckets = &mut self.buckets;
        let index = *self.index_of.entry(rank).or_insert_with(|| {
            buckets.push(Bucket::default());
            buckets.len() as u32 - 1
        });
        let bucket = &mut buckets[index as usize];
        if bucket.is_empty() {
            self.active.push(Reverse((rank, index)));
        }
        bucket.push(at as u32);
    }

    /// Takes the leftmost pair of the lowest rank: its rank and its position.
    pub(crate) fn pop(&mut self) -> Option<(u32, usize)> {
        let &Reverse((rank, index)) = self.active.peek()?;
        let bucket = &mut self.buckets[index as usize];
        let at = bucket.pop()?;
        if bucket.is_empty() {
            bucket.reset();
            self.active.pop();
        }
        Some((rank, at as usize))
    }
}

/// Merges tokens of one symbol each with a queue of pairs, not all of them once it is to stop; `lengths` says how many
/// symbols went into each token.
pub(crate) fn merge_queued(
    pairs: &Pairs,
    lengths: &[u32],
    tokens: impl Iterator<Item = u32>,
    stop: &Stop,
    out: &mut Vec<u32>,
) {
    let tokens: Vec<u32> = tokens.collect();
    let mut queue = PairQueue::default();
    for (at, pair) in tokens.windows(2).enumerate() {
        let rank = pairs.rank(pair[0], pair[1]);
        if rank != NONE {
            queue.push(rank, at);
        }
    }
    SymbolArray { pairs, lengths, tokens }.merge(queue, stop, out);
}

/// The symbols of a word that is too long for a lane.
///
/// `tokens` has one cell per symbol: the token that starts there, or, at the last symbol of a longer token, the token
/// with `END`. A token's neighbours are found by lengths, so that no links are kept.
struct SymbolArray<'a> {
    pairs: &'a Pairs,
    lengths: &'a [u32],
    tokens: Vec<u32>,
}

impl SymbolArray<'_> {
    /// Joins the pairs of the queue and the pairs that this makes, and appends the resulting tokens to `out`. A pair
    /// that has changed since it was queued is recognised by its rank.
    fn merge(mut self, mut queue: PairQueue, stop: &Stop, out: &mut Vec<u32>) {
        while !stop.is_set()
            && let Some((rank, at)) = queue.pop()
        {
            let Some((_, end)) = self.pair_at(at).filter(|pair| pair.0 == rank) else { continue };
            self.join(at, end, self.pairs.joined(rank));
            if let Some(before) = self.start_before(at)
                && let Some((previous, _)) = self.pair_at(before)
            {
                queue.push(previous, before);
            }
            if let Some((next, _)) = self.pair_at(at) {
                queue.push(next, at);
            }
        }
        out.extend(self.tokens.into_iter().filter(|token| token & END == 0));
    }

    fn length(&self, token: u32) -> usize {
        self.lengths[token as usize] as usize
    }

    /// The rank of the token that starts at `at` with the next one, and the end of both, if there are such tokens and a
    /// merge.
    fn pair_at(&self, at: usize) -> Option<(u32, usize)> {
        let left = self.tokens[at];
        if left & END != 0 {
            return None;
        }
        let middle = at + self.length(left);
        let right = *self.tokens.get(middle)?;
        let rank = if right & END == 0 { self.pairs.rank(left, right) } else { NONE };
        (rank != NONE).then(|| (rank, middle + self.length(right)))
    }

    /// The start of the token before the one at `at`.
    fn start_before(&self, at: usize) -> Option<usize> {
        let last = at.checked_sub(1)?;
        Some(at - self.length(self.tokens[last] & !END))
    }

    fn join(&mut self, at: usize, end: usize, joined: u32) {
        let middle = at + self.length(self.tokens[at]);
        self.tokens[middle - 1] = INSIDE;
        self.tokens[middle] = INSIDE;
        self.tokens[at] = joined;
        self.tokens[end - 1] = joined | END;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_come_by_rank_then_position_however_they_were_pushed() {
        let mut queue = PairQueue::default();
        let mut twin = BinaryHeap::new();
        let mut state = 3_u64;
        for step in 0..200_000_u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            if state >> 63 == 0 || step < 1000 {
                let (rank, at) = ((state >> 40) as u32 % 7, (state >> 20) as usize % 5000);
                queue.push(rank, at);
                twin.push(Reverse((rank, at)));
            } else {
                assert_eq!(queue.pop(), twin.pop().map(|Reverse(pair)| pair));
            }
        }
        while let Some(Reverse(pair)) = twin.pop() {
            assert_eq!(queue.pop(), Some(pair));
        }
        assert_eq!(queue.pop(), None);
    }
}
