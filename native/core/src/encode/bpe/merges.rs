//! The merge table, and the merging of one word.
//!
//! A word starts as the tokens of its bytes. As long as two neighbours have a merge, the pair whose merge was learned
//! first is joined, the leftmost if there are several, as `tokenizers` does. Short words are merged in a lane
//! ([`super::lanes`]), which searches for the best pair again and again. Long words are merged in windows
//! ([`super::windows`]). Where these are not suitable, a queue of pairs takes O(n log n) time and about 20 bytes of
//! memory per byte.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use foldhash::fast::FixedState;

use super::borders::Borders;
use super::lanes::{LANES, Lane, MAX_CELLS, join};
use super::pairs::{Merge, Pairs};
use super::queue::merge_queued;
use super::windows::{Symbols, Windows};
use crate::Stop;
use crate::stop::NEVER;

/// Which pairs of tokens join, in what order, and to what.
pub(crate) struct Merges {
    /// The token of each byte.
    byte_ids: Box<[u32; 256]>,
    /// The rank of the merge of each two bytes.
    byte_ranks: Box<[u32]>,
    pairs: Pairs,
    /// The length of each token in bytes.
    lengths: Arc<[u32]>,
    borders: Option<Borders>,
    /// Words that are a token which merging does not make of them.
    whole: HashMap<Box<[u8]>, u32, FixedState>,
}

/// What makes the tokens of words that are not known.
pub(crate) trait Merging {
    /// The merges that are applied in lanes.
    fn pairs(&self) -> &Pairs;
    /// Puts a word into a lane; false if it cannot be merged there.
    fn fill_lane(&self, lane: &mut Lane, word: &[u8]) -> bool;
    /// Appends the tokens of any word to `out`, not all of them once it is to stop.
    fn merge_any(&self, scratch: &mut Scratch, word: &[u8], stop: &Stop, out: &mut Vec<u32>);
}

/// What merging needs besides; made to be used again for the next word.
#[derive(Default)]
pub(crate) struct Scratch {
    pub(crate) lanes: [Lane; LANES],
    pub(crate) windows: Windows,
}

impl Merges {
    /// Makes the table from the merges in the order of their ranks; no pair may come twice.
    pub(crate) fn new(byte_ids: Box<[u32; 256]>, merges: &[Merge], lengths: Arc<[u32]>) -> Self {
        let pairs = Pairs::new(merges, 0);
        let ranks = (0..1 << 16).map(|pair| pairs.rank(byte_ids[pair >> 8], byte_ids[pair & 0xFF]));
        let borders = Borders::new(merges, lengths.len());
        Self { byte_ranks: ranks.collect(), byte_ids, pairs, lengths, borders, whole: HashMap::default() }
    }

    /// Lets words that are one of `tokens` become it without merging, as `ignore_merges` says.
    #[must_use]
    pub(crate) fn with_whole_words<'a>(mut self, tokens: impl Iterator<Item = (u32, &'a [u8])>) -> Self {
        let (mut scratch, mut merged) = (Scratch::default(), Vec::new());
        let differs = |&(id, word): &(u32, &[u8])| {
            merged.clear();
            self.merge(&mut scratch, word, &NEVER, &mut merged);
            merged != [id]
        };
        self.whole = tokens.filter(differs).map(|(id, word)| (word.into(), id)).collect();
        self
    }

    /// Whether a word becomes a token without merging.
    #[inline]
    fn is_whole(&self, word: &[u8]) -> bool {
        !self.whole.is_empty() && self.whole.contains_key(word)
    }

    /// Whether valid pairs can be found out.
    pub(crate) fn has_borders(&self) -> bool {
        self.borders.is_some()
    }

    /// Whether merging makes these two tokens of their text; false without borders.
    pub(crate) fn is_valid_pair(&self, left: u32, right: u32) -> bool {
        self.borders.as_ref().is_some_and(|borders| borders.is_valid_pair(&self.pairs, left, right))
    }

    /// The length of each token in bytes.
    pub(crate) fn lengths(&self) -> &[u32] {
        &self.lengths
    }

    /// The token of one byte.
    #[inline]
    pub(crate) fn byte_id(&self, byte: u8) -> u32 {
        self.byte_ids[usize::from(byte)]
    }

    /// How many tokens there are, control tokens among them.
    pub(crate) fn tokens(&self) -> usize {
        self.lengths.len()
    }

    /// The rank of the merge of two bytes, or `NONE`.
    #[inline]
    fn byte_rank(&self, pair: &[u8]) -> u32 {
        self.byte_ranks[usize::from(pair[0]) << 8 | usize::from(pair[1])]
    }

    /// Appends the tokens of `word` to `out`, not all of them once it is to stop.
    pub(crate) fn merge(&self, scratch: &mut Scratch, word: &[u8], stop: &Stop, out: &mut Vec<u32>) {
        if let Some(id) = self.whole.get(word) {
            return out.push(*id);
        }
        let Scratch { lanes, windows } = scratch;
        if word.len() <= MAX_CELLS {
            self.fill(&mut lanes[0], word);
            join(&mut lanes[..1], &self.pairs);
            lanes[0].tokens(|id| out.push(id));
        } else if let Some(word) = self.word_bytes(word) {
            windows.merge(&word, lanes, stop, out);
        } else {
            merge_queued(&self.pairs, &self.lengths, word.iter().map(|&byte| self.byte_id(byte)), stop, out);
        }
    }

    /// The bytes of a word, for windows; none without borders.
    pub(crate) fn word_bytes<'a>(&'a self, text: &'a [u8]) -> Option<WordBytes<'a>> {
        self.borders.as_ref().map(|borders| WordBytes { merges: self, borders, text })
    }

    /// Puts the bytes of a word of up to [`MAX_CELLS`] into a lane.
    #[inline]
    fn fill(&self, lane: &mut Lane, word: &[u8]) {
        lane.fill(word.iter().map(|&byte| self.byte_id(byte)), |at| self.byte_rank(&word[at..at + 2]));
    }
}

