//! The order in which corpus merges are learned.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::pairs::Pairs;

/// A queued pair: what is worth more first, then the smaller pair by creation order, as Hugging Face's trainer has it.
type Entry = (u64, Reverse<(u32, u32)>, u32);

/// Numbers that share their highest bit and the three below it share a level.
const LEVELS: usize = 62 << 3;

fn level(count: u64) -> usize {
    let shift = (u64::BITS - count.leading_zeros()).saturating_sub(4);
    (shift as usize) * 8 + (count >> shift) as usize
}

/// Gives out pairs, what is worth most first, while that falls. A pair is worth its count, or less where that is
/// capped.
///
/// Only pairs of the highest level are in a heap. The others wait unsorted by level and are looked at again when
/// theirs comes, with what they are worth then: most pairs are so rare that this never happens.
pub(super) struct Queue {
    /// Pairs that are worth less are not given out.
    least: u64,
    waiting: Vec<Vec<u32>>,
    heap: BinaryHeap<Entry>,
    current: usize,
}

impl Queue {
    /// Makes an empty queue of pairs that are worth at least `least`.
    pub(super) fn new(least: u64) -> Self {
        Self { least: least.max(1), waiting: vec![Vec::new(); LEVELS], heap: BinaryHeap::new(), current: LEVELS }
    }

    /// Adds a pair, once, with what it is worth at present.
    pub(super) fn push(&mut self, index: u32, pairs: &Pairs) {
        let pair = pairs.get(index);
        let worth = pair.worth();
        if worth < self.least {
            return;
        }
        let level = level(worth);
        if level >= self.current {
            self.heap.push((worth, Reverse((pair.left, pair.right)), index));
        } else {
            self.waiting[level].push(index);
        }
    }

    /// Takes the pair that is worth most.
    pub(super) fn pop(&mut self, pairs: &Pairs) -> Option<u32> {
        loop {
            let Some((worth, _, index)) = self.heap.pop() else {
                if !self.descend(pairs) {
                    return None;
                }
                continue;
            };
            if pairs.get(index).worth() == worth {
                return Some(index);
            }
            self.push(index, pairs);
        }
    }

    fn descend(&mut self, pairs: &Pairs) -> bool {
        if self.current == 0 {
            return false;
        }
        self.current -= 1;
        for index in std::mem::take(&mut self.waiting[self.current]) {
            self.push(index, pairs);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_never_fall_as_counts_rise() {
        let mut counts: Vec<u64> = (1..5000).chain((12..64).map(|bit| 1 << bit)).chain([u64::MAX]).collect();
        counts.sort_unstable();
        assert!(counts.windows(2).all(|pair| level(pair[0]) <= level(pair[1])));
        assert!(level(u64::MAX) < LEVELS);
        assert_eq!((level(1), level(15), level(16), level(17), level(18)), (1, 15, 16, 16, 17));
    }

    #[test]
    fn pairs_come_by_count_then_creation_order_with_the_counts_they_have_then() {
        let mut pairs = Pairs::default();
        for (left, count) in [(5, 40), (3, 100), (4, 40), (9, 101), (1, 1)] {
            pairs.insert(left, 0, count, 0);
        }
        let mut queue = Queue::new(2);
        (0..pairs.next()).for_each(|index| queue.push(index, &pairs));
        assert_eq!(queue.pop(&pairs), Some(3));
        pairs.lose(3, 0, 60);
        let rest: Vec<u32> = std::iter::from_fn(|| queue.pop(&pairs)).map(|index| pairs.get(index).left).collect();
        assert_eq!(rest, [3, 4, 5], "the last one occurs once");
    }
}
