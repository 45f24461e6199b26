//! Superwords: merges that were learned on whole lines, after those that were learned within words.
//!
//! A merge ranks after those that made its two tokens. So the merges of lower rank, those of words, come first on the whole
//! line, and the rest then joins what they left. And the merges of words need not run over the line: the tokens of single
//! words, which come from a cache, are put together if any two neighbours stand beside each other ([`super::borders`]). What was
//! found of two neighbours is kept. And most need no look: within the words that merges were learned on, no letter comes before
//! a mark or a space, so that no merge joins such two bytes. A line in which two do not stand is merged as a whole, as is one of
//! many tokens.
//!
//! Lines wait for each other, as many as there are lanes ([`super::lanes`]), and are joined together.

use super::batch::Id;
use super::lanes::{LANES, Lane, MAX_CELLS, join};
use super::merges::{Merges, Scratch};
use super::pairs::{Merge, NONE, Pairs, entry_value, pack_entry, pack_pair, pair_hash};

/// An entry that is of no pair.
const NO_PAIR: u64 = u64::MAX;
const MEMO_BITS: u32 = 16;

/// What the merges of superwords need.
pub(super) struct Superwords {
    /// The merges of superwords.
    phrases: Pairs,
    /// Whether a token is the left part of such a merge (1), or the right one (2).
    sides: Box<[u8]>,
    /// For each byte, the bytes that a merge of words joins to it from the right.
    joints: Box<[[u64; 4]; 256]>,
    /// All merges, of words and of superwords.
    whole: Merges,
}

/// A line whose words have their tokens.
#[derive(Clone, Copy, Default)]
struct Line {
    start: usize,
    end: usize,
    /// Where its tokens begin in the output.
    first: usize,
    /// Whether it is merged as a whole, from its text.
    whole: bool,
}

/// The lines that wait, and what is known of pairs; one a worker.
pub(super) struct Lines<T: Id> {
    memo: Vec<u64>,
    /// The line that goes on.
    line: Line,
    waiting: [Line; LANES],
    lanes: [Lane; LANES],
    scratch: Scratch,
    count: usize,
    joined: Vec<T>,
    merged: Vec<u32>,
}

impl<T: Id> Default for Lines<T> {
    fn default() -> Self {
        Self {
            memo: Vec::new(),
            line: Line::default(),
            waiting: Default::default(),
            lanes: Default::default(),
            scratch: Scratch::default(),
            count: 0,
            joined: Vec::new(),
            merged: Vec::new(),
        }
    }
}

impl<T: Id> Lines<T> {
    /// Begins a text whose first line begins at `start` and has its tokens from `first` on.
    pub(super) fn begin(&mut self, start: usize, first: usize) {
        self.memo.resize(1 << MEMO_BITS, NO_PAIR);
        self.line = Line { start, end: start, first, whole: false };
        self.count = 0;
    }
}

impl Superwords {
    /// Takes the merges of words, and all merges, which are `merges`, of which those from `first_merge` on are of superwords. Both
    /// must have borders.
    pub(super) fn new(words: &Merges, whole: Merges, merges: &[Merge], first_merge: usize) -> Self {
        let tokens = whole.tokens();
        let mut sides = vec![0; tokens];
        for &(left, right, _) in &merges[first_merge..] {
            sides[left as usize] |= 1;
            sides[right as usize] |= 2;
        }
        Self {
            phrases: Pairs::new(&merges[first_merge..], first_merge as u32),
            sides: sides.into(),
            joints: joints(words, &merges[..first_merge], tokens),
            whole,
        }
    }

    /// Takes a word of `text` that starts at `at` and has its tokens from `first` on in `out`.
    #[inline]
    pub(super) fn begin_word<T: Id>(
        &self,
        words: &Merges,
        lines: &mut Lines<T>,
        text: &[u8],
        at: usize,
        first: usize,
        out: &[T],
    ) {
        if at > lines.line.start && self.may_cross(text[at - 1], text[at]) {
            lines.line.whole |= !stand(words, &mut lines.memo, out[first - 1].id(), out[first].id());
        }
    }

    /// Takes the end of a line, whose tokens go on to the end of `out`.
    #[inline]
    pub(super) fn end_line<T: Id>(&self, lines: &mut Lines<T>, text: &[u8], end: usize, out: &mut Vec<T>) {
        let line = &mut lines.line;
        line.end = end;
        let tokens = &out[line.first..];
        line.whole |= tokens.len() > MAX_CELLS;
        if !line.whole {
            let rank = |at: usize| self.rank(tokens[at].id(), tokens[at + 1].id());
            lines.lanes[lines.count].fill(tokens.iter().map(|token| token.id()), rank);
        }
        lines.waiting[lines.count] = *line;
        lines.count += 1;
        *line = Line { start: end, end, first: out.len(), whole: false };
        if lines.count == LANES {
            self.settle(lines, text, out);
        }
    }

