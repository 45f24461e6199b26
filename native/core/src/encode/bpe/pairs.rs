//! Which pairs of tokens join.

use std::hash::{BuildHasher, RandomState};

use crate::memory::prefetch;

/// No merge.
pub(crate) const NONE: u32 = u32::MAX;
/// The most merges. A rank and a place, or a rank and two tokens, are packed into one number, and the two highest
/// values mean something else.
pub(crate) const MAX_MERGES: u32 = (1 << RANK_BITS) - 2;
const RANK_BITS: u32 = 22;
/// The most ids.
pub(crate) const MAX_IDS: u32 = (1 << ID_BITS) - 1;
const ID_BITS: u32 = 21;
/// A slot without a merge.
const EMPTY: u64 = u64::MAX;
/// Merges of a group, on average, or up to half of it.
const GROUP: usize = 4;
/// Bits of the filter of a group, the bits in front of them say where its merges are.
const FILTER_BITS: u32 = 16;

/// The most merges of a group: hashes give no group as many by chance, and trying factors takes longer the more there
/// are.
const MOST_IN_GROUP: usize = 64;
/// How many sizes of the table are tried with a seed.
const MOST_SIZES: usize = 8;

/// A merge: the left and the right token, and the token that they become.
pub(crate) type Merge = (u32, u32, u32);

/// Merges by their two tokens: a perfect hash, so that every look-up reads one slot and takes no branch.
///
/// The high bits of a pair's hash name its group; for each group a factor was found that puts its merges into free
/// slots.
pub(crate) struct Pairs {
    /// The left and the right token, and the rank of their merge.
    slots: Box<[u64]>,
    /// For each group its factor, and a bit for some of the pairs that have a merge: most pairs have none, and these
    /// bits fit into a processor's cache.
    groups: Box<[u32]>,
    group_shift: u32,
    /// Changes the hashes; 0, unless the merges cannot be placed with it.
    seed: u64,
    /// The token that each merge makes, from the first rank on.
    joined: Box<[u32]>,
    first_rank: u32,
}

/// Two tokens, and the slot of their merge.
#[derive(Clone, Copy, Default)]
pub(crate) struct Place {
    pair: u64,
    slot: u32,
}

/// Two tokens as one number of 42 bits.
#[inline]
pub(crate) fn pack_pair(left: u32, right: u32) -> u64 {
    u64::from(left) << ID_BITS | u64::from(right)
}

/// Two tokens, packed, and a value below 2^22.
#[inline]
pub(crate) fn pack_entry(pair: u64, value: u32) -> u64 {
    pair << RANK_BITS | u64::from(value)
}

/// The value of an entry, if it is of this pair.
#[inline]
pub(crate) fn entry_value(entry: u64, pair: u64) -> Option<u32> {
    (entry >> RANK_BITS == pair).then_some(entry as u32 & ((1 << RANK_BITS) - 1))
}

/// A number of which all bits depend on all of a pair.
#[inline]
pub(crate) fn pair_hash(pair: u64) -> u64 {
    let product = u128::from(pair ^ 0x243F_6A88_85A3_08D3) * 0x9E37_79B9_7F4A_7C15;
    product as u64 ^ (product >> 64) as u64
}

/// The slot, of `count`, of a pair with this hash in a group with this factor.
#[inline]
fn slot_of(hash: u64, factor: u32, count: usize) -> usize {
    let spread = ((hash >> FILTER_BITS) as u32).wrapping_mul(factor << 1 | 1);
    ((u64::from(spread) * count as u64) >> 32) as usize
}

