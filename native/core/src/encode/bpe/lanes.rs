//! Joining a few tokens, for several words at once.
//!
//! In one word, each step waits for the one before it: the search for the best pair, then the look-ups of the two pairs
//! that joining it makes. So several words take their steps in turns. A step is cut into parts, and each part asks for
//! the memory that the next one reads.

use super::pairs::{MAX_IDS, NONE, Pairs, Place};

/// The most tokens of a lane.
pub(crate) const MAX_CELLS: usize = 48;
/// The most words that take their steps in turns.
pub(crate) const LANES: usize = 16;
/// Bits of a place in a lane, behind the rank of the pair that begins there.
const PLACE_BITS: u32 = 6;
const PLACES: usize = 1 << PLACE_BITS;
/// The place before the first token.
const BEFORE: u8 = PLACES as u8 - 1;
/// What merges with no token.
const NOTHING: u32 = MAX_IDS;

const ENDS: [u8; PLACES] = {
    let mut ends = [0; PLACES];
    let mut at = 0;
    while at < PLACES {
        ends[at] = at as u8 + 1;
        at += 1;
    }
    ends
};

const STARTS: [u8; PLACES] = {
    let mut starts = [0; PLACES];
    let mut at = 1;
    while at < PLACES {
        starts[at] = at as u8 - 1;
        at += 1;
    }
    starts[0] = BEFORE;
    starts
};

/// Tokens that are joined.
#[repr(align(64))]
pub(crate) struct Lane {
    /// For each pair that has a merge, its rank and its place; `NONE` elsewhere.
    cells: [u32; PLACES],
    /// The tokens, each at the place of the first that went into it, and [`NOTHING`] behind the last.
    ids: [u32; PLACES],
    /// Where the token that begins at a place ends.
    ends: [u8; PLACES],
    /// Where the token that ends at a place begins.
    starts: [u8; PLACES],
    length: usize,
    /// The lowest cell.
    best: u32,
    /// The tokens whose pairs with the next ones are looked up, and the places of what they become.
    asked: [(usize, Place); 2],
}

impl Default for Lane {
    fn default() -> Self {
        Self {
            cells: [NONE; PLACES],
            ids: [NOTHING; PLACES],
            ends: ENDS,
            starts: STARTS,
            length: 0,
            best: NONE,
            asked: Default::default(),
        }
    }
}

impl Lane {
    /// Takes up to [`MAX_CELLS`] tokens; `rank` gives the rank of the pair that begins at a place, or `NONE`.
    #[inline]
    pub(crate) fn fill(&mut self, ids: impl ExactSizeIterator<Item = u32>, mut rank: impl FnMut(usize) -> u32) {
        self.length = ids.len().min(MAX_CELLS);
        (self.ends, self.starts) = (ENDS, STARTS);
        for (place, id) in self.ids.iter_mut().zip(ids) {
            *place = id;
        }
        self.ids[self.length] = NOTHING;
        for (at, place) in self.cells[..self.length.next_multiple_of(VECTOR)].iter_mut().enumerate() {
            *place = if at + 1 < self.length { cell(rank(at), at) } else { NONE };
        }
    }

    /// Calls `each` with the tokens, in order.
    #[inline]
    pub(crate) fn tokens(&self, mut each: impl FnMut(u32)) {
        let mut at = 0;
        while at < self.length {
            each(self.ids[at]);
            at = usize::from(self.ends[at]);
        }
    }

    /// Finds the pair of the lowest rank, the leftmost of equals, among the first `vectors` times eight.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "compiled for the processor's features together with its caller")]
    fn look(&mut self, pairs: &Pairs, vectors: usize) {
        self.best = lowest(&self.cells, vectors);
        pairs.prefetch_joined(self.best >> PLACE_BITS);
    }

    /// Joins the pair that was found, and asks for the two pairs that this makes.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "compiled for the processor's features together with its caller")]
    fn join(&mut self, pairs: &Pairs) {
        let place = |place: u8| usize::from(place) % PLACES;
        let at = self.best as usize % PLACES;
        let middle = place(self.ends[at]);
        let (before, end) = (place(self.starts[at]), place(self.ends[middle]));
        let joined = pairs.joined(self.best >> PLACE_BITS);
        let (left, right) = (pairs.place(self.ids[before], joined), pairs.place(joined, self.ids[end]));
        pairs.prefetch(left);
        pairs.prefetch(right);
        (self.ids[at], self.ends[at], self.starts[end]) = (joined, end as u8, at as u8);
        self.cells[middle] = NONE;
        self.asked = [(at, right), (before, left)];
    }

    /// Takes in the ranks of the pairs that were asked for.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "compiled for the processor's features together with its caller")]
    fn take(&mut self, pairs: &Pairs) {
        for (at, place) in self.asked {
            self.cells[at % PLACES] = cell(pairs.rank_at(place), at);
        }
    }
}

/// Joins the tokens of each lane as long as there are pairs, the lowest rank first and the leftmost of equals.
#[inline]
#[allow(unsafe_code, reason = "instructions that not every processor has")]
pub(crate) fn join(lanes: &mut [Lane], pairs: &Pairs) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        return unsafe { join_avx2(lanes, pairs) };
    }
    join_lanes(lanes, pairs);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn join_avx2(lanes: &mut [Lane], pairs: &Pairs) {
    join_lanes(lanes, pairs);
}

#[inline(always)]
#[allow(clippy::inline_always, reason = "compiled for the processor's features together with its caller")]
fn join_lanes(lanes: &mut [Lane], pairs: &Pairs) {
    let vectors = lanes.iter().map(|lane| lane.length.div_ceil(VECTOR)).max().unwrap_or(0);
    // Those that are not done are the first `count` of `taking`.
    let (mut taking, mut count) = (std::array::from_fn::<usize, LANES, _>(|lane| lane), lanes.len().min(LANES));
    loop {
        let mut left = 0;
        for turn in 0..count {
            let lane = &mut lanes[taking[turn]];
            lane.look(pairs, vectors);
            taking[left] = taking[turn];
            left += usize::from(lane.best != NONE);
        }
        if left == 0 {
            return;
        }
        count = left;
        for &lane in &taking[..count] {
            lanes[lane].join(pairs);
        }
        for &lane in &taking[..count] {
            lanes[lane].take(pairs);
        }
    }
}

/// A rank with a place; `NONE` if there is no merge.
#[inline]
fn cell(rank: u32, at: usize) -> u32 {
    if rank == NONE { NONE } else { rank << PLACE_BITS | at as u32 }
}

/// Cells that are compared at once.
const VECTOR: usize = 8;

/// The lowest of the first cells; the others are `NONE`.
#[inline(always)]
#[allow(clippy::inline_always, reason = "compiled for the processor's features together with its caller")]
fn lowest(cells: &[u32; PLACES], vectors: usize) -> u32 {
    let mut least = [NONE; VECTOR];
    for lanes in cells.as_chunks::<VECTOR>().0.iter().take(vectors) {
        for (least, &cell) in least.iter_mut().zip(lanes) {
            *least = cell.min(*least);
        }
    }
    least.into_iter().fold(NONE, u32::min)
}
