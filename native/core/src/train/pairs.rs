//! The pairs of neighbouring tokens: how often each occurs, and where.

use std::ops::Range;

use hashbrown::HashTable;

use crate::memory::use_large_pages;

/// A pair of tokens.
pub(super) struct Pair {
    /// The left token.
    pub(super) left: u32,
    /// The right token.
    pub(super) right: u32,
    /// How often it occurs, each text times its count; 0 once it is merged or gone.
    pub(super) count: u64,
    /// What it was worth when that was last looked at.
    capped: u64,
    start: u64,
    len: u32,
}

/// All pairs by index, the index by pair, and one shared arena of positions.
///
/// Positions are only ever added while a pair is made, so lists lie in the arena in index order and compaction is
/// one pass. A list may hold positions where the pair no longer is; whoever reads it looks at the text.
#[derive(Default)]
pub(super) struct Pairs {
    list: Vec<Pair>,
    indices: HashTable<u32>,
    positions: Vec<u32>,
    garbage: usize,
}

/// Compaction is not worth a pass below this many positions.
const MIN_COMPACTION: usize = 1 << 20;

fn hash(left: u32, right: u32) -> u64 {
    let key = (u64::from(left) << 32) | u64::from(right);
    let product = u128::from(key ^ 0x9e37_79b9_7f4a_7c15) * u128::from(0xd6e8_feb8_6659_fd93_u64);
    (product as u64) ^ ((product >> 64) as u64)
}

impl Pair {
    /// The most that it can be worth.
    pub(super) fn worth(&self) -> u64 {
        self.count.min(self.capped)
    }
}

impl Pairs {
    /// The pair at an index.
    pub(super) fn get(&self, index: u32) -> &Pair {
        &self.list[index as usize]
    }

    /// The index that the next pair will have.
    pub(super) fn next(&self) -> u32 {
        self.list.len() as u32
    }

    /// The index of a pair that occurs.
    pub(super) fn find(&self, left: u32, right: u32) -> Option<u32> {
        let same = |&index: &u32| {
            let pair = self.get(index);
            pair.left == left && pair.right == right
        };
        self.indices.find(hash(left, right), same).copied()
    }

    /// Adds pairs with their positions, which lie one pair after the other.
    pub(super) fn append(&mut self, pairs: &[(u32, u32, u64, u32)], positions: &[u32]) {
        self.positions.reserve_exact(positions.len());
        use_large_pages(&mut self.positions);
        self.indices.reserve(pairs.len(), |&index| {
            let pair = &self.list[index as usize];
            hash(pair.left, pair.right)
        });
        let first = self.positions.len();
        for &(left, right, count, len) in pairs {
            self.insert(left, right, count, len);
        }
        self.positions[first..].copy_from_slice(positions);
    }

    /// Adds a pair with room for `len` positions and gives the place in the arena where they go.
    pub(super) fn insert(&mut self, left: u32, right: u32, count: u64, len: u32) -> usize {
        let start = self.positions.len();
        let index = self.next();
        self.list.push(Pair { left, right, count, capped: u64::MAX, start: start as u64, len });
        self.positions.resize(start + len as usize, 0);
        let list = &self.list;
        self.indices.insert_unique(hash(left, right), index, |&index| {
            let pair = &list[index as usize];
            hash(pair.left, pair.right)
        });
        start
    }

    /// The places of the positions of a pair.
    pub(super) fn places(&self, index: u32) -> Range<usize> {
        let pair = self.get(index);
        pair.start as usize..pair.start as usize + pair.len as usize
    }

    /// Notes what a pair is worth.
    pub(super) fn set_worth(&mut self, index: u32, worth: u64) {
        self.list[index as usize].capped = worth;
    }

    /// Writes a position into its place in the arena.
    pub(super) fn set_position(&mut self, place: usize, position: u32) {
        self.positions[place] = position;
    }

    /// Reads a place in the arena.
    pub(super) fn position(&self, place: usize) -> u32 {
        self.positions[place]
    }

    /// Takes `count` occurrences from a pair, and the pair away with the last one. A pair that is not there is
    /// the one just merged, or too rare to be kept: nothing to do.
    pub(super) fn lose(&mut self, left: u32, right: u32, count: u64) {
        let Some(index) = self.find(left, right) else { return };
        let pair = &mut self.list[index as usize];
        debug_assert!(pair.count >= count);
        pair.count -= count;
        if pair.count == 0 {
            self.remove(index);
        }
    }

    /// Takes a pair away and gives the places of its positions, good until the next [`Pairs::compact`].
    pub(super) fn remove(&mut self, index: u32) -> Range<usize> {
        let pair = &mut self.list[index as usize];
        let (start, len) = (pair.start as usize, pair.len as usize);
        let key = hash(pair.left, pair.right);
        pair.count = 0;
        pair.len = 0;
        self.garbage += len;
        if let Ok(entry) = self.indices.find_entry(key, |&other| other == index) {
            entry.remove();
        }
        start..start + len
    }

    /// Closes the gaps in the arena once they are more than half of it.
    pub(super) fn compact(&mut self) {
        if self.positions.len() < MIN_COMPACTION || self.garbage * 2 < self.positions.len() {
            return;
        }
        let mut end = 0;
        for pair in self.list.iter_mut().filter(|pair| pair.len > 0) {
            let start = pair.start as usize;
            self.positions.copy_within(start..start + pair.len as usize, end);
            pair.start = end as u64;
            end += pair.len as usize;
        }
        self.positions.truncate(end);
        self.positions.shrink_to(end + end / 4);
        self.garbage = 0;
    }
}
