//! Joining the tokens of the words of lines to superwords.
//!
//! The merges of words need not be applied to the whole line. The tokens of single words come from a cache, and are put
//! side by side wherever two neighbours are a valid pair ([`super::pair_memo`]). Most neighbours need no check: in the
//! words that the merges were learned from, no letter comes before a mark or a space, so no merge joins two such bytes.
//! Where a pair is not valid, a little text on both sides is merged again.
//!
//! As many lines as there are lanes are joined at once.

use std::ops::Range;

use super::pair_memo::PairMemo;
use super::superwords::{LineTokens, Superwords};
use crate::Stop;
use crate::encode::bpe::{LANES, Lane, MAX_CELLS, Merges, Scratch, join};
use crate::encode::id::Id;

/// Room that is kept for the next lines, in tokens.
const MAX_KEPT: usize = 1 << 16;

/// What lines are made from: the merges, and the text in which the words and lines are.
#[derive(Clone, Copy)]
pub(super) struct LineSource<'a> {
    pub(super) superwords: &'a Superwords,
    /// The merges of words.
    pub(super) words: &'a Merges,
    pub(super) text: &'a [u8],
}

/// The line whose words are coming in.
#[derive(Default)]
struct OpenLine {
    /// Where it begins in the text.
    start: usize,
    /// The number of its first token among the tokens of all words.
    first: usize,
    /// Its tokens that are no valid pair with the ones before them.
    breaks: Vec<usize>,
}

/// The lines that wait to be joined: short ones in lanes, longer ones as the tokens of their words.
#[derive(Default)]
struct WaitingLines {
    count: usize,
    lanes: [Lane; LANES],
    long: [Option<Range<usize>>; LANES],
    long_tokens: Vec<u32>,
}

/// The tokens of the joined lines, one after another, and where each line ends.
struct JoinedLines<T> {
    tokens: Vec<T>,
    ends: [usize; LANES],
}

/// Joins lines, [`LANES`] at most at a time; one per worker.
pub(super) struct LineJoiner<T: Id> {
    memo: PairMemo,
    open: OpenLine,
    waiting: WaitingLines,
    joined: JoinedLines<T>,
    scratch: Scratch,
    /// The tokens of one line.
    ids: Vec<u32>,
}

impl<T: Id> Default for LineJoiner<T> {
    fn default() -> Self {
        Self {
            memo: PairMemo::default(),
            open: OpenLine::default(),
            waiting: WaitingLines::default(),
            joined: JoinedLines { tokens: Vec::new(), ends: [0; LANES] },
            scratch: Scratch::default(),
            ids: Vec::new(),
        }
    }
}

impl<T: Id> LineJoiner<T> {
    /// Begins anew, with no lines.
    pub(super) fn begin(&mut self) {
        self.memo.prepare();
        self.waiting.long_tokens.clear();
        (self.open.first, self.waiting.count) = (0, 0);
    }

    /// Takes the word at `at`. `tokens` has the tokens of the words of all lines so far, this word's from `first` on.
    #[inline]
    pub(super) fn begin_word(&mut self, source: LineSource<'_>, at: usize, first: usize, tokens: &[T]) {
        let LineSource { superwords, words, text } = source;
        if first == self.open.first {
            self.open.start = at;
        } else if superwords.may_cross(text[at - 1], text[at])
            && !self.memo.is_valid_pair(words, tokens[first - 1].id(), tokens[first].id())
        {
            self.open.breaks.push(first - self.open.first);
        }
    }

    /// Takes the end of a line, whose tokens go on to the end of `tokens`.
    #[inline]
    pub(super) fn end_line(&mut self, source: LineSource<'_>, end: usize, tokens: &[T]) {
        let Self { open, waiting, scratch, ids, .. } = self;
        ids.clear();
        ids.extend(tokens[open.first..].iter().map(|token| token.id()));
        let text = source.words.word_bytes(&source.text[open.start..end]);
        let of_words = match text.filter(|_| !open.breaks.is_empty()) {
            Some(text) => scratch.windows.put_together(&text, ids, &open.breaks),
            None => ids,
        };
        waiting.add(source.superwords, of_words);
        open.breaks.clear();
        open.first = tokens.len();
    }

