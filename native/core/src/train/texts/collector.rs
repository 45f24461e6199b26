//! Rows of texts, cut into tokens and held.

use std::sync::{Mutex, PoisonError};

use hashbrown::HashSet;
use rayon::prelude::*;

use super::chunk::{Chunk, Text, tokens};
use super::held::Held;
use crate::encode::{LineMerges, LineSegmenter, Merges};
use crate::pattern::Pattern;
use crate::train::bound::{Bound, LeftOut};
use crate::train::input::Rows;
use crate::train::tokens::{Tokens, byte_numbers};
use crate::{Error, Result};

/// How many rows are cut into tokens at a time, by one thread.
const CHUNK_ROWS: usize = 1 << 14;

/// The texts of some rows that are to be cut into tokens.
#[derive(Default)]
struct UncutTexts {
    /// With their hashes.
    texts: Vec<(Text, u32)>,
    /// Their bytes, one after the other, and where they end.
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl UncutTexts {
    fn push(&mut self, bytes: &[u8], text: Text, hash: u32) {
        self.bytes.extend_from_slice(bytes);
        self.ends.push(self.bytes.len());
        self.texts.push((text, hash));
    }
}

/// The texts of some rows that are held.
#[derive(Default)]
struct HeldRows {
    chunk: Chunk,
    /// The hash of each text, by which it is thinned.
    hashes: Vec<u32>,
    left_out: u64,
    /// The bytes of all rows of each group times their counts, rows of one token too.
    bytes: Vec<u128>,
}

impl HeldRows {
    /// Adds texts, whose tokens end at `ends` in `tokens`, but for those of one token and those that the bound leaves
    /// out.
    fn add(&mut self, texts: &[(Text, u32)], tokens: &[u32], ends: &[usize], bound: &Bound) {
        let mut start = 0;
        for (&(text, hash), &end) in texts.iter().zip(ends) {
            let own = &tokens[start..end];
            start = end;
            if own.len() > 1 {
                self.push(own, text, hash, bound);
            }
        }
        self.shrink();
    }

    fn push(&mut self, tokens: &[u32], text: Text, hash: u32, bound: &Bound) {
        if bound.keeps(text.count, hash) {
            self.chunk.push(tokens, text);
            self.hashes.push(hash);
        } else {
            self.left_out += 1;
        }
    }

    /// Leaves out what the bound no longer keeps.
    fn thin(&mut self, bound: &Bound) {
        let (chunk, hashes) = (std::mem::take(&mut self.chunk), std::mem::take(&mut self.hashes));
        let mut own = Vec::new();
        for ((text, units), hash) in chunk.texts().zip(hashes) {
            own.clear();
            own.extend(tokens(units));
            self.push(&own, text, hash, bound);
        }
        self.shrink();
    }

    fn shrink(&mut self) {
        self.chunk.shrink();
        self.hashes.shrink_to_fit();
    }
}

/// Cuts texts into the tokens that there are, and collects them.
pub(in crate::train) struct Collector<'a> {
    /// Nothing where there are single bytes only.
    merges: Option<LineMerges>,
    segmenters: Mutex<Vec<LineSegmenter>>,
    /// The tokens as bytes.
    spelled: HashSet<&'a [u8]>,
    parts: Vec<HeldRows>,
    bound: Bound,
    /// How many tokens are held.
    held: usize,
    bytes: Vec<u128>,
}

impl<'a> Collector<'a> {
    /// Texts are cut into these tokens, as the merges so far encode them; `words` says what words texts have.
    ///
    /// # Errors
    /// As [`Tokens::check_number`].
    pub(in crate::train) fn new(tokens: &'a Tokens, bound: Bound, words: Pattern) -> Result<Self> {
        tokens.check_number()?;
        let merges: Vec<_> = tokens.merges().collect();
        let lengths = (0..tokens.next()).map(|token| tokens.bytes(token).len() as u32).collect();
        let table = || Merges::new(Box::new(byte_numbers()), &merges, lengths);
        let merges = (!merges.is_empty()).then(|| LineMerges::new(table(), &merges, words));
        let spelled = (0..tokens.next()).map(|token| tokens.bytes(token)).collect();
        let (segmenters, parts, bytes) = Default::default();
        Ok(Self { merges, segmenters, spelled, parts, bound, held: 0, bytes })
    }

