//! Texts as they are merged.

/// Between texts, and inside tokens.
pub(in crate::train) const GONE: u32 = u32::MAX;

/// All texts in one flat array, one entry per token, `GONE` before and after each text; texts of equal count and group
/// lie together, the higher counts first. Texts of one token are left out: there is nothing to merge in them.
pub(in crate::train) struct Texts {
    pub(in crate::train) symbols: Vec<u32>,
    pub(in crate::train) weights: Weights,
    /// The bytes of the texts of each group, times their counts; those of one token and those left out too.
    pub(in crate::train) sizes: Vec<u64>,
}

/// Which count and group the text at a position has: a short list, for texts that have both in common lie together.
#[derive(Default)]
pub(in crate::train) struct Weights {
    starts: Vec<usize>,
    counts: Vec<u64>,
    groups: Vec<u16>,
}

impl Weights {
    /// Looks up the counts at positions that never fall; `cursor` starts at 0.
    #[inline]
    pub(in crate::train) fn at(&self, position: usize, cursor: &mut usize) -> u64 {
        let next = *cursor + 1;
        if self.starts.get(next).is_some_and(|&start| start <= position) {
            *cursor += self.starts[next..].partition_point(|&start| start <= position);
        }
        self.counts[*cursor]
    }

    /// The group of the text that was looked up last.
    #[inline]
    pub(in crate::train) fn group(&self, cursor: usize) -> u16 {
        self.groups[cursor]
    }

    /// Adds a part of the array, behind all others, unless it is empty.
    pub(super) fn push(&mut self, start: usize, end: usize, count: u64, group: u16) {
        if end > start {
            self.starts.push(start);
            self.groups.push(group);
            self.counts.push(count);
        }
    }

    /// The parts of the array with the count and the group that the texts in each have.
    pub(in crate::train) fn parts(&self, end: usize) -> impl Iterator<Item = (usize, usize, u64, u16)> + '_ {
        let ends = self.starts.iter().skip(1).copied().chain(std::iter::once(end));
        let kinds = self.counts.iter().zip(&self.groups);
        self.starts.iter().zip(ends).zip(kinds).map(|((&start, end), (&count, &group))| (start, end, count, group))
    }
}
