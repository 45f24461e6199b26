//! Superwords: merges that were learned on whole lines, after those that were learned within words.
//!
//! A merge ranks after those that made its two tokens. So the merges of lower rank, those of words, come first on the whole
//! line, and the rest then joins what they left. And the merges of words need not run over the line: **tokens are what
//! merging makes of their text if and only if any two neighbours are what it makes of the text of the two** (van Antwerpen and
//! Neubeck, `rust-gems/bpe`). So the tokens of single words, which come from a cache, are put together, and each two
//! neighbours are checked. Where a check fails, a little text to both sides is merged again.
//!
//! Two neighbours stand if no merge would have crossed the border between them while they came about. Only the right edge of
//! the left one and the left edge of the right one matter: both are taken apart again, the younger first, and at each step
//! the two tokens at the border must have no merge that would have come before the step. What was found is kept by pair. And
//! most borders need no check: within the words that merges were learned on, no letter comes before a mark or a space, so that
//! no merge joins such two bytes.

use std::sync::Arc;

use super::batch::Id;
use super::merges::{Merges, join_long};
use super::pairs::{MAX_CELLS, Merge, NONE, Pairs, cell, entry_value, pack_entry, pack_pair, pair_hash};
use crate::Stop;

/// An entry that is of no pair.
const NO_PAIR: u64 = u64::MAX;
const MEMO_BITS: u32 = 16;
/// When so many bytes were merged again for each byte of a line, and as many more, all of it is merged at once.
const MAX_REPEATS: usize = 4;

/// How a token was made by the merges of words.
#[derive(Clone, Copy, Default)]
struct Parts {
    left: u32,
    right: u32,
    /// One more than the rank of the merge; 0 for bytes.
    made: u32,
}

/// What the merges of superwords need.
pub(super) struct Superwords {
    /// The merges of superwords.
    phrases: Pairs,
    /// Whether a token is the left part of such a merge (1), or the right one (2).
    sides: Box<[u8]>,
    /// For each byte, the bytes that a merge of words joins to it from the right.
    joints: Box<[[u64; 4]; 256]>,
    parts: Box<[Parts]>,
    lengths: Arc<[u32]>,
}

/// What is known of pairs; one a worker.
#[derive(Default)]
pub(super) struct PairMemo(Vec<u64>);

impl PairMemo {
    /// Makes room; to be called before use.
    pub(super) fn prepare(&mut self) {
        self.0.resize(1 << MEMO_BITS, NO_PAIR);
    }
}

/// A line that is encoded: its text, where its tokens begin in the output, and the tokens in the output that begin a word whose
/// border [`Superwords::may_cross`]. Its tokens are not done if `stop` is set meanwhile.
#[derive(Clone, Copy)]
pub(super) struct Line<'a> {
    pub(super) text: &'a [u8],
    pub(super) first: usize,
    pub(super) suspects: &'a [usize],
    pub(super) stop: &'a Stop,
}

impl Superwords {
    /// Takes the merges of words and then those of superwords, from the rank `first_merge` on.
    ///
    /// None if words and superwords cannot be kept apart: a merge ranks before one that makes a part of it, or two merges of
    /// words make the same token.
    pub(super) fn new(
        byte_ids: &[u32; 256],
        merges: &[Merge],
        first_merge: usize,
        lengths: Arc<[u32]>,
    ) -> Option<Self> {
        let mut last_made = vec![0; lengths.len()];
        let mut parts = vec![Parts::default(); lengths.len()];
        for (made, &(left, right, joined)) in (1..).zip(merges) {
            let is_new = last_made[joined as usize] == 0;
            if made as usize <= first_merge {
                if !is_new {
                    return None;
                }
                parts[joined as usize] = Parts { left, right, made };
            }
            last_made[joined as usize] = made;
        }
        let in_order =
            |(made, merge): (u32, &Merge)| last_made[merge.0 as usize] < made && last_made[merge.1 as usize] < made;
        if !(1..).zip(merges).all(in_order) {
            return None;
        }
        let (of_words, of_superwords) = merges.split_at(first_merge);
        let mut sides = vec![0; lengths.len()];
        for &(left, right, _) in of_superwords {
            sides[left as usize] |= 1;
            sides[right as usize] |= 2;
        }
        Some(Self {
            phrases: Pairs::new(of_superwords, first_merge as u32),
            sides: sides.into(),
            joints: joints(byte_ids, of_words, lengths.len()),
            parts: parts.into(),
            lengths,
        })
    }

    /// Whether a merge of words may join text that ends with `left` to text that begins with `right`.
    #[inline]
    pub(super) fn may_cross(&self, left: u8, right: u8) -> bool {
        self.joints[usize::from(left)][usize::from(right) / 64] >> (right % 64) & 1 == 1
    }

