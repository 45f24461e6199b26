//! All texts in little memory, and as each round of merging leaves them.

use rayon::prelude::*;

use super::chunk::{Chunk, Text, tokens};

/// Texts of two tokens or more.
pub(in crate::train) struct Held {
    chunks: Vec<Chunk>,
    /// The count that rarer texts represent.
    least: u64,
    /// The bytes of the texts of each group, times their counts; those of one token and those left out too.
    sizes: Vec<u64>,
}

impl Held {
    pub(super) fn new(chunks: Vec<Chunk>, least: u64, sizes: Vec<u64>) -> Self {
        Self { chunks, least, sizes }
    }

    pub(super) fn chunks(&self) -> &[Chunk] {
        &self.chunks
    }

    /// The texts of a chunk with the counts that they represent.
    pub(super) fn texts<'c>(&self, chunk: &'c Chunk) -> impl Iterator<Item = (Text, &'c [u16])> {
        let least = self.least;
        chunk.texts().map(move |(Text { count, group }, units)| (Text { count: count.max(least), group }, units))
    }

    /// How many pairs there are, each text times its count.
    pub(in crate::train) fn pairs(&self) -> u64 {
        let pairs = |chunk| -> u64 {
            self.texts(chunk).map(|(text, units)| (tokens(units).count() as u64 - 1) * text.count).sum()
        };
        self.chunks.par_iter().map(pairs).sum()
    }

    /// The bytes of the texts of each group, times their counts.
    pub(super) fn sizes(&self) -> &[u64] {
        &self.sizes
    }

    /// Replaces each chunk, given its number.
    pub(super) fn replace(&mut self, chunk: impl Fn((usize, Chunk)) -> Chunk + Send + Sync) {
        let chunks = std::mem::take(&mut self.chunks);
        self.chunks = chunks.into_par_iter().enumerate().map(chunk).collect();
    }
}
