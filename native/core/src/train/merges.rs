//! What training gives: merges, each with its phase.

/// When a merge is learned; all merges of a phase rank before those of the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// For the seeds, inside runs of identifier bytes.
    Identifier = 0,
    /// For the seeds, across the borders of such runs and outside them.
    Border = 1,
    /// From the words, as the seed merges leave them.
    Corpus = 2,
    /// From lines, as all merges before leave them.
    Superword = 3,
}

/// A merge with how often its pair occurred when it was learned.
pub(super) struct LearnedMerge {
    pub(super) left: u32,
    pub(super) right: u32,
    pub(super) count: u64,
    pub(super) phase: Phase,
}