impl Pairs {
    /// Makes the table from merges in the order of their ranks, from `first_rank` on; no pair may come twice.
    pub(crate) fn new(merges: &[Merge], first_rank: u32) -> Self {
        assert!(first_rank as usize + merges.len() <= MAX_MERGES as usize, "so many merges do not fit");
        assert!(merges.iter().all(|&(left, right, _)| left.max(right) < MAX_IDS), "so many ids do not fit");
        let group_shift = u64::BITS - (merges.len() / GROUP + 2).next_power_of_two().trailing_zeros();
        // No factor parts two pairs with equal hashes. Such pairs can be looked for, so the next seeds are random.
        let random = std::iter::repeat_with(|| RandomState::new().hash_one(merges.len()));
        let mut made = std::iter::once(0).chain(random).filter_map(|seed| {
            let hashes = hash_all(merges, first_rank, seed);
            let (slots, groups) = place_all(&hashes, group_shift)?;
            Some((seed, slots, groups))
        });
        let (seed, slots, groups) = made.next().unwrap_or_default();
        let joined = merges.iter().map(|merge| merge.2).collect();
        Self { slots: slots.into(), groups: groups.into(), group_shift, seed, joined, first_rank }
    }

    /// The rank of the merge of two tokens, or `NONE`.
    #[inline]
    pub(crate) fn rank(&self, left: u32, right: u32) -> u32 {
        self.rank_at(self.place(left, right))
    }

    /// Where the merge of two tokens is, if there is one.
    #[inline]
    pub(crate) fn place(&self, left: u32, right: u32) -> Place {
        let pair = pack_pair(left, right);
        let hash = pair_hash(pair ^ self.seed);
        let group = self.groups[(hash >> self.group_shift) as usize];
        // A pair without a merge is looked for in the first slot, mostly.
        let may_be = group >> (hash % u64::from(FILTER_BITS)) & 1;
        let slot = slot_of(hash, group >> FILTER_BITS, self.slots.len() * may_be as usize);
        Place { pair, slot: slot as u32 }
    }

    /// Asks for the memory that [`Self::rank_at`] reads.
    #[inline]
    pub(crate) fn prefetch(&self, place: Place) {
        prefetch(&self.slots[place.slot as usize]);
    }

    /// The rank of the merge of the two tokens whose place this is, or `NONE`.
    #[inline]
    pub(crate) fn rank_at(&self, place: Place) -> u32 {
        // What differs from the wanted pair only in the rank is the rank.
        let rank = self.slots[place.slot as usize] ^ place.pair << RANK_BITS;
        if rank >> RANK_BITS == 0 { rank as u32 } else { NONE }
    }

    /// Asks for the memory that [`Self::joined`] reads; the rank may be `NONE`.
    #[inline]
    pub(crate) fn prefetch_joined(&self, rank: u32) {
        self.joined.get(rank.wrapping_sub(self.first_rank) as usize).inspect(|token| prefetch(*token));
    }

    /// The token that the merge of this rank makes.
    #[inline]
    pub(crate) fn joined(&self, rank: u32) -> u32 {
        self.joined[(rank - self.first_rank) as usize]
    }
}

/// The hash of each merge and its entry, in the order of the hashes.
fn hash_all(merges: &[Merge], first_rank: u32, seed: u64) -> Vec<(u64, u64)> {
    let entry = |(rank, &(left, right, _)): (u32, &Merge)| {
        let pair = pack_pair(left, right);
        (pair_hash(pair ^ seed), pack_entry(pair, rank))
    };
    let mut hashes: Vec<_> = (first_rank..).zip(merges).map(entry).collect();
    hashes.sort_unstable();
    hashes
}

/// The slots and the groups of a table of entries with their hashes, in the order of these; none if some do not fit in
/// however many slots there are.
fn place_all(hashes: &[(u64, u64)], group_shift: u32) -> Option<(Vec<u64>, Vec<u32>)> {
    let counts = std::iter::successors(Some(hashes.len() * 21 / 20 + 1), |count| Some(count + count / 4 + 1));
    counts.take(MOST_SIZES).find_map(|count| place(hashes, group_shift, count))
}

