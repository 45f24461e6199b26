//! The merge table, and the merging of one word.
//!
//! A word starts as the tokens of its bytes. As long as a neighbouring pair has a merge, the pair whose merge was learned first
//! is joined, the leftmost of equals: this is what `tokenizers` does. Short words are merged in an array, by looking for the best
//! pair again and again; long ones with a queue of pairs, in O(n log n) time and about 20 bytes of memory for each byte.

use super::queue::PairQueue;

/// No merge.
const NONE: u32 = u32::MAX;
/// Longer words go through the queue.
const MAX_ARRAY_BYTES: usize = 48;
/// Bits of a position in a short word, behind the rank of the pair that begins there.
const POSITION_BITS: u32 = 6;
/// There must be fewer merges, so that a rank and a position go together in 32 bits, and fewer tokens.
pub(super) const MAX_MERGES: usize = 1 << RANK_BITS;
const RANK_BITS: u32 = 22;
const ID_BITS: u32 = 21;
/// There can be so many ids.
pub(super) const MAX_IDS: u32 = 1 << ID_BITS;
/// Marks, in the long-word array, the last byte of a token of two or more bytes.
const END: u32 = 1 << 31;
/// Marks a byte inside a token.
const INSIDE: u32 = u32::MAX;

/// Which pairs of tokens join, in what order, and to what.
pub(super) struct Merges {
    /// The token of each byte.
    byte_ids: Box<[u32; 256]>,
    /// The rank of the merge of each two bytes.
    byte_ranks: Box<[u32]>,
    /// Open addressing over a power of two of slots: the left and the right token, and the rank of their merge.
    slots: Box<[u64]>,
    shift: u32,
    /// The token that each merge makes, by rank.
    joined: Box<[u32]>,
    /// The length of each token in bytes.
    lengths: Box<[u32]>,
}

/// A slot without a merge.
const EMPTY: u64 = u64::MAX;

impl Merges {
    /// Makes the table from `(left, right, joined)` in the order of their ranks; no pair may come twice.
    pub(super) fn new(byte_ids: Box<[u32; 256]>, merges: &[(u32, u32, u32)], lengths: Box<[u32]>) -> Self {
        let capacity = (merges.len() * 2 + 2).next_power_of_two();
        let mut table = Self {
            byte_ids,
            byte_ranks: vec![NONE; 1 << 16].into_boxed_slice(),
            slots: vec![EMPTY; capacity].into_boxed_slice(),
            shift: 64 - capacity.trailing_zeros(),
            joined: merges.iter().map(|merge| merge.2).collect(),
            lengths,
        };
        for (rank, &(left, right, _)) in merges.iter().enumerate() {
            table.insert(left, right, rank as u64);
        }
        for first in 0..=255_u8 {
            for second in 0..=255_u8 {
                let rank = table.rank(table.byte_id(first), table.byte_id(second));
                table.byte_ranks[usize::from(first) << 8 | usize::from(second)] = rank;
            }
        }
        table
    }

    /// The token of one byte.
    #[inline]
    pub(super) fn byte_id(&self, byte: u8) -> u32 {
        self.byte_ids[usize::from(byte)]
    }

    fn insert(&mut self, left: u32, right: u32, rank: u64) {
        let (pair, mut index) = self.place(left, right);
        while self.slots[index] != EMPTY {
            index = (index + 1) & (self.slots.len() - 1);
        }
        self.slots[index] = pair << RANK_BITS | rank;
    }

    /// Two tokens as one number, and the slot where the search for it begins.
    #[inline]
    fn place(&self, left: u32, right: u32) -> (u64, usize) {
        let pair = u64::from(left) << ID_BITS | u64::from(right);
        (pair, (pair.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift) as usize)
    }

    /// The rank of the merge of two tokens, or `NONE`.
    #[inline]
    fn rank(&self, left: u32, right: u32) -> u32 {
        let (pair, mut index) = self.place(left, right);
        loop {
            let slot = self.slots[index & (self.slots.len() - 1)];
            if slot >> RANK_BITS == pair {
                return slot as u32 & (MAX_MERGES as u32 - 1);
            }
            if slot == EMPTY {
                return NONE;
            }
            index += 1;
        }
    }

