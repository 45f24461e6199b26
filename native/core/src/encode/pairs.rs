//! Which pairs of tokens join, and the joining of a few tokens.

/// No merge.
pub(super) const NONE: u32 = u32::MAX;
/// As many tokens are joined in an array.
pub(super) const MAX_CELLS: usize = 48;
/// Bits of a place in that array, behind the rank of the pair that begins there.
const PLACE_BITS: u32 = 6;
/// There can be so many merges: a rank and a place, or a rank and two tokens, go together in a number, and the two highest
/// values mean something else.
pub(super) const MAX_MERGES: u32 = (1 << RANK_BITS) - 2;
const RANK_BITS: u32 = 22;
/// There can be so many ids.
pub(super) const MAX_IDS: u32 = (1 << ID_BITS) - 1;
const ID_BITS: u32 = 21;
/// A slot without a merge.
const EMPTY: u64 = u64::MAX;

/// A merge: the left and the right token, and the token that they become.
pub(super) type Merge = (u32, u32, u32);

/// Merges by their two tokens: open addressing over a power of two of slots.
pub(super) struct Pairs {
    /// The left and the right token, and the rank of their merge.
    slots: Box<[u64]>,
    shift: u32,
    /// The token that each merge makes, from the first rank on.
    joined: Box<[u32]>,
    first_rank: u32,
}

/// Two tokens as one number of 42 bits.
#[inline]
pub(super) fn pack_pair(left: u32, right: u32) -> u64 {
    u64::from(left) << ID_BITS | u64::from(right)
}

/// Two tokens, packed, and a value below 2^22.
#[inline]
pub(super) fn pack_entry(pair: u64, value: u32) -> u64 {
    pair << RANK_BITS | u64::from(value)
}

/// The value of an entry, if it is of this pair.
#[inline]
pub(super) fn entry_value(entry: u64, pair: u64) -> Option<u32> {
    (entry >> RANK_BITS == pair).then_some(entry as u32 & ((1 << RANK_BITS) - 1))
}

/// The high bits of a number that depend on all of a pair.
#[inline]
pub(super) fn pair_hash(pair: u64) -> u64 {
    pair.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

impl Pairs {
    /// Makes the table from merges in the order of their ranks, from `first_rank` on; no pair may come twice.
    pub(super) fn new(merges: &[Merge], first_rank: u32) -> Self {
        assert!(first_rank as usize + merges.len() <= MAX_MERGES as usize, "so many merges do not fit");
        assert!(merges.iter().all(|&(left, right, _)| left.max(right) < MAX_IDS), "so many ids do not fit");
        let capacity = (merges.len() * 2 + 2).next_power_of_two();
        let mut slots = vec![EMPTY; capacity].into_boxed_slice();
        let shift = 64 - capacity.trailing_zeros();
        for (rank, &(left, right, _)) in (first_rank..).zip(merges) {
            let pair = pack_pair(left, right);
            let mut index = (pair_hash(pair) >> shift) as usize;
            while slots[index] != EMPTY {
                index = (index + 1) & (capacity - 1);
            }
            slots[index] = pack_entry(pair, rank);
        }
        Self { slots, shift, joined: merges.iter().map(|merge| merge.2).collect(), first_rank }
    }

    /// The rank of the merge of two tokens, or `NONE`.
    #[inline]
    pub(super) fn rank(&self, left: u32, right: u32) -> u32 {
        let pair = pack_pair(left, right);
        let mut index = (pair_hash(pair) >> self.shift) as usize;
        loop {
            let slot = self.slots[index & (self.slots.len() - 1)];
            if let Some(rank) = entry_value(slot, pair) {
                return rank;
            }
            if slot == EMPTY {
                return NONE;
            }
            index += 1;
        }
    }

    /// The token that the merge of this rank makes.
    #[inline]
    pub(super) fn joined(&self, rank: u32) -> u32 {
        self.joined[(rank - self.first_rank) as usize]
    }

    /// Joins the first `length` of `ids` as long as there are pairs, the lowest rank first and the leftmost of equals, and calls
    /// `each` with those that are left, in order. `cells` has a [`cell`] for each pair that has a merge, and `NONE` elsewhere.
    #[inline]
    pub(super) fn join(
        &self,
        ids: &mut [u32; MAX_CELLS],
        cells: &mut [u32; MAX_CELLS],
        length: usize,
        each: impl FnMut(u32),
    ) {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has AVX2.
            return unsafe { self.join_avx2(ids, cells, length, each) };
        }
        self.join_cells(ids, cells, length, each);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    #[inline]
    fn join_avx2(
        &self,
        ids: &mut [u32; MAX_CELLS],
        cells: &mut [u32; MAX_CELLS],
        length: usize,
        each: impl FnMut(u32),
    ) {
        self.join_cells(ids, cells, length, each);
    }

    /// A token that was joined leaves its cell; the neighbours of a token are found by links.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "compiled for the processor's features together with its caller")]
    fn join_cells(
        &self,
        ids: &mut [u32; MAX_CELLS],
        cells: &mut [u32; MAX_CELLS],
        length: usize,
        mut each: impl FnMut(u32),
    ) {
        let mut ends: [u8; MAX_CELLS] = std::array::from_fn(|at| at as u8 + 1);
        let mut starts: [u8; MAX_CELLS + 1] = std::array::from_fn(|at| (at as u8).wrapping_sub(1));
        loop {
            let best = lowest(cells, length);
            if best == NONE {
                break;
            }
            let at = (best & ((1 << PLACE_BITS) - 1)) as usize;
            let middle = usize::from(ends[at]);
            let end = usize::from(ends[middle]);
            let joined = self.joined(best >> PLACE_BITS);
            (ids[at], ends[at], starts[end], cells[middle]) = (joined, end as u8, at as u8, NONE);
            cells[at] = if end < length { cell(self.rank(joined, ids[end]), at) } else { NONE };
            if at > 0 {
                let before = usize::from(starts[at]);
                cells[before] = cell(self.rank(ids[before], joined), before);
            }
        }
        let mut at = 0;
        while at < length {
            each(ids[at]);
            at = usize::from(ends[at]);
        }
    }
}

/// A rank with a place; `NONE` if there is no merge.
#[inline]
pub(super) fn cell(rank: u32, at: usize) -> u32 {
    if rank == NONE { NONE } else { rank << PLACE_BITS | at as u32 }
}

/// The lowest of the first `length` cells; the others are `NONE`.
#[inline(always)]
#[allow(clippy::inline_always, reason = "compiled for the processor's features together with its caller")]
fn lowest(cells: &[u32; MAX_CELLS], length: usize) -> u32 {
    const LANES: usize = 8;
    let mut least = [NONE; LANES];
    for lanes in cells.as_chunks::<LANES>().0.iter().take(length.div_ceil(LANES)) {
        for (least, &cell) in least.iter_mut().zip(lanes) {
            *least = cell.min(*least);
        }
    }
    least.into_iter().fold(NONE, u32::min)
}