    /// Adds the texts of a batch, on the threads of the pool that this runs in.
    pub(in crate::train) fn add_rows(&mut self, rows: &Rows<'_>) {
        let starts: Vec<usize> = (0..rows.len()).step_by(CHUNK_ROWS).collect();
        let cut = |start| self.cut((start..rows.len().min(start + CHUNK_ROWS)).map(|row| rows.get(row)));
        let parts: Vec<HeldRows> = starts.into_par_iter().map(cut).collect();
        self.take(parts);
    }

    /// Adds texts that occur once each.
    pub(in crate::train) fn add_once<'t>(&mut self, texts: impl IntoIterator<Item = &'t [u8]>) {
        let part = self.cut(texts.into_iter().map(|text| (text, 1, 0)));
        self.take(vec![part]);
    }

    /// Cuts texts with their counts and groups.
    fn cut<'t>(&self, texts: impl Iterator<Item = (&'t [u8], u64, u16)>) -> HeldRows {
        let (mut part, mut uncut) = (HeldRows::default(), UncutTexts::default());
        for (text, count, group) in texts {
            add_at(&mut part.bytes, usize::from(group), u128::from(count) * text.len() as u128);
            if text.len() < 2 || count == 0 {
                continue;
            }
            let hash = crc32fast::hash(text);
            if self.bound.keeps(count, hash) || self.spelled.contains(text) {
                uncut.push(text, Text { count, group }, hash);
            } else {
                part.left_out += 1;
            }
        }
        let (mut tokens, mut ends) = (Vec::with_capacity(uncut.bytes.len() / 2), Vec::with_capacity(uncut.ends.len()));
        self.segment(&uncut, &mut tokens, &mut ends);
        part.add(&uncut.texts, &tokens, &ends, &self.bound);
        part
    }

    fn segment(&self, uncut: &UncutTexts, tokens: &mut Vec<u32>, ends: &mut Vec<usize>) {
        let Some(merges) = &self.merges else {
            let numbers = byte_numbers();
            tokens.extend(uncut.bytes.iter().map(|&byte| numbers[usize::from(byte)]));
            return ends.extend(&uncut.ends);
        };
        let resting = self.segmenters.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut segmenter = resting.unwrap_or_default();
        segmenter.segment(merges, &uncut.bytes, &uncut.ends, tokens, ends);
        self.segmenters.lock().unwrap_or_else(PoisonError::into_inner).push(segmenter);
    }

    fn take(&mut self, parts: Vec<HeldRows>) {
        for (group, &bytes) in parts.iter().flat_map(|part| part.bytes.iter().enumerate()) {
            add_at(&mut self.bytes, group, bytes);
        }
        self.held += parts.iter().map(|part| part.chunk.tokens()).sum::<usize>();
        self.parts.extend(parts);
        while self.bound.exceeded(self.held) {
            self.bound.rise();
            let bound = &self.bound;
            self.parts.par_iter_mut().for_each(|part| part.thin(bound));
            self.held = self.parts.iter().map(|part| part.chunk.tokens()).sum();
        }
    }

    /// What was left out so far.
    pub(in crate::train) fn left_out(&self) -> LeftOut {
        LeftOut { least: self.bound.least(), texts: self.parts.iter().map(|part| part.left_out).sum() }
    }

    /// Gives the texts.
    ///
    /// # Errors
    /// `Invalid` if they are more than counts can hold.
    pub(in crate::train) fn finish(self) -> Result<Held> {
        let bytes: u128 = self.bytes.iter().sum();
        if bytes > u128::from(u64::MAX) {
            return Err(Error::invalid(format!("the texts stand for {bytes} bytes: more than 64-bit counts hold")));
        }
        let chunks = self.parts.into_iter().map(|part| part.chunk).collect();
        let sizes = self.bytes.into_iter().map(|bytes| bytes as u64).collect();
        Ok(Held::new(chunks, self.bound.least(), sizes))
    }
}

fn add_at(sums: &mut Vec<u128>, at: usize, number: u128) {
    sums.resize(sums.len().max(at + 1), 0);
    sums[at] += number;
}
