//! All texts in little memory, and as each round of merging leaves them.

use rayon::prelude::*;

use super::chunk::{Chunk, Text, tokens};
use super::cuts::Cuts;
use super::laid_out::Texts;
use super::pool::{Places, Pool};
use crate::Result;
use crate::train::engine::Engine;

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

    /// Cuts the texts and lays out the parts, each once.
    ///
    /// # Errors
    /// `Invalid` if they are more than positions can hold.
    pub(in crate::train) fn lay_out(&self, cuts: &Cuts) -> Result<(Texts, Places)> {
        Pool::new(self, cuts).lay_out(self.sizes.clone())
    }

    /// Replaces each part of the texts by what merging made of it.
    pub(in crate::train) fn replace_parts(&mut self, cuts: &Cuts, places: &Places, engine: &Engine) {
        let replaced = |(number, chunk): (usize, Chunk)| {
            let (mut replaced, mut own, mut start) = (Chunk::default(), Vec::new(), 0);
            for (text, units) in chunk.texts() {
                own.clear();
                for (part, is_longer) in cuts.parts(number, start, units) {
                    match is_longer.then(|| places.find(part, text.group)).flatten() {
                        Some(place) => own.extend(engine.tokens_at(place)),
                        None => own.extend(tokens(part)),
                    }
                }
                start += units.len();
                if own.len() > 1 {
                    replaced.push(&own, text);
                }
            }
            replaced.shrink();
            replaced
        };
        let chunks = std::mem::take(&mut self.chunks);
        self.chunks = chunks.into_par_iter().enumerate().map(replaced).collect();
    }
}
