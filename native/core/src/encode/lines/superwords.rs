//! Superwords: merges that were learned on whole lines, after those that were learned within words.
//!
//! A merge ranks after those that made its two tokens. So the merges of words, which rank lower, are applied first on
//! the whole line. Then the merges of superwords join what is left.

use std::ops::Range;

use super::crossings::Crossings;
use super::joints::Joints;
use crate::encode::bpe::{Lane, Merge, Merges, NONE, Pairs, Symbols};
use crate::pattern::Pattern;

/// The most words of a token of the merges of words.
const MOST_WORDS: usize = 64;

/// What the merges of superwords need.
pub(crate) struct Superwords {
    /// The merges of superwords.
    pairs: Pairs,
    /// Whether a token is the left part of such a merge (1), or the right one (2).
    sides: Box<[u8]>,
    joints: Joints,
    crossings: Crossings,
    /// All merges, of words and of superwords.
    whole: Merges,
    /// How many tokens of words went into each token; 1 for a token of words itself.
    spans: Box<[u32]>,
}

impl Superwords {
    /// Whether lines can be put together from their words, which `pattern` cuts, with these tokens of the merges of
    /// words. In a token of many words, all that is known of it would be merged again for each word; no build makes
    /// one.
    pub(crate) fn suit<'a>(pattern: Pattern, mut tokens: impl Iterator<Item = &'a [u8]>) -> bool {
        tokens.all(|token| {
            let mut words = 0;
            pattern.split(token, |_| words += 1);
            words <= MOST_WORDS
        })
    }

    /// Takes the merges of words, and all merges (`merges`), which are of superwords from `first_merge` on. Both must
    /// have borders.
    pub(crate) fn new(words: &Merges, whole: Merges, merges: &[Merge], first_merge: usize) -> Self {
        let tokens = whole.tokens();
        let (mut sides, mut spans) = (vec![0; tokens], vec![1; tokens]);
        for &(left, right, joined) in &merges[first_merge..] {
            sides[left as usize] |= 1;
            sides[right as usize] |= 2;
            spans[joined as usize] = spans[left as usize] + spans[right as usize];
        }
        Self {
            pairs: Pairs::new(&merges[first_merge..], first_merge as u32),
            sides: sides.into(),
            joints: Joints::new(words, &merges[..first_merge]),
            crossings: Crossings::new(&merges[..first_merge], &merges[first_merge..], tokens),
            whole,
            spans: spans.into(),
        }
    }

    /// The merges of superwords.
    pub(super) fn pairs(&self) -> &Pairs {
        &self.pairs
    }

    /// All merges, of words and of superwords.
    pub(crate) fn whole(&self) -> &Merges {
        &self.whole
    }

    /// Whether a merge of words may join text that ends with `left` to text that begins with `right`.
    #[inline]
    pub(super) fn may_cross(&self, left: u8, right: u8) -> bool {
        self.joints.may_cross(left, right)
    }

    /// Whether a merge of superwords may cross the border between two tokens of words.
    #[inline]
    pub(super) fn may_join(&self, left: u32, right: u32) -> bool {
        self.crossings.may_cross(left, right)
    }

    /// The rank of the merge of superwords that joins two tokens, or `NONE`.
    #[inline]
    pub(super) fn rank(&self, left: u32, right: u32) -> u32 {
        if self.sides[left as usize] & 1 == 1 && self.sides[right as usize] & 2 == 2 {
            self.pairs.rank(left, right)
        } else {
            NONE
        }
    }
}

/// A line as the tokens of its words.
pub(super) struct LineTokens<'a> {
    pub(super) superwords: &'a Superwords,
    pub(super) tokens: &'a [u32],
}

impl Symbols for LineTokens<'_> {
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
        &self.superwords.pairs
    }

    fn lengths(&self) -> &[u32] {
        &self.superwords.spans
    }

    fn is_valid_pair(&self, left: u32, right: u32) -> bool {
        self.superwords.whole.is_valid_pair(left, right)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_of_many_words_do_not_suit_and_long_words_do() {
        let suit = |token: &[u8]| Superwords::suit(Pattern::NAMES, [b"x;", token].into_iter());
        assert!(suit(&b"x;".repeat(MOST_WORDS / 2)) && suit(&[b' '; 2000]));
        assert!(!suit(&b"x;".repeat(MOST_WORDS)));
    }
}