impl Merging for Merges {
    fn pairs(&self) -> &Pairs {
        &self.pairs
    }

    fn fill_lane(&self, lane: &mut Lane, word: &[u8]) -> bool {
        if word.len() > MAX_CELLS || self.is_whole(word) {
            return false;
        }
        self.fill(lane, word);
        true
    }

    fn merge_any(&self, scratch: &mut Scratch, word: &[u8], stop: &Stop, out: &mut Vec<u32>) {
        self.merge(scratch, word, stop, out);
    }
}

/// A word as its bytes.
pub(crate) struct WordBytes<'a> {
    merges: &'a Merges,
    borders: &'a Borders,
    text: &'a [u8],
}

impl Symbols for WordBytes<'_> {
    fn len(&self) -> usize {
        self.text.len()
    }

    fn same(&self, one: Range<usize>, other: Range<usize>) -> bool {
        self.text[one] == self.text[other]
    }

    fn fill(&self, range: Range<usize>, lane: &mut Lane) {
        self.merges.fill(lane, &self.text[range]);
    }

    fn tokens(&self, range: Range<usize>) -> impl Iterator<Item = u32> {
        self.text[range].iter().map(|&byte| self.merges.byte_id(byte))
    }

    fn pairs(&self) -> &Pairs {
        &self.merges.pairs
    }

    fn lengths(&self) -> &[u32] {
        &self.merges.lengths
    }

    fn is_valid_pair(&self, left: u32, right: u32) -> bool {
        self.borders.is_valid_pair(&self.merges.pairs, left, right)
    }
}

#[cfg(test)]
mod tests {
    use super::super::pairs::NONE;
    use super::*;
    use crate::stop::NEVER;

    /// A table over the letters a to d in which every string of up to four letters can be joined, in an order that
    /// `seed` shuffles.
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

    /// Words of all kinds: random, repeated, of one letter, and of runs of letters.
    fn words(random: &mut impl FnMut(usize) -> usize) -> Vec<Vec<u8>> {
        let mut words = Vec::new();
        for length in [1, 2, 3, 5, 17, 47, 48, 49, 96, 97, 150, 400] {
            words.push((0..length).map(|_| b'a' + random(4) as u8).collect());
        }
        for (letters, times) in [(1, 700), (1, 61), (1, 50 + random(200)), (2, 300), (3, 100), (7, 90)] {
            words.push((0..letters).map(|_| b'a' + random(4) as u8).collect::<Vec<u8>>().repeat(times));
        }
        for runs in [2, 3, 5, 20] {
            words.push((0..runs).flat_map(|_| vec![b'a' + random(4) as u8; 1 + random(90)]).collect());
        }
        words
    }

    #[test]
    fn lanes_windows_and_queue_merge_as_the_definition_does() {
        let (mut in_windows, mut scratch) = (0, Scratch::default());
        for seed in 0..400_u64 {
            let table = table(seed);
            in_windows += usize::from(table.borders.is_some());
            let mut state = seed + 1;
            let mut random = |below: usize| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(9);
                (state >> 40) as usize % below
            };
            for word in words(&mut random) {
                let [mut merged, mut queued] = [const { Vec::new() }; 2];
                table.merge(&mut scratch, &word, &NEVER, &mut merged);
                merge_queued(
                    &table.pairs,
                    &table.lengths,
                    word.iter().map(|&byte| u32::from(byte)),
                    &NEVER,
                    &mut queued,
                );
                let expected = merge_slowly(&table, &word);
                assert_eq!(merged, expected, "seed {seed}");
                assert_eq!(queued, expected, "seed {seed}");
            }
        }
        assert!(in_windows > 30, "{in_windows}");
    }

    #[test]
    fn runs_with_tokens_longer_than_a_window_are_merged_in_large_ones() {
        let mut merges = vec![(97, 97, 256), (97, 98, 264)];
        merges.extend((0..7).map(|power| (256 + power, 256 + power, 257 + power)));
        let length = |id: u32| {
            if id < 256 {
                1
            } else if id == 264 {
                2
            } else {
                2 << (id - 256)
            }
        };
        let table =
            Merges::new(Box::new(std::array::from_fn(|byte| byte as u32)), &merges, (0..265).map(length).collect());
        for word in [
            vec![b'a'; 20_000],
            [&[b'a'; 9001][..], b"b", &[b'a'; 7000]].concat(),
            b"ab".repeat(9000),
            b"aaaab".repeat(5003),
        ] {
            let [mut found, mut queued] = [const { Vec::new() }; 2];
            table.merge(&mut Scratch::default(), &word, &NEVER, &mut found);
            merge_queued(&table.pairs, &table.lengths, word.iter().map(|&byte| u32::from(byte)), &NEVER, &mut queued);
            assert_eq!(found, queued);
        }
    }
}
