//! Superwords: merges that were learned on whole lines, after those that were learned within words.
//!
//! A merge ranks after those that made its two tokens. So the merges of lower rank, those of words, come first on the whole
//! line, and the rest then joins what they left. And the merges of words need not run over the line: the tokens of single
//! words, which come from a cache, are put together if any two neighbours stand beside each other ([`super::borders`]). What was
//! found of two neighbours is kept. And most need no look: within the words that merges were learned on, no letter comes before
//! a mark or a space, so that no merge joins such two bytes. Where two do not stand, a little text to both sides is merged again
//! ([`super::windows`]).
//!
//! As many lines as there are lanes ([`super::lanes`]) are joined together.

use std::ops::Range;

use crate::Stop;
use crate::encode::bpe::{
    LANES, Lane, MAX_CELLS, Merge, Merges, NONE, Pairs, Scratch, Word, entry_value, join, pack_entry, pack_pair,
    pair_hash,
};
use crate::encode::id::Id;

/// An entry that is of no pair.
const NO_PAIR: u64 = u64::MAX;
const MEMO_BITS: u32 = 16;
/// Room that is kept for the next lines, in tokens.
const MAX_KEPT: usize = 1 << 16;

/// What the merges of superwords need.
pub(crate) struct Superwords {
    /// The merges of superwords.
    phrases: Pairs,
    /// Whether a token is the left part of such a merge (1), or the right one (2).
    sides: Box<[u8]>,
    /// For each byte, the bytes that a merge of words joins to it from the right.
    joints: Box<[[u64; 4]; 256]>,
    /// All merges, of words and of superwords.
    whole: Merges,
    /// How many tokens of words went into each token; 1 for those of words.
    spans: Box<[u32]>,
}

/// A line as the tokens of its words.
struct TokenLine<'a> {
    superwords: &'a Superwords,
    tokens: &'a [u32],
}

impl Word for TokenLine<'_> {
    fn len(&self) -> usize {
        self.tokens.len()
    }

    fn same(&self, one: Range<usize>, other: Range<usize>) -> bool {
        self.tokens[one] == self.tokens[other]
    }

    fn fill(&self, range: Range<usize>, lane: &mut Lane) {
        let tokens = &self.tokens[range];
        lane.fill(tokens.iter().copied(), |at| self.superwords.rank(tokens[at], tokens[at + 1]));
    }

    fn tokens(&self, range: Range<usize>) -> impl Iterator<Item = u32> {
        self.tokens[range].iter().copied()
    }

    fn pairs(&self) -> &Pairs {
        &self.superwords.phrases
    }

    fn lengths(&self) -> &[u32] {
        &self.superwords.spans
    }

    fn stand(&self, left: u32, right: u32) -> bool {
        let whole = &self.superwords.whole;
        whole.borders().is_some_and(|borders| borders.stand(whole.pairs(), left, right))
    }
}

/// Lines that are encoded together, and what is known of pairs; one a worker.
pub(crate) struct Phrases<T: Id> {
    memo: Vec<u64>,
    /// Where the line that goes on begins in the text, and its tokens in those of words.
    start: usize,
    first: usize,
    /// Which of its tokens do not stand beside the ones before them.
    broken: Vec<usize>,
    /// The tokens of the words of lines that are too long for a lane, and where those of each line are.
    long_tokens: Vec<u32>,
    long: [Option<Range<usize>>; LANES],
    lanes: [Lane; LANES],
    count: usize,
    scratch: Scratch,
    ids: Vec<u32>,
    /// The tokens of the lines, one after another, and where each ends.
    joined: Vec<T>,
    ends: [usize; LANES],
}

impl<T: Id> Default for Phrases<T> {
    fn default() -> Self {
        Self {
            memo: Vec::new(),
            start: 0,
            first: 0,
            broken: Vec::new(),
            long_tokens: Vec::new(),
            long: [const { None }; LANES],
            lanes: Default::default(),
            count: 0,
            scratch: Scratch::default(),
            ids: Vec::new(),
            joined: Vec::new(),
            ends: [0; LANES],
        }
    }
}

impl<T: Id> Phrases<T> {
    /// Begins anew, with no lines.
    pub(crate) fn begin(&mut self) {
        self.memo.resize(1 << MEMO_BITS, NO_PAIR);
        self.long_tokens.clear();
        (self.first, self.count) = (0, 0);
    }

    /// The tokens of a line, by its number, after [`Superwords::join`].
    pub(crate) fn tokens(&self, number: usize) -> &[T] {
        &self.joined[number.checked_sub(1).map_or(0, |before| self.ends[before])..self.ends[number]]
    }
}

impl Superwords {
    /// Takes the merges of words, and all merges, which are `merges`, of which those from `first_merge` on are of superwords. Both
    /// must have borders.
    pub(crate) fn new(words: &Merges, whole: Merges, merges: &[Merge], first_merge: usize) -> Self {
        let tokens = whole.tokens();
        let (mut sides, mut spans) = (vec![0; tokens], vec![1; tokens]);
        for &(left, right, joined) in &merges[first_merge..] {
            sides[left as usize] |= 1;
            sides[right as usize] |= 2;
            spans[joined as usize] = spans[left as usize] + spans[right as usize];
        }
        Self {
            phrases: Pairs::new(&merges[first_merge..], first_merge as u32),
            sides: sides.into(),
            joints: joints(words, &merges[..first_merge], tokens),
            whole,
            spans: spans.into(),
        }
    }