    /// Appends the tokens of `word` to `out`.
    pub(super) fn merge(&self, word: &[u8], out: &mut Vec<u32>) {
        if word.len() > MAX_ARRAY_BYTES {
            return self.merge_long(word, out);
        }
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has AVX2.
            return unsafe { self.merge_short_avx2(word, out) };
        }
        self.merge_short(word, out);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn merge_short_avx2(&self, word: &[u8], out: &mut Vec<u32>) {
        self.merge_short(word, out);
    }

    /// Merges in an array with a cell a byte. The first byte of a token has the token, the places of its neighbours, and the
    /// rank of its pair with the next token, before its own place: so the least of all is the pair to join.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "compiled for the processor's features together with its caller")]
    fn merge_short(&self, word: &[u8], out: &mut Vec<u32>) {
        let mut ids = [0_u32; MAX_ARRAY_BYTES + 1];
        let mut pairs = [NONE; MAX_ARRAY_BYTES];
        let mut ends = [0_u8; MAX_ARRAY_BYTES + 1];
        let mut starts = [0_u8; MAX_ARRAY_BYTES + 1];
        for (at, &byte) in word.iter().enumerate() {
            ids[at] = self.byte_id(byte);
            (starts[at + 1], ends[at]) = (at as u8, at as u8 + 1);
        }
        for (at, pair) in word.windows(2).enumerate() {
            pairs[at] = cell(self.byte_ranks[usize::from(pair[0]) << 8 | usize::from(pair[1])], at);
        }
        let position = |cell: u32| (cell & ((1 << POSITION_BITS) - 1)) as usize;
        loop {
            let best = lowest(&pairs, word.len());
            if best == NONE {
                break;
            }
            let at = position(best);
            let middle = usize::from(ends[at]) % MAX_ARRAY_BYTES;
            let end = usize::from(ends[middle]);
            ids[at] = self.joined[(best >> POSITION_BITS) as usize];
            (ends[at], starts[end], pairs[middle]) = (end as u8, at as u8, NONE);
            pairs[at] = if end < word.len() { cell(self.rank(ids[at], ids[end]), at) } else { NONE };
            if at > 0 {
                let before = usize::from(starts[at]);
                pairs[before] = cell(self.rank(ids[before], ids[at]), before);
            }
        }
        let mut at = 0;
        while at < word.len() {
            out.push(ids[at]);
            at = usize::from(ends[at]);
        }
    }

    /// Merges with a queue of pairs.
    ///
    /// `tokens` has one cell a byte: the token that starts there, or, at the last byte of a longer token, the token with `END`.
    /// A token's neighbours are found by lengths, so that no links are kept. A pair in the queue that has changed since is
    /// recognised by its rank.
    fn merge_long(&self, word: &[u8], out: &mut Vec<u32>) {
        let mut tokens: Vec<u32> = word.iter().map(|&byte| self.byte_id(byte)).collect();
        let mut queue = PairQueue::default();
        for (at, pair) in word.windows(2).enumerate() {
            let rank = self.byte_ranks[usize::from(pair[0]) << 8 | usize::from(pair[1])];
            if rank != NONE {
                queue.push(rank, at);
            }
        }
        while let Some((rank, at)) = queue.pop() {
            let Some((_, end)) = self.pair_at(&tokens, at).filter(|pair| pair.0 == rank) else { continue };
            self.join(&mut tokens, at, end, self.joined[rank as usize]);
            if let Some(before) = self.start_before(&tokens, at)
                && let Some((previous, _)) = self.pair_at(&tokens, before)
            {
                queue.push(previous, before);
            }
            if let Some((next, _)) = self.pair_at(&tokens, at) {
                queue.push(next, at);
            }
        }
        out.extend(tokens.into_iter().filter(|token| token & END == 0));
    }

    /// The rank of the token that starts at `at` with the next one, and the end of both, if there are such tokens and a merge.
    fn pair_at(&self, tokens: &[u32], at: usize) -> Option<(u32, usize)> {
        let left = tokens[at];
        if left & END != 0 {
            return None;
        }
        let middle = at + self.lengths[left as usize] as usize;
        let right = *tokens.get(middle)?;
        let rank = if right & END == 0 { self.rank(left, right) } else { NONE };
        (rank != NONE).then(|| (rank, middle + self.lengths[right as usize] as usize))
    }

