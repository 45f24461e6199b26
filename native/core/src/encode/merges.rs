//! The merge table, and the merging of one word.
//!
//! A word starts as the tokens of its bytes. As long as a neighbouring pair has a merge, the pair whose merge was learned first
//! is joined, the leftmost of equals: this is what `tokenizers` does. Short words are merged in an array, by looking for the best
//! pair again and again; long ones with a heap of pairs, in O(n log n) time and about 20 bytes of memory for each byte.

use super::queue::PairQueue;

/// No merge.
const NONE: u32 = u32::MAX;
/// Longer words go through the queue.
const MAX_ARRAY_BYTES: usize = 48;
/// Marks, in the long-word array, the last byte of a token of two or more bytes.
const END: u32 = 1 << 31;
/// Marks a byte inside a token.
const INSIDE: u32 = u32::MAX;

/// Which pairs of tokens join, in what order, and to what.
pub(crate) struct Merges {
    /// The token of each byte.
    byte_ids: Box<[u32; 256]>,
    /// The rank of the merge of each two bytes.
    byte_ranks: Box<[u32]>,
    /// Open addressing over a power of two of slots.
    slots: Box<[Slot]>,
    shift: u32,
    /// The token that each merge makes, by rank.
    joined: Box<[u32]>,
    /// The length of each token in bytes.
    lengths: Box<[u32]>,
}

#[derive(Clone, Copy)]
struct Slot {
    left: u32,
    right: u32,
    rank: u32,
}

const EMPTY: Slot = Slot { left: NONE, right: NONE, rank: NONE };

impl Merges {
    /// Makes the table from `(left, right, joined)` in the order of their ranks; no pair may come twice.
    pub(crate) fn new(byte_ids: Box<[u32; 256]>, merges: &[(u32, u32, u32)], lengths: Box<[u32]>) -> Self {
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
            let index = table.index_of(left, right);
            table.slots[index] = Slot { left, right, rank: rank as u32 };
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

    #[inline]
    fn index_of(&self, left: u32, right: u32) -> usize {
        let mask = self.slots.len() - 1;
        let pair = u64::from(left) << 32 | u64::from(right);
        let mut index = (pair.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift) as usize & mask;
        loop {
            let slot = &self.slots[index];
            if (slot.left == left && slot.right == right) || slot.rank == NONE {
                return index;
            }
            index = (index + 1) & mask;
        }
    }

    /// The rank of the merge of two tokens, or `NONE`.
    #[inline]
    fn rank(&self, left: u32, right: u32) -> u32 {
        self.slots[self.index_of(left, right)].rank
    }

    /// Appends the tokens of `word` to `out`.
    pub(crate) fn merge(&self, word: &[u8], out: &mut Vec<u32>) {
        if word.len() <= MAX_ARRAY_BYTES { self.merge_short(word, out) } else { self.merge_long(word, out) }
    }

    fn merge_short(&self, word: &[u8], out: &mut Vec<u32>) {
        let mut ids = [0_u32; MAX_ARRAY_BYTES];
        let mut ranks = [NONE; MAX_ARRAY_BYTES];
        let mut count = word.len();
        for (id, &byte) in ids.iter_mut().zip(word) {
            *id = self.byte_id(byte);
        }
        for (rank, pair) in ranks.iter_mut().zip(word.windows(2)) {
            *rank = self.byte_ranks[usize::from(pair[0]) << 8 | usize::from(pair[1])];
        }
        while let Some(at) = lowest(&ranks[..count.saturating_sub(1)]) {
            ids[at] = self.joined[ranks[at] as usize];
            ids.copy_within(at + 2..count, at + 1);
            ranks.copy_within(at + 1..count, at);
            count -= 1;
            if at + 1 < count {
                ranks[at] = self.rank(ids[at], ids[at + 1]);
            }
            if at > 0 {
                ranks[at - 1] = self.rank(ids[at - 1], ids[at]);
            }
        }
        out.extend_from_slice(&ids[..count]);
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

/// The position of the lowest rank, the first of equals, if any is a rank.
#[inline]
fn lowest(ranks: &[u32]) -> Option<usize> {
    let (mut best, mut best_at) = (NONE, None);
    for (at, &rank) in ranks.iter().enumerate() {
        if rank < best {
            (best, best_at) = (rank, Some(at));
        }
    }
    best_at
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
