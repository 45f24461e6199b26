//! Which two tokens are a valid pair.
//!
//! **A sequence of tokens is the result of merging its text if and only if each two neighbours are the result of
//! merging their own text** (van Antwerpen and Neubeck, `rust-gems/bpe`). So the tokens of two pieces of a text can be
//! joined without merging again if the two tokens where the pieces meet are a *valid pair*.
//!
//! Two neighbours are a valid pair if no merge would have crossed the border between them at any time. Only the right
//! edge of the left token and the left edge of the right one matter. Both are taken apart again, the merge made last
//! first. At each step the two tokens at the border must have no merge that ranks before the step.

use super::pairs::{Merge, NONE, Pairs};

/// How a token was made.
#[derive(Clone, Copy, Default)]
struct Parts {
    left: u32,
    right: u32,
    /// One more than the rank of the merge; 0 for bytes.
    made: u32,
}

/// How all tokens were made.
pub(crate) struct Borders(Box<[Parts]>);

impl Borders {
    /// Takes merges in the order of their ranks, and the number of tokens.
    ///
    /// None if tokens cannot be taken apart: a merge ranks before one that makes a part of it, or two make the same
    /// token.
    pub(crate) fn new(merges: &[Merge], tokens: usize) -> Option<Self> {
        let mut parts = vec![Parts::default(); tokens];
        for (made, &(left, right, joined)) in (1..).zip(merges) {
            if parts[joined as usize].made > 0 {
                return None;
            }
            parts[joined as usize] = Parts { left, right, made };
        }
        let in_order =
            |(made, merge): (u32, &Merge)| parts[merge.0 as usize].made < made && parts[merge.1 as usize].made < made;
        (1..).zip(merges).all(in_order).then(|| Self(parts.into()))
    }

    /// Whether the merges, whose ranks `pairs` has, make these two tokens of the text of the two.
    pub(crate) fn is_valid_pair(&self, pairs: &Pairs, mut left: u32, mut right: u32) -> bool {
        // The ranks of the merges into which the two went; of equal ranks the pair further left goes first.
        let (mut left_until, mut right_until) = (NONE, NONE);
        loop {
            let rank = pairs.rank(left, right);
            if rank < left_until && rank <= right_until && rank != NONE {
                return false;
            }
            let (a, b) = (self.0[left as usize], self.0[right as usize]);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merges_out_of_order_and_tokens_made_in_two_ways_have_no_borders() {
        let [ab, abc, bc, again] = [(97, 98, 256), (256, 99, 257), (98, 99, 258), (97, 258, 257)];
        assert!(Borders::new(&[ab, abc], 259).is_some());
        assert!(Borders::new(&[abc, ab], 259).is_none());
        assert!(Borders::new(&[ab, bc, abc, again], 259).is_none());
    }
}
