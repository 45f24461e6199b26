//! Texts as sequences of tokens: words, or the lines from which superwords are learned.

use std::sync::{Mutex, PoisonError};

use hashbrown::{HashMap, HashSet};
use rayon::prelude::*;

use super::bound::{Bound, LeftOut};
use super::input::Rows;
use super::tokens::{Tokens, byte_numbers};
use crate::encode::{LineMerges, LineSegmenter, Merges};
use crate::memory::use_large_pages;
use crate::pattern::Pattern;
use crate::{Error, Result};

/// Between texts, and inside tokens.
pub(super) const GONE: u32 = u32::MAX;

/// How many rows are cut into tokens at a time, by one thread.
const CHUNK_ROWS: usize = 1 << 14;

/// All texts in one flat array, one entry per token, `GONE` before and after each text; texts of equal count and group
/// lie together, the higher counts first. Texts of one token are left out: there is nothing to merge in them.
pub(super) struct Texts {
    pub(super) symbols: Vec<u32>,
    pub(super) weights: Weights,
    /// The bytes of the texts of each group, times their counts; those of one token and those left out too.
    pub(super) sizes: Vec<u64>,
}

/// Which count and group the text at a position has: a short list, for texts that have both in common lie together.
#[derive(Default)]
pub(super) struct Weights {
    starts: Vec<usize>,
    counts: Vec<u64>,
    groups: Vec<u16>,
}

impl Weights {
    /// Looks up the counts at positions that never fall; `cursor` starts at 0.
    #[inline]
    pub(super) fn at(&self, position: usize, cursor: &mut usize) -> u64 {
        let next = *cursor + 1;
        if self.starts.get(next).is_some_and(|&start| start <= position) {
            *cursor += self.starts[next..].partition_point(|&start| start <= position);
        }
        self.counts[*cursor]
    }

    /// The group of the text that was looked up last.
    #[inline]
    pub(super) fn group(&self, cursor: usize) -> u16 {
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
    pub(super) fn parts(&self, end: usize) -> impl Iterator<Item = (usize, usize, u64, u16)> + '_ {
        let ends = self.starts.iter().skip(1).copied().chain(std::iter::once(end));
        let kinds = self.counts.iter().zip(&self.groups);
        self.starts.iter().zip(ends).zip(kinds).map(|((&start, end), (&count, &group))| (start, end, count, group))
    }
}

/// What is known of a text beside its bytes.
struct Text {
    count: u64,
    hash: u32,
    group: u16,
}

/// The texts of some rows that are to be cut into tokens.
#[derive(Default)]
struct UncutTexts {
    texts: Vec<Text>,
    /// Their bytes, one after the other, and where they end.
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl UncutTexts {
    fn push(&mut self, text: &[u8], about: Text) {
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len());
        self.texts.push(about);
    }
}

/// The texts of some rows.
#[derive(Default)]
struct TextChunk {
    tokens: Vec<u32>,
    lengths: Vec<u32>,
    counts: Vec<u64>,
    hashes: Vec<u32>,
    groups: Vec<u16>,
    left_out: u64,
    /// The bytes of all rows of each group times their counts, rows of one token too.
    bytes: Vec<u128>,
}

impl TextChunk {
    /// Adds texts, whose tokens end at `ends` in `tokens`, but for those of one token and those that the bound leaves out.
    fn add(&mut self, texts: &[Text], tokens: &[u32], ends: &[usize], bound: &Bound) {
        let mut start = 0;
        for (&Text { count, hash, group }, &end) in texts.iter().zip(ends) {
            let own = &tokens[start..end];
            start = end;
            if own.len() > 1 && bound.keeps(count, hash) {
                self.tokens.extend_from_slice(own);
                self.lengths.push(own.len() as u32);
                self.counts.push(count);
                self.hashes.push(hash);
                self.groups.push(group);
            } else {
                self.left_out += u64::from(own.len() > 1);
            }
        }
        self.shrink();
    }

