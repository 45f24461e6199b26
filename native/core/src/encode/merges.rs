//! The merge table, and the merging of one word.
//!
//! A word starts as the tokens of its bytes. As long as a neighbouring pair has a merge, the pair whose merge was learned first
//! is joined, the leftmost of equals: this is what `tokenizers` does. Short words are merged in an array, by looking for the best
//! pair again and again; long ones with a queue of pairs, in O(n log n) time and about 20 bytes of memory for each byte.

use std::sync::Arc;

use super::pairs::{MAX_CELLS, Merge, NONE, Pairs, cell};
use super::queue::PairQueue;
use crate::Stop;

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
    pairs: Pairs,
    /// The length of each token in bytes.
    lengths: Arc<[u32]>,
}

impl Merges {
    /// Makes the table from the merges in the order of their ranks; no pair may come twice.
    pub(crate) fn new(byte_ids: Box<[u32; 256]>, merges: &[Merge], lengths: Arc<[u32]>) -> Self {
        let pairs = Pairs::new(merges, 0);
        let ranks = (0..1 << 16).map(|pair| pairs.rank(byte_ids[pair >> 8], byte_ids[pair & 0xFF]));
        Self { byte_ranks: ranks.collect(), byte_ids, pairs, lengths }
    }

    /// The merges by their two tokens.
    pub(super) fn pairs(&self) -> &Pairs {
        &self.pairs
    }

    /// The token of one byte.
    #[inline]
    pub(super) fn byte_id(&self, byte: u8) -> u32 {
        self.byte_ids[usize::from(byte)]
    }

    /// The rank of the merge of two bytes, or `NONE`.
    #[inline]
    fn byte_rank(&self, pair: &[u8]) -> u32 {
        self.byte_ranks[usize::from(pair[0]) << 8 | usize::from(pair[1])]
    }

    /// Appends the tokens of `word` to `out`; tokens that are not done if `stop` is set meanwhile.
    pub(crate) fn merge(&self, word: &[u8], stop: &Stop, out: &mut Vec<u32>) {
        if word.len() <= MAX_CELLS { self.merge_short(word, out) } else { self.merge_long(word, stop, out) }
    }

    fn merge_short(&self, word: &[u8], out: &mut Vec<u32>) {
        let (mut ids, mut cells) = ([0; MAX_CELLS], [NONE; MAX_CELLS]);
        for (id, &byte) in ids.iter_mut().zip(word) {
            *id = self.byte_id(byte);
        }
        for (at, pair) in word.windows(2).enumerate() {
            cells[at] = cell(self.byte_rank(pair), at);
        }
        self.pairs.join(&mut ids, &mut cells, word.len(), |id| out.push(id));
    }

    /// Merges with a queue of pairs.
    fn merge_long(&self, word: &[u8], stop: &Stop, out: &mut Vec<u32>) {
        let mut queue = PairQueue::default();
        for (at, pair) in word.windows(2).enumerate().take_while(|_| !stop.is_set()) {
            let rank = self.byte_rank(pair);
            if rank != NONE {
                queue.push(rank, at);
            }
        }
        let tokens = word.iter().map(|&byte| self.byte_id(byte)).collect();
        LongWord { pairs: &self.pairs, lengths: &self.lengths, tokens }.merge(queue, stop, out);
    }
}

/// Joins the tokens at the end of `out`, from `first` on, with the merges of `pairs`, however many they are; not all of them if
/// `stop` is set meanwhile.
pub(super) fn join_long(pairs: &Pairs, lengths: &[u32], first: usize, stop: &Stop, out: &mut Vec<u32>) {
    let mut queue = PairQueue::default();
    let mut tokens = Vec::new();
    for (index, &token) in out.iter().enumerate().skip(first) {
        let (start, length) = (tokens.len(), lengths[token as usize] as usize);
        tokens.resize(start + length, INSIDE);
        tokens[start + length - 1] = token | END;
        tokens[start] = token;
        let rank = out.get(index + 1).map_or(NONE, |&next| pairs.rank(token, next));
        if rank != NONE {
            queue.push(rank, start);
        }
    }
    out.truncate(first);
    LongWord { pairs, lengths, tokens }.merge(queue, stop, out);
}

/// A word that is too long for an array.
///
/// `tokens` has one cell a byte: the token that starts there, or, at the last byte of a longer token, the token with `END`.
/// A token's neighbours are found by lengths, so that no links are kept.
struct LongWord<'a> {
    pairs: &'a Pairs,
    lengths: &'a [u32],
    tokens: Vec<u32>,
}

impl LongWord<'_> {
    /// Joins the pairs of the queue and those that come about, and appends what is left to `out`. A pair in the queue that has
    /// changed since is recognised by its rank.
    fn merge(mut self, mut queue: PairQueue, stop: &Stop, out: &mut Vec<u32>) {
        while let Some((rank, at)) = queue.pop().filter(|_| !stop.is_set()) {
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

    /// The rank of the token that starts at `at` with the next one, and the end of both, if there are such tokens and a merge.
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
    use crate::stop::NEVER;

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
        while let Some((rank, at)) = (1..ids.len())
            .map(|at| (table.pairs.rank(ids[at - 1], ids[at]), at - 1))
            .min()
            .filter(|best| best.0 != NONE)
        {
            ids[at] = table.pairs.joined(rank);
            ids.remove(at + 1);
        }
        ids
    }

    #[test]
    fn a_merge_that_is_stopped_gives_the_text_but_does_no_more() {
        let stop = Stop::default();
        stop.set();
        let word = vec![b'a'; 1000];
        let mut tokens = Vec::new();
        table(1).merge(&word, &stop, &mut tokens);
        assert_eq!(tokens, vec![u32::from(b'a'); 1000]);
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
                table.merge_long(&word, &NEVER, &mut long);
                let expected = merge_slowly(&table, &word);
                assert_eq!(short, expected, "seed {seed}");
                assert_eq!(long, expected, "seed {seed}");
                word.extend(word.clone());
                long.clear();
                table.merge_long(&word, &NEVER, &mut long);
                assert_eq!(long, merge_slowly(&table, &word), "seed {seed}");
            }
        }
    }
}
