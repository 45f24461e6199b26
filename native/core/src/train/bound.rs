//! How many texts are held, and which are left out where there is no room for all.

/// What becomes of rare texts when there is no room for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Excess {
    /// Those below a count are left out.
    Drop,
    /// Of those below a count, so many are kept, chosen by their hash, that each kept one represents that count. Sums
    /// over the texts stay as they were on average. (Priority sampling; where most texts are rare, dropping them all
    /// would leave the sums to a few.)
    Thin,
}

/// The bound on the tokens of all held texts, and how rare a text must be to be left out.
///
/// The least count rises through fixed steps, and only as much as it must. So it does not depend on the order of texts.
#[derive(Clone, Debug)]
pub(super) struct Bound {
    tokens: usize,
    excess: Excess,
    least: u64,
}

/// What was left out, if anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LeftOut {
    /// Texts below this count were dropped or thinned.
    pub(super) least: u64,
    /// How many texts are missing.
    pub(super) texts: u64,
}

impl Bound {
    /// Bounds the tokens of all texts together; `None` for no bound.
    pub(super) fn new(tokens: Option<usize>, excess: Excess) -> Self {
        Self { tokens: tokens.unwrap_or(usize::MAX), excess, least: 1 }
    }

    /// The count below which texts are left out.
    pub(super) fn least(&self) -> u64 {
        self.least
    }

    /// Whether texts of so many tokens are too many.
    pub(super) fn exceeded(&self, tokens: usize) -> bool {
        tokens > self.tokens && self.least < u64::MAX
    }

    /// Leaves out more.
    pub(super) fn rise(&mut self) {
        self.least = self.least.saturating_add((self.least / 2).max(1));
    }

    /// Whether a text is kept; `hash` is any number that depends on the text alone.
    pub(super) fn keeps(&self, count: u64, hash: u32) -> bool {
        let thinned = || u128::from(hash) * u128::from(self.least) < u128::from(count) << u32::BITS;
        count >= self.least || (self.excess == Excess::Thin && thinned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_shrinks_as_the_bound_rises_and_thinning_keeps_sums() {
        let texts: Vec<(u64, u32)> =
            (0..200_000_u32).map(|n| (u64::from(n % 7) + 1, n.wrapping_mul(0x9e37_79b9))).collect();
        for excess in [Excess::Drop, Excess::Thin] {
            let mut bound = Bound::new(Some(0), excess);
            let mut before = texts.clone();
            assert!(texts.iter().all(|&(count, hash)| bound.keeps(count, hash)));
            for least in [2, 3, 4, 6, 9, 13] {
                bound.rise();
                assert_eq!(bound.least(), least);
                let kept: Vec<_> = texts.iter().copied().filter(|&(count, hash)| bound.keeps(count, hash)).collect();
                assert!(kept.len() < before.len() || before.is_empty());
                let earlier: std::collections::HashSet<_> = before.iter().collect();
                assert!(kept.iter().all(|text| earlier.contains(text)), "what was left out never comes back");
                let sum =
                    |texts: &[(u64, u32)]| texts.iter().map(|&(count, _)| count.max(bound.least())).sum::<u64>() as f64;
                let whole = texts.iter().map(|&(count, _)| count).sum::<u64>() as f64;
                assert!(
                    excess == Excess::Drop || (sum(&kept) / whole - 1.0).abs() < 0.02,
                    "{least}: {}",
                    sum(&kept) / whole
                );
                before = kept;
            }
        }
    }
}
