//! Between which tokens of words a superword can be joined.
//!
//! A merge of superwords joins two tokens, and crosses the border between the last token of words in its left part and
//! the first one in its right part. There are about as many such pairs as merges. So most borders of tokens of words
//! are crossed by no merge, whatever is around them, and a line can be cut there.

use crate::encode::bpe::{Merge, pack_pair};

/// Bits for each pair.
const BITS_PER_PAIR: usize = 32;

/// A bit for each pair of tokens of words that a merge of superwords joins, and by chance for one in
/// [`BITS_PER_PAIR`] of the others.
pub(super) struct Crossings {
    bits: Box<[u64]>,
    shift: u32,
}

impl Crossings {
    /// Takes the merges of words and those of superwords, in the order of their ranks, and the number of tokens.
    ///
    /// If a superword is made in two ways, or is a token of words too, every border may be crossed: no build makes such
    /// merges, and one pair of ends would not do for them.
    pub(super) fn new(words: &[Merge], merges: &[Merge], tokens: usize) -> Self {
        let mut is_made = vec![false; tokens];
        for &(_, _, joined) in words {
            is_made[joined as usize] = true;
        }
        if merges.iter().any(|&(_, _, joined)| std::mem::replace(&mut is_made[joined as usize], true)) {
            return Self { bits: [u64::MAX; 2].into(), shift: u64::BITS - 7 };
        }
        Self::of(merges, tokens)
    }

    /// Takes merges each of which makes another token.
    fn of(merges: &[Merge], tokens: usize) -> Self {
        let count = (merges.len() * BITS_PER_PAIR).next_power_of_two().max(2 * u64::BITS as usize);
        let mut crossings =
            Self { bits: vec![0; count / u64::BITS as usize].into(), shift: u64::BITS - count.trailing_zeros() };
        let mut ends: Vec<[u32; 2]> = (0..tokens as u32).map(|token| [token, token]).collect();
        for &(left, right, joined) in merges {
            let ([first, left], [right, last]) = (ends[left as usize], ends[right as usize]);
            ends[joined as usize] = [first, last];
            let (word, bit) = crossings.place(left, right);
            crossings.bits[word] |= 1 << bit;
        }
        crossings
    }

    /// Whether a merge may cross the border between two tokens of words.
    #[inline]
    pub(super) fn may_cross(&self, left: u32, right: u32) -> bool {
        let (word, bit) = self.place(left, right);
        self.bits[word] >> bit & 1 == 1
    }

    #[inline]
    fn place(&self, left: u32, right: u32) -> (usize, u64) {
        let hash = pack_pair(left, right).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift;
        ((hash / u64::from(u64::BITS)) as usize, hash % u64::from(u64::BITS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn borders(crossings: &Crossings) -> Vec<(u32, u32)> {
        let all = (0..40).flat_map(|left| (0..40).map(move |right| (left, right)));
        all.filter(|&(left, right)| crossings.may_cross(left, right)).collect()
    }

    #[test]
    fn merges_cross_the_border_between_the_ends_of_their_parts() {
        let found = borders(&Crossings::new(&[(0, 1, 2)], &[(2, 3, 4), (4, 5, 6), (7, 6, 8)], 40));
        assert!([(2, 3), (3, 5), (7, 2)].iter().all(|border| found.contains(border)), "{found:?}");
        assert!(found.len() < 200, "{}", found.len());
    }

    #[test]
    fn all_borders_may_be_crossed_if_a_superword_is_made_in_two_ways_or_is_a_token_of_words() {
        for (words, merges) in [([(0, 1, 2)], [(3, 4, 5), (6, 7, 5)]), ([(0, 1, 5)], [(3, 4, 5), (6, 7, 8)])] {
            assert_eq!(borders(&Crossings::new(&words, &merges, 40)).len(), 1600);
        }
    }
}