    /// The start of the token before the one at `at`.
    fn start_before(&self, tokens: &[u32], at: usize) -> Option<usize> {
        let last = at.checked_sub(1)?;
        Some(at - self.lengths[(tokens[last] & !END) as usize] as usize)
    }

    fn join(&self, tokens: &mut [u32], at: usize, end: usize, joined: u32) {
        let middle = at + self.lengths[tokens[at] as usize] as usize;
        tokens[middle - 1] = INSIDE;
        tokens[middle] = INSIDE;
        tokens[at] = joined;
        tokens[end - 1] = joined | END;
    }
}

/// A rank with a position; `NONE` if there is no merge.
#[inline]
fn cell(rank: u32, at: usize) -> u32 {
    if rank == NONE { NONE } else { rank << POSITION_BITS | at as u32 }
}

/// The lowest of the first `length` cells; the others are `NONE`.
#[inline(always)]
#[allow(clippy::inline_always, reason = "compiled for the processor's features together with its caller")]
fn lowest(cells: &[u32; MAX_ARRAY_BYTES], length: usize) -> u32 {
    const LANES: usize = 8;
    let mut least = [NONE; LANES];
    for lanes in cells.as_chunks::<LANES>().0.iter().take(length.div_ceil(LANES)) {
        for (least, &cell) in least.iter_mut().zip(lanes) {
            *least = cell.min(*least);
        }
    }
    least.into_iter().fold(NONE, u32::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table over the letters a to d in which every string of up to four letters can be joined, in an order that `seed` shuffles.
    fn table(seed: u64) -> Merges {
        let mut tokens: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
        let mut merges = Vec::new();
        let mut state = seed;
        while merges.len() < 120 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let pick = |bits: u64, count: usize| {
                if bits.trailing_zeros() >= 2 {
                    97 + (bits >> 2) as usize % 4
                } else {
                    256 + (bits >> 2) as usize % count.max(1)
                }
            };
            let made = tokens.len() - 256;
            let (left, right) = (pick(state >> 20, made), pick(state >> 40, made));
            let (left, right) = if made == 0 { (97, 98) } else { (left, right) };
            if merges.iter().any(|&(l, r, _)| (l, r) == (left as u32, right as u32))
                || tokens[left].len() + tokens[right].len() > 9
            {
                continue;
            }
            let joined = [&tokens[left][..], &tokens[right][..]].concat();
            let id = tokens.iter().position(|token| *token == joined).unwrap_or(tokens.len());
            if id == tokens.len() {
                tokens.push(joined);
            }
            merges.push((left as u32, right as u32, id as u32));
        }
        Merges::new(
            Box::new(std::array::from_fn(|byte| byte as u32)),
            &merges,
            tokens.iter().map(|token| token.len() as u32).collect(),
        )
    }

    /// The definition, word for word.
    fn merge_slowly(table: &Merges, word: &[u8]) -> Vec<u32> {
        let mut ids: Vec<u32> = word.iter().map(|&byte| u32::from(byte)).collect();
        while let Some((rank, at)) =
            (1..ids.len()).map(|at| (table.rank(ids[at - 1], ids[at]), at - 1)).min().filter(|best| best.0 != NONE)
        {
            ids[at] = table.joined[rank as usize];
            ids.remove(at + 1);
        }
        ids
    }

    #[test]
    fn array_and_queue_merge_as_the_definition_does() {
        for seed in 0..300_u64 {
            let table = table(seed);
            let mut state = seed + 1;
            for length in [1, 2, 3, 5, 17, 47, 48] {
                let mut word = Vec::new();
                for _ in 0..length {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(9);
                    word.push(b'a' + ((state >> 60) % 4) as u8);
                }
                let (mut short, mut long) = (Vec::new(), Vec::new());
                table.merge_short(&word, &mut short);
                table.merge_long(&word, &mut long);
                let expected = merge_slowly(&table, &word);
                assert_eq!(short, expected, "seed {seed}");
                assert_eq!(long, expected, "seed {seed}");
                word.extend(word.clone());
                long.clear();
                table.merge_long(&word, &mut long);
                assert_eq!(long, merge_slowly(&table, &word), "seed {seed}");
            }
        }
    }
}