    /// Takes the word `text[at..]`, which has its tokens from `first` on in `tokens`, those of the words of all lines so far.
    #[inline]
    pub(crate) fn begin_word<T: Id>(
        &self,
        words: &Merges,
        lines: &mut Phrases<T>,
        text: &[u8],
        at: usize,
        first: usize,
        tokens: &[T],
    ) {
        if first == lines.first {
            lines.start = at;
        } else if self.may_cross(text[at - 1], text[at])
            && !stand(words, &mut lines.memo, tokens[first - 1].id(), tokens[first].id())
        {
            lines.broken.push(first - lines.first);
        }
    }

    /// Takes the end of a line, one of [`LANES`] at most, whose tokens go on to the end of `tokens`.
    #[inline]
    pub(crate) fn end_line<T: Id>(
        &self,
        words: &Merges,
        lines: &mut Phrases<T>,
        text: &[u8],
        end: usize,
        tokens: &[T],
    ) {
        let Phrases { lanes, scratch, ids, long_tokens, .. } = lines;
        ids.clear();
        ids.extend(tokens[lines.first..].iter().map(|token| token.id()));
        let text = words.word(&text[lines.start..end]);
        let of_words = match text.filter(|_| !lines.broken.is_empty()) {
            Some(text) => scratch.windows.put_together(&text, ids, &lines.broken),
            None => ids,
        };
        lines.broken.clear();
        lines.long[lines.count] = None;
        if of_words.len() <= MAX_CELLS {
            let rank = |at: usize| self.rank(of_words[at], of_words[at + 1]);
            lanes[lines.count].fill(of_words.iter().copied(), rank);
        } else {
            lines.long[lines.count] = Some(long_tokens.len()..long_tokens.len() + of_words.len());
            long_tokens.extend_from_slice(of_words);
        }
        lines.count += 1;
        lines.first = tokens.len();
    }

    /// Joins the lines, not all of them once it is to stop.
    #[inline(never)]
    pub(crate) fn join<T: Id>(&self, lines: &mut Phrases<T>, stop: &Stop) {
        let Phrases { long_tokens, long, lanes, scratch, ids, joined, ends, .. } = lines;
        join(&mut lanes[..lines.count], &self.phrases);
        joined.clear();
        for ((long, lane), end) in long[..lines.count].iter().zip(lanes).zip(ends) {
            if let Some(range) = long {
                ids.clear();
                let line = TokenLine { superwords: self, tokens: &long_tokens[range.clone()] };
                scratch.windows.merge(&line, &mut scratch.lanes, stop, ids);
                joined.extend(ids.iter().map(|&id| T::new(id)));
            } else {
                lane.tokens(|id| joined.push(T::new(id)));
            }
            *end = joined.len();
        }
        long_tokens.shrink_to(MAX_KEPT);
        ids.shrink_to(MAX_KEPT);
    }

    /// All merges, of words and of superwords.
    pub(crate) fn whole(&self) -> &Merges {
        &self.whole
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
    fn lines_of_any_pieces_have_the_tokens_that_merging_them_at_once_has() {
        let mut random = Random(1);
        for round in 0..1500 {
            let letters = 1 + random.below(4);
            let (merges, lengths) = merges(&mut random, letters, [3, 20, 80][round % 3]);
            let first_merge = random.below(merges.len() + 1);
            let all = || Merges::new(byte_ids(), &merges, Arc::clone(&lengths));
            let (whole, words) = (all(), Merges::new(byte_ids(), &merges[..first_merge], Arc::clone(&lengths)));
            let superwords = Superwords::new(&words, all(), &merges, first_merge);
            let (mut lines, mut scratch) = (Phrases::default(), Scratch::default());
            let (mut text, mut tokens, mut expected) = (Vec::new(), Vec::<u16>::new(), Vec::new());
            lines.begin();
            for length in [1, 2, 5, 20, 47, 48, 49, 50, 300, 7] {
                let (mut at, end) = (text.len(), text.len() + length);
                text.extend((0..length).map(|_| b'a' + random.below(letters) as u8));
                expected.push(Vec::new());
                whole.merge(&mut scratch, &text[at..], &NEVER, &mut expected[lines.count]);
                while at < end {
                    let word_end = end.min(at + 1 + random.below(6));
                    let (mut ids, first) = (Vec::new(), tokens.len());
                    words.merge(&mut scratch, &text[at..word_end], &NEVER, &mut ids);
                    tokens.extend(ids.iter().map(|&token| token as u16));
                    superwords.begin_word(&words, &mut lines, &text, at, first, &tokens);
                    at = word_end;
                }
                superwords.end_line(&words, &mut lines, &text, end, &tokens);
            }
            superwords.join(&mut lines, &NEVER);
            for (number, expected) in expected.iter().enumerate() {
                let found: Vec<u32> = lines.tokens(number).iter().map(|token| token.id()).collect();
                assert_eq!(found, *expected, "round {round}");
            }
        }
    }
}