    /// Joins the lines that wait, whose tokens go on to the end of `out`.
    #[inline(never)]
    pub(super) fn settle<T: Id>(&self, lines: &mut Lines<T>, text: &[u8], out: &mut Vec<T>) {
        let Lines { waiting, lanes, scratch, joined, merged, .. } = lines;
        let waiting = &waiting[..std::mem::take(&mut lines.count)];
        let Some(Line { first, .. }) = waiting.first() else { return };
        join(&mut lanes[..waiting.len()], &self.phrases);
        joined.clear();
        for (line, lane) in waiting.iter().zip(lanes) {
            if line.whole {
                merged.clear();
                self.whole.merge(scratch, &text[line.start..line.end], merged);
                joined.extend(merged.iter().map(|&id| T::new(id)));
            } else {
                lane.tokens(|id| joined.push(T::new(id)));
            }
        }
        out.truncate(*first);
        out.extend_from_slice(joined);
        lines.line.first = out.len();
    }

    /// Whether a merge of words may join text that ends with `left` to text that begins with `right`.
    #[inline]
    fn may_cross(&self, left: u8, right: u8) -> bool {
        self.joints[usize::from(left)][usize::from(right) / 64] >> (right % 64) & 1 == 1
    }

    /// The rank of the merge of superwords that joins two tokens, or `NONE`.
    #[inline]
    fn rank(&self, left: u32, right: u32) -> u32 {
        if self.sides[left as usize] & 1 == 1 && self.sides[right as usize] & 2 == 2 {
            self.phrases.rank(left, right)
        } else {
            NONE
        }
    }
}

/// Whether the merges of words make these two tokens of their text.
#[inline]
fn stand(words: &Merges, memo: &mut [u64], left: u32, right: u32) -> bool {
    let pair = pack_pair(left, right);
    let entry = &mut memo[(pair_hash(pair) >> (u64::BITS - MEMO_BITS)) as usize];
    if let Some(known) = entry_value(*entry, pair) {
        return known == 1;
    }
    let found = words.borders().is_some_and(|borders| borders.stand(words.pairs(), left, right));
    *entry = pack_entry(pair, u32::from(found));
    found
}

/// For each byte, the bytes that begin the right part of a merge whose left part it ends.
fn joints(words: &Merges, merges: &[Merge], tokens: usize) -> Box<[[u64; 4]; 256]> {
    let mut ends = vec![[0_u8; 2]; tokens];
    for byte in 0..=u8::MAX {
        ends[words.byte_id(byte) as usize] = [byte, byte];
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
    use std::sync::Arc;

    use super::*;

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
    fn lines_of_any_pieces_have_the_tokens_that_merging_them_at_once_has() {
        let mut random = Random(1);
        for round in 0..1500 {
            let letters = 1 + random.below(4);
            let (merges, lengths) = merges(&mut random, letters, [3, 20, 80][round % 3]);
            let first_merge = random.below(merges.len() + 1);
            let all = || Merges::new(byte_ids(), &merges, Arc::clone(&lengths));
            let (whole, words) = (all(), Merges::new(byte_ids(), &merges[..first_merge], Arc::clone(&lengths)));
            let superwords = Superwords::new(&words, all(), &merges, first_merge);
            let (mut lines, mut scratch) = (Lines::default(), Scratch::default());
            let ends: Vec<usize> = [1, 2, 5, 20, 47, 48, 49, 50, 300, 7]
                .iter()
                .scan(0, |end, length| {
                    *end += length;
                    Some(*end)
                })
                .collect();
            let text: Vec<u8> = (0..ends[ends.len() - 1]).map(|_| b'a' + random.below(letters) as u8).collect();
            let (mut found, mut expected, mut at) = (vec![7_u16], Vec::new(), 0);
            lines.begin(0, 1);
            for end in ends {
                whole.merge(&mut scratch, &text[at..end], &mut expected);
                while at < end {
                    let word_end = end.min(at + 1 + random.below(6));
                    let (mut tokens, first) = (Vec::new(), found.len());
                    words.merge(&mut scratch, &text[at..word_end], &mut tokens);
                    found.extend(tokens.iter().map(|&token| token as u16));
                    superwords.begin_word(&words, &mut lines, &text, at, first, &found);
                    at = word_end;
                }
                superwords.end_line(&mut lines, &text, end, &mut found);
            }
            superwords.settle(&mut lines, &text, &mut found);
            assert_eq!(found[1..].iter().map(|token| token.id()).collect::<Vec<u32>>(), expected, "round {round}");
        }
    }
}