/// The `count` slots and the groups of a table of entries with their hashes, in the order of these; none if some do not
/// fit in.
fn place(hashes: &[(u64, u64)], group_shift: u32, count: usize) -> Option<(Vec<u64>, Vec<u32>)> {
    let mut slots = vec![EMPTY; count];
    let mut groups = vec![0; 1 << (u64::BITS - group_shift)];
    let mut chunks: Vec<&[(u64, u64)]> =
        hashes.chunk_by(|one, other| one.0 >> group_shift == other.0 >> group_shift).collect();
    chunks.sort_by_key(|chunk| std::cmp::Reverse(chunk.len()));
    if chunks.first().is_some_and(|chunk| chunk.len() > MOST_IN_GROUP) {
        return None;
    }
    for chunk in chunks {
        let fits = |factor: u32| {
            let place = |entry: &(u64, u64)| slot_of(entry.0, factor, count);
            chunk.iter().enumerate().all(|(number, entry)| {
                slots[place(entry)] == EMPTY && chunk[..number].iter().all(|other| place(other) != place(entry))
            })
        };
        let factor = (0..1 << (u32::BITS - FILTER_BITS)).find(|&factor| fits(factor))?;
        let group = &mut groups[(chunk[0].0 >> group_shift) as usize];
        *group = factor << FILTER_BITS;
        for &(hash, entry) in chunk {
            slots[slot_of(hash, factor, count)] = entry;
            *group |= 1 << (hash % u64::from(FILTER_BITS));
        }
    }
    Some((slots, groups))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merges_whose_hashes_no_factor_parts_are_placed_with_another_seed() {
        let mut seen = std::collections::HashMap::new();
        let mut same = (0..1 << 20).filter_map(|number| {
            let pair = (number >> 10, number & 1023);
            let hash = pair_hash(pack_pair(pair.0, pair.1));
            // A table of two merges has two groups.
            seen.insert((hash >> 63, (hash >> FILTER_BITS) as u32), pair).map(|other| [other, pair])
        });
        let crafted = same.next().map(|pairs| pairs.map(|(left, right)| (left, right, 2000)));
        let merges = crafted.as_ref().map_or(&[][..], |merges| &merges[..]);
        let pairs = Pairs::new(merges, 0);
        assert_ne!(pairs.seed, 0);
        assert_eq!(merges.iter().map(|merge| pairs.rank(merge.0, merge.1)).collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    fn merges_that_crowd_a_group_are_placed_with_another_seed() {
        // A table of up to 500 merges has fewer groups than 2^8.
        let crowded = |&(left, right): &(u32, u32)| pair_hash(pack_pair(left, right)) >> (u64::BITS - 8) == 0;
        let pairs = (0..1 << 20).map(|number| (number >> 10, number & 1023)).filter(crowded);
        let merges: Vec<Merge> = pairs.take(500).map(|(left, right)| (left, right, 2000)).collect();
        let pairs = Pairs::new(&merges, 0);
        assert_ne!(pairs.seed, 0);
        assert!((0..).zip(&merges).all(|(rank, merge)| pairs.rank(merge.0, merge.1) == rank));
    }

    #[test]
    fn every_merge_is_found_and_no_other() {
        let mut state = 1_u64;
        for count in [0, 1, 7, 1000, 70_000] {
            let mut seen = std::collections::HashSet::new();
            let mut merges = Vec::new();
            while merges.len() < count {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let (left, right) = ((state >> 40) as u32 % MAX_IDS, (state >> 20) as u32 % 300);
                if seen.insert((left, right)) {
                    merges.push((left, right, merges.len() as u32 + 5));
                }
            }
            let pairs = Pairs::new(&merges, 11);
            for (rank, &(left, right, joined)) in (11..).zip(&merges) {
                assert_eq!((pairs.rank(left, right), pairs.joined(rank)), (rank, joined));
                let other = (left ^ 1, right);
                assert_eq!(pairs.rank(other.0, other.1) != NONE, seen.contains(&other));
            }
            assert_eq!(pairs.rank(MAX_IDS, 0), NONE);
            assert_eq!(pairs.rank(0, MAX_IDS), NONE);
        }
    }
}