    /// The length, the count and the group of each text.
    fn texts(&self) -> impl Iterator<Item = (u32, u64, u16)> + '_ {
        let kinds = self.counts.iter().zip(&self.groups);
        self.lengths.iter().zip(kinds).map(|(&length, (&count, &group))| (length, count, group))
    }

    /// Leaves out what the bound no longer keeps.
    fn thin(&mut self, bound: &Bound) {
        let (mut kept, mut end, mut start) = (0, 0, 0);
        for text in 0..self.lengths.len() {
            let length = self.lengths[text] as usize;
            if bound.keeps(self.counts[text], self.hashes[text]) {
                self.tokens.copy_within(start..start + length, end);
                self.lengths[kept] = self.lengths[text];
                self.counts[kept] = self.counts[text];
                self.hashes[kept] = self.hashes[text];
                self.groups[kept] = self.groups[text];
                (kept, end) = (kept + 1, end + length);
            }
            start += length;
        }
        self.left_out += (self.lengths.len() - kept) as u64;
        self.tokens.truncate(end);
        self.lengths.truncate(kept);
        self.counts.truncate(kept);
        self.hashes.truncate(kept);
        self.groups.truncate(kept);
        self.shrink();
    }

    fn shrink(&mut self) {
        self.tokens.shrink_to_fit();
        self.lengths.shrink_to_fit();
        self.counts.shrink_to_fit();
        self.hashes.shrink_to_fit();
        self.groups.shrink_to_fit();
    }
}

/// Cuts texts into the tokens that there are, and collects them.
pub(super) struct Collector<'a> {
    /// Nothing where there are single bytes only.
    merges: Option<LineMerges>,
    segmenters: Mutex<Vec<LineSegmenter>>,
    /// The tokens as bytes.
    spelled: HashSet<&'a [u8]>,
    parts: Vec<TextChunk>,
    bound: Bound,
    /// How many tokens are held.
    held: usize,
    bytes: Vec<u128>,
}

impl<'a> Collector<'a> {
    /// Texts are cut into these tokens, as the merges so far encode them; `words` says what words texts have.
    pub(super) fn new(tokens: &'a Tokens, bound: Bound, words: Pattern) -> Self {
        let merges: Vec<_> = tokens.merges().collect();
        let lengths = (0..tokens.next()).map(|token| tokens.bytes(token).len() as u32).collect();
        let table = || Merges::new(Box::new(byte_numbers()), &merges, lengths);
        let merges = (!merges.is_empty()).then(|| LineMerges::new(table(), &merges, words));
        let spelled = (0..tokens.next()).map(|token| tokens.bytes(token)).collect();
        Self { merges, segmenters: Mutex::default(), spelled, parts: Vec::new(), bound, held: 0, bytes: Vec::new() }
    }

    /// Adds the texts of a batch, on the threads of the pool that this runs in.
    pub(super) fn add_rows(&mut self, rows: &Rows<'_>) {
        let starts: Vec<usize> = (0..rows.len()).step_by(CHUNK_ROWS).collect();
        let cut = |start| self.cut((start..rows.len().min(start + CHUNK_ROWS)).map(|row| rows.get(row)));
        let parts: Vec<TextChunk> = starts.into_par_iter().map(cut).collect();
        self.take(parts);
    }

