//! What is counted of a feature or a name.

/// Hits, and documents with at least one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) hits: u64,
    pub(super) documents: u64,
}

impl Tally {
    /// Adds the hits of one document.
    pub(super) fn add(&mut self, hits: u64) {
        self.hits += hits;
        self.documents += 1;
    }

    /// Adds another's totals.
    pub(super) fn merge(&mut self, other: Self) {
        self.hits += other.hits;
        self.documents += other.documents;
    }
}