    /// Makes the tokens of a line of the tokens of its words, which stand at the end of `out`.
    #[inline]
    pub(super) fn finish<T: Id>(&self, words: &Merges, memo: &mut PairMemo, line: Line<'_>, out: &mut Vec<T>) {
        let tokens = &out[line.first..];
        let length = tokens.len();
        if length > MAX_CELLS {
            return self.finish_slowly(words, memo, line, out);
        }
        let (mut ids, mut cells) = ([0; MAX_CELLS], [NONE; MAX_CELLS]);
        for (id, token) in ids.iter_mut().zip(tokens) {
            *id = token.id();
        }
        for &suspect in line.suspects {
            if !self.stand(words, memo, out[suspect - 1].id(), out[suspect].id()) {
                return self.finish_slowly(words, memo, line, out);
            }
        }
        let mut joins = false;
        for at in 1..length {
            if self.sides[ids[at - 1] as usize] & 1 == 1 && self.sides[ids[at] as usize] & 2 == 2 {
                let rank = self.phrases.rank(ids[at - 1], ids[at]);
                cells[at - 1] = cell(rank, at - 1);
                joins |= rank != NONE;
            }
        }
        if joins {
            out.truncate(line.first);
            self.phrases.join(&mut ids, &mut cells, length, |id| out.push(T::new(id)));
        }
    }

    #[inline(never)]
    fn finish_slowly<T: Id>(&self, words: &Merges, memo: &mut PairMemo, line: Line<'_>, out: &mut Vec<T>) {
        let tokens: Vec<u32> = out[line.first..].iter().map(|token| token.id()).collect();
        let mut tokens = self.repair(words, memo, line.text, &tokens, line.stop);
        out.truncate(line.first);
        if tokens.len() > MAX_CELLS {
            self.join(line.stop, &mut tokens);
            out.extend(tokens.into_iter().map(T::new));
            return;
        }
        let (mut ids, mut cells) = ([0; MAX_CELLS], [NONE; MAX_CELLS]);
        ids[..tokens.len()].copy_from_slice(&tokens);
        for (at, pair) in tokens.windows(2).enumerate() {
            cells[at] = cell(self.phrases.rank(pair[0], pair[1]), at);
        }
        self.phrases.join(&mut ids, &mut cells, tokens.len(), |id| out.push(T::new(id)));
    }

    /// Joins the tokens that the merges of words made of a whole line.
    pub(super) fn join(&self, stop: &Stop, tokens: &mut Vec<u32>) {
        join_long(&self.phrases, &self.lengths, 0, stop, tokens);
    }

    /// The tokens that the merges of words make of `line`, from the tokens of pieces of it.
    fn repair(&self, words: &Merges, memo: &mut PairMemo, line: &[u8], tokens: &[u32], stop: &Stop) -> Vec<u32> {
        let length = |tokens: &[u32]| tokens.iter().map(|&token| self.lengths[token as usize] as usize).sum::<usize>();
        let mut budget = (line.len() + MAX_CELLS) * MAX_REPEATS;
        let (mut done, mut end, mut again) = (Vec::with_capacity(tokens.len()), 0, Vec::new());
        for &token in tokens.iter().take_while(|_| !stop.is_set()) {
            let (mut start, mut taken) = (end, 0);
            end += length(&[token]);
            again.clear();
            again.push(token);
            while let Some(&before) = done.len().checked_sub(taken + 1).and_then(|at| done.get(at))
                && self.may_cross(line[start - 1], line[start])
                && !self.stand(words, memo, before, again[0])
            {
                let more = taken.max(1).min(done.len() - taken);
                start -= length(&done[done.len() - taken - more..done.len() - taken]);
                taken += more;
                if end - start > budget {
                    let mut whole = Vec::new();
                    words.merge(line, stop, &mut whole);
                    return whole;
                }
                budget -= end - start;
                again.clear();
                words.merge(&line[start..end], stop, &mut again);
            }
            done.truncate(done.len() - taken);
            done.extend_from_slice(&again);
        }
        done
    }

    /// Whether the merges of words make these two tokens of their text.
    #[inline]
    fn stand(&self, words: &Merges, memo: &mut PairMemo, left: u32, right: u32) -> bool {
        let pair = pack_pair(left, right);
        let entry = &mut memo.0[(pair_hash(pair) >> (u64::BITS - MEMO_BITS)) as usize];
        if let Some(known) = entry_value(*entry, pair) {
            return known == 1;
        }
        let found = self.find_out(words, left, right);
        *entry = pack_entry(pair, u32::from(found));
        found
    }

    #[inline(never)]
    fn find_out(&self, words: &Merges, mut left: u32, mut right: u32) -> bool {
        // The ranks of the merges into which the two went; of equal ranks the pair further left goes first.
        let (mut left_until, mut right_until) = (NONE, NONE);
        loop {
            let rank = words.pairs().rank(left, right);
            if rank < left_until && rank <= right_until && rank != NONE {
                return false;
            }
            let (a, b) = (self.parts[left as usize], self.parts[right as usize]);
            if a.made > b.made {
                (left, left_until) = (a.right, a.made - 1);
            } else if b.made > 0 {
                (right, right_until) = (b.left, b.made - 1);
            } else {
                return true;
            }
        }
    }
}