    /// Joins the lines, not all of them once it is to stop.
    #[inline(never)]
    pub(super) fn join(&mut self, superwords: &Superwords, stop: &Stop) {
        let Self { waiting: WaitingLines { count, lanes, long, long_tokens }, joined, scratch, ids, .. } = self;
        join(&mut lanes[..*count], superwords.pairs());
        joined.tokens.clear();
        for ((long, lane), end) in long[..*count].iter().zip(lanes).zip(&mut joined.ends) {
            if let Some(range) = long {
                ids.clear();
                let line = LineTokens { superwords, tokens: &long_tokens[range.clone()] };
                scratch.windows.merge(&line, &mut scratch.lanes, stop, ids);
                joined.tokens.extend(ids.iter().map(|&id| T::new(id)));
            } else {
                lane.tokens(|id| joined.tokens.push(T::new(id)));
            }
            *end = joined.tokens.len();
        }
        long_tokens.shrink_to(MAX_KEPT);
        ids.shrink_to(MAX_KEPT);
    }

    /// The tokens of a line, by its number, after [`Self::join`].
    pub(super) fn tokens(&self, number: usize) -> &[T] {
        let JoinedLines { tokens, ends } = &self.joined;
        &tokens[number.checked_sub(1).map_or(0, |before| ends[before])..ends[number]]
    }
}

impl WaitingLines {
    /// Adds a line as the tokens of its words.
    #[inline]
    fn add(&mut self, superwords: &Superwords, tokens: &[u32]) {
        if tokens.len() <= MAX_CELLS {
            let rank = |at: usize| superwords.rank(tokens[at], tokens[at + 1]);
            self.lanes[self.count].fill(tokens.iter().copied(), rank);
            self.long[self.count] = None;
        } else {
            self.long[self.count] = Some(self.long_tokens.len()..self.long_tokens.len() + tokens.len());
            self.long_tokens.extend_from_slice(tokens);
        }
        self.count += 1;
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::encode::bpe::Merge;
    use crate::stop::NEVER;

    /// Numbers below `below`, from a linear congruential generator.
    pub(in super::super) struct Random(pub u64);

    impl Random {
        pub fn below(&mut self, below: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (self.0 >> 33) as usize % below
        }
    }

    /// Merges over a few letters in an order that could have been learned, and the lengths of the tokens.
    pub(in super::super) fn merges(random: &mut Random, letters: usize, count: usize) -> (Vec<Merge>, Arc<[u32]>) {
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

    pub(in super::super) fn byte_ids() -> Box<[u32; 256]> {
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
            let (mut joiner, mut scratch) = (LineJoiner::default(), Scratch::default());
            let (mut text, mut tokens, mut expected) = (Vec::new(), Vec::<u16>::new(), Vec::new());
            joiner.begin();
            for length in [1, 2, 5, 20, 47, 48, 49, 50, 300, 7] {
                let (mut at, end) = (text.len(), text.len() + length);
                text.extend((0..length).map(|_| b'a' + random.below(letters) as u8));
                expected.push(Vec::new());
                whole.merge(&mut scratch, &text[at..], &NEVER, &mut expected[joiner.waiting.count]);
                while at < end {
                    let word_end = end.min(at + 1 + random.below(6));
                    let (mut ids, first) = (Vec::new(), tokens.len());
                    words.merge(&mut scratch, &text[at..word_end], &NEVER, &mut ids);
                    tokens.extend(ids.iter().map(|&token| token as u16));
                    let source = LineSource { superwords: &superwords, words: &words, text: &text };
                    joiner.begin_word(source, at, first, &tokens);
                    at = word_end;
                }
                joiner.end_line(LineSource { superwords: &superwords, words: &words, text: &text }, end, &tokens);
            }
            joiner.join(&superwords, &NEVER);
            for (number, expected) in expected.iter().enumerate() {
                let found: Vec<u32> = joiner.tokens(number).iter().map(|token| token.id()).collect();
                assert_eq!(found, *expected, "round {round}");
            }
        }
    }
}
