//! What a pair of tokens is worth where no group of texts, such as a project, may decide alone.

/// Parts of one, so that all is reckoned in whole numbers and the same everywhere.
const ONE: u128 = 1 << 10;

/// Caps how often a pair counts in one group, by how often the other groups have it.
///
/// If a pair occurs `c` times in a group of `n` bytes, and `o` times in the other groups of `m` bytes, it counts there
/// at most `factor · o · n / m + √c` times. So a pair that all groups have in equal shares counts in full, and one that
/// a single group has counts little, however often it occurs. What a pair is worth never grows while counts fall.
pub(super) struct GroupCap {
    factor: u128,
}

impl GroupCap {
    /// A cap of so many times the share of the other groups.
    #[allow(clippy::cast_sign_loss, reason = "a factor below 0 becomes 0")]
    pub(super) fn new(factor: f64) -> Self {
        Self { factor: (factor * ONE as f64).round() as u128 }
    }

    /// What a pair is worth that occurs so often in groups of so many bytes.
    pub(super) fn worth(&self, counts: &[u64], sizes: &[u64]) -> u64 {
        let all: u128 = sizes.iter().map(|&size| u128::from(size)).sum();
        let total: u128 = counts.iter().map(|&count| u128::from(count)).sum();
        let capped = |(&count, &size): (&u64, &u64)| {
            let (size, rest) = (u128::from(size), total - u128::from(count));
            let Some(share) = (rest * size).checked_div(all - size) else { return count };
            (share.saturating_mul(self.factor) / ONE + u128::from(count.isqrt())).min(u128::from(count)) as u64
        };
        counts.iter().zip(sizes).filter(|(count, _)| **count > 0).map(capped).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_groups_have_counts_in_full_and_what_one_has_by_its_root() {
        let cap = GroupCap::new(1.0);
        assert_eq!(cap.worth(&[100, 100, 100], &[1000, 1000, 1000]), 300);
        assert_eq!(cap.worth(&[10_000, 0, 0], &[1000, 1000, 1000]), 100);
        assert_eq!(cap.worth(&[10_000, 20, 0], &[1000, 1000, 1000]), (10 + 100) + 20);
        assert_eq!(GroupCap::new(2.5).worth(&[10_000, 20, 0], &[1000, 1000, 1000]), (25 + 100) + 20);
    }

    #[test]
    fn a_cap_of_any_size_caps_nothing_that_is_below_it() {
        for factor in [(1_u64 << 59) as f64, f64::MAX, f64::INFINITY] {
            assert_eq!(GroupCap::new(factor).worth(&[1 << 50, 1 << 60], &[1 << 60, 1 << 61]), (1 << 50) + (1 << 60));
        }
    }

    #[test]
    fn a_group_alone_has_no_cap() {
        assert_eq!(GroupCap::new(1.0).worth(&[10_000], &[1000]), 10_000);
        assert_eq!(GroupCap::new(1.0).worth(&[0, 10_000], &[0, 1000]), 10_000);
    }

    #[test]
    fn the_worth_never_grows_while_counts_fall() {
        let cap = GroupCap::new(1.5);
        let sizes = [1000, 70, 5000, 333];
        let mut counts = [900, 3000, 17, 40];
        let mut before = cap.worth(&counts, &sizes);
        for step in 0..200 {
            let at = step % counts.len();
            counts[at] -= counts[at] / 7 + u64::from(counts[at] > 0);
            let worth = cap.worth(&counts, &sizes);
            assert!(worth <= before && worth <= counts.iter().sum());
            before = worth;
        }
        assert_eq!(counts.iter().sum::<u64>(), 0);
    }
}
