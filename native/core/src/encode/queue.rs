//! A priority queue of pairs in a long word: the lowest rank first, the leftmost of equals.
//!
//! Most pairs of one rank come from left to right, so each rank has a list that is popped from its front; a pair that comes
//! out of order goes to a heap beside it. So nearly every push and pop takes constant time, and none more than O(log n).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

/// The lists of emptied ranks are kept up to this size.
const MAX_KEPT: usize = 1024;

/// Pairs, as rank and position, that wait to be merged.
#[derive(Default)]
pub(super) struct PairQueue {
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
    pub(super) fn push(&mut self, rank: u32, at: usize) {
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
    pub(super) fn pop(&mut self) -> Option<(u32, usize)> {
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