    /// Adds texts that occur once each.
    pub(super) fn add_once<'t>(&mut self, texts: impl IntoIterator<Item = &'t [u8]>) {
        let part = self.cut(texts.into_iter().map(|text| (text, 1, 0)));
        self.take(vec![part]);
    }

    /// Cuts texts with their counts and groups.
    fn cut<'t>(&self, texts: impl Iterator<Item = (&'t [u8], u64, u16)>) -> TextChunk {
        let (mut part, mut uncut) = (TextChunk::default(), UncutTexts::default());
        for (text, count, group) in texts {
            add_at(&mut part.bytes, usize::from(group), u128::from(count) * text.len() as u128);
            if text.len() < 2 || count == 0 {
                continue;
            }
            let hash = crc32fast::hash(text);
            if self.bound.keeps(count, hash) || self.spelled.contains(text) {
                uncut.push(text, Text { count, hash, group });
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

    fn take(&mut self, parts: Vec<TextChunk>) {
        for (group, &bytes) in parts.iter().flat_map(|part| part.bytes.iter().enumerate()) {
            add_at(&mut self.bytes, group, bytes);
        }
        self.held += parts.iter().map(|part| part.tokens.len()).sum::<usize>();
        self.parts.extend(parts);
        while self.bound.exceeded(self.held) {
            self.bound.rise();
            let bound = &self.bound;
            self.parts.par_iter_mut().for_each(|part| part.thin(bound));
            self.held = self.parts.iter().map(|part| part.tokens.len()).sum();
        }
    }

    /// What was left out so far.
    pub(super) fn left_out(&self) -> LeftOut {
        LeftOut { least: self.bound.least(), texts: self.parts.iter().map(|part| part.left_out).sum() }
    }

    /// Lays the texts out.
    ///
    /// # Errors
    /// `Invalid` if they are more than positions or counts can hold.
    pub(super) fn finish(self) -> Result<Texts> {
        let bytes: u128 = self.bytes.iter().sum();
        if bytes > u128::from(u64::MAX) {
            return Err(Error::invalid(format!("the texts stand for {bytes} bytes: more than 64-bit counts hold")));
        }
        let mut sizes: HashMap<(u64, u16), usize> = HashMap::new();
        for part in &self.parts {
            for (length, count, group) in part.texts() {
                *sizes.entry((self.bound.weight(count), group)).or_default() += length as usize + 1;
            }
        }
        let len = sizes.values().sum::<usize>() + 1;
        if len >= GONE as usize {
            return Err(Error::invalid(format!(
                "distinct texts of {len} tokens in all: 2^32 is the most; drop rare ones"
            )));
        }
        let (symbols, weights) = lay_out(self.parts, &self.bound, sizes, len);
        Ok(Texts { symbols, weights, sizes: self.bytes.into_iter().map(|bytes| bytes as u64).collect() })
    }
}

fn add_at(sums: &mut Vec<u128>, at: usize, number: u128) {
    sums.resize(sums.len().max(at + 1), 0);
    sums[at] += number;
}

fn lay_out(parts: Vec<TextChunk>, bound: &Bound, sizes: HashMap<(u64, u16), usize>, len: usize) -> (Vec<u32>, Weights) {
    let mut sizes: Vec<((u64, u16), usize)> = sizes.into_iter().collect();
    sizes.sort_unstable_by_key(|&(key, _)| std::cmp::Reverse(key));
    let mut weights = Weights::default();
    let (mut places, mut start) = (HashMap::with_capacity(sizes.len()), 1);
    for ((count, group), size) in sizes {
        weights.push(start, start + size, count, group);
        places.insert((count, group), start);
        start += size;
    }
    let mut symbols = Vec::with_capacity(len);
    use_large_pages(&mut symbols);
    symbols.resize(len, GONE);
    for part in parts {
        let mut tokens = part.tokens.as_slice();
        for (length, count, group) in part.texts() {
            let Some((text, rest)) = tokens.split_at_checked(length as usize) else { break };
            tokens = rest;
            if let Some(place) = places.get_mut(&(bound.weight(count), group)) {
                symbols[*place..*place + text.len()].copy_from_slice(text);
                *place += text.len() + 1;
            }
        }
    }
    (symbols, weights)
}

impl Texts {
    /// How many pairs there are, each text times its count.
    pub(super) fn pairs(&self) -> u64 {
        let live = |part: &[u32]| part.windows(2).filter(|pair| pair[0] != GONE && pair[1] != GONE).count() as u64;
        let parts = self.weights.parts(self.symbols.len());
        parts.map(|(start, end, count, _)| live(&self.symbols[start..end]) * count).sum()
    }
}