/// For each byte, the bytes that begin the right part of a merge whose left part it ends.
fn joints(byte_ids: &[u32; 256], merges: &[Merge], tokens: usize) -> Box<[[u64; 4]; 256]> {
    let mut ends = vec![[0_u8; 2]; tokens];
    for (byte, &id) in (0..=u8::MAX).zip(byte_ids) {
        ends[id as usize] = [byte, byte];
    }
    let mut joints = Box::new([[0; 4]; 256]);
    for &(left, right, joined) in merges {
        let ([first, left], [right, last]) = (ends[left as usize], ends[right as usize]);
        ends[joined as usize] = [first, last];
        joints[usize::from(left)][usize::from(right) / 64] |= 1 << (right % 64);
    }
    joints
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::stop::NEVER;

    /// Numbers below `below`, from a linear congruential generator.
    struct Random(u64);

    impl Random {
        fn below(&mut self, below: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (self.0 >> 33) as usize % below
        }
    }

    /// Merges over a few letters in an order that could have been learned, and the lengths of the tokens.
    fn merges(random: &mut Random, letters: usize, count: usize) -> (Vec<Merge>, Arc<[u32]>) {
        let mut tokens: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
        let mut merges = Vec::new();
        for _ in 0..count * 8 {
            let mut pick = |tokens: &[Vec<u8>]| match random.below(letters + tokens.len() - 256) {
                letter if letter < letters => usize::from(b'a') + letter,
                made => 256 + made - letters,
            };
            let (left, right) = (pick(&tokens), pick(&tokens));
            let joined = [&tokens[left][..], &tokens[right][..]].concat();
            if merges.len() < count && joined.len() < 20 && !tokens.contains(&joined) {
                merges.push((left as u32, right as u32, tokens.len() as u32));
                tokens.push(joined);
            }
        }
        (merges, tokens.iter().map(|token| token.len() as u32).collect())
    }

    fn byte_ids() -> Box<[u32; 256]> {
        Box::new(std::array::from_fn(|byte| byte as u32))
    }

    #[test]
    fn a_line_of_any_pieces_has_the_tokens_that_merging_it_at_once_has() {
        let mut random = Random(1);
        for round in 0..1500 {
            let letters = 1 + random.below(4);
            let (merges, lengths) = merges(&mut random, letters, [3, 20, 80][round % 3]);
            let first_merge = random.below(merges.len() + 1);
            let whole = Merges::new(byte_ids(), &merges, Arc::clone(&lengths));
            let words = Merges::new(byte_ids(), &merges[..first_merge], Arc::clone(&lengths));
            let superwords = Superwords::new(&byte_ids(), &merges, first_merge, lengths).unwrap();
            let mut memo = PairMemo::default();
            memo.prepare();
            for length in [1, 2, 5, 20, 47, 48, 49, 50, 300] {
                let line: Vec<u8> = (0..length).map(|_| b'a' + random.below(letters) as u8).collect();
                let mut found: Vec<u16> = vec![7];
                let (mut at, mut suspects) = (0, Vec::new());
                while at < length {
                    let end = length.min(at + 1 + random.below(6));
                    let mut tokens = Vec::new();
                    words.merge(&line[at..end], &NEVER, &mut tokens);
                    if at > 0 && superwords.may_cross(line[at - 1], line[at]) {
                        suspects.push(found.len());
                    }
                    found.extend(tokens.iter().map(|&token| token as u16));
                    at = end;
                }
                let line_of = Line { text: &line, first: 1, suspects: &suspects, stop: &NEVER };
                superwords.finish(&words, &mut memo, line_of, &mut found);
                let mut expected = Vec::new();
                whole.merge(&line, &NEVER, &mut expected);
                assert_eq!(found[1..].iter().map(|token| token.id()).collect::<Vec<u32>>(), expected, "round {round}");
            }
        }
    }

    #[test]
    fn merges_out_of_order_and_words_made_in_two_ways_are_refused() {
        let lengths: Arc<[u32]> = [1; 256].into_iter().chain([2, 3, 3]).collect();
        let [ab, abc] = [(97, 98, 256), (256, 99, 257)];
        assert!(Superwords::new(&byte_ids(), &[ab, abc], 1, Arc::clone(&lengths)).is_some());
        assert!(Superwords::new(&byte_ids(), &[abc, ab], 1, Arc::clone(&lengths)).is_none());
        let [bc, again] = [(98, 99, 258), (97, 258, 257)];
        assert!(Superwords::new(&byte_ids(), &[ab, bc, abc, again], 4, Arc::clone(&lengths)).is_none());
        assert!(Superwords::new(&byte_ids(), &[ab, bc, abc, again], 3, lengths).is_some());
    }
}
