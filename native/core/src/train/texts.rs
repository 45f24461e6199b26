//! Texts as sequences of tokens: words, or the lines from which superwords are learned.

use hashbrown::HashMap;
use rayon::prelude::*;

use super::bound::{Bound, LeftOut};
use super::input::Rows;
use super::tokens::{BYTES, Tokens, byte_numbers};
use crate::encode::{Merges, Scratch};
use crate::memory::use_large_pages;
use crate::stop::NEVER;
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
    fn with_room(bytes: usize, texts: usize) -> Self {
        Self {
            tokens: Vec::with_capacity(bytes),
            lengths: Vec::with_capacity(texts),
            counts: Vec::with_capacity(texts),
            hashes: Vec::with_capacity(texts),
            groups: Vec::with_capacity(texts),
            ..Self::default()
        }
    }

    fn add(
        &mut self,
        text: &[u8],
        (count, group): (u64, u16),
        bound: &Bound,
        segment: impl FnOnce(&[u8], &mut Vec<u32>),
    ) {
        add_at(&mut self.bytes, usize::from(group), u128::from(count) * text.len() as u128);
        if text.len() < 2 || count == 0 {
            return;
        }
        let start = self.tokens.len();
        segment(text, &mut self.tokens);
        let length = self.tokens.len() - start;
        let hash = crc32fast::hash(text);
        if length > 1 && bound.keeps(count, hash) {
            self.lengths.push(length as u32);
            self.counts.push(count);
            self.hashes.push(hash);
            self.groups.push(group);
            return;
        }
        self.tokens.truncate(start);
        self.left_out += u64::from(length > 1);
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
pub(super) struct Collector {
    /// Nothing where there are single bytes only.
    merges: Option<Merges>,
    numbers: [u32; BYTES as usize],
    parts: Vec<TextChunk>,
    bound: Bound,
    /// How many tokens are held.
    held: usize,
    bytes: Vec<u128>,
}

impl Collector {
    /// Texts are cut into these tokens, as the merges so far encode them.
    pub(super) fn new(tokens: &Tokens, bound: Bound) -> Self {
        let numbers = byte_numbers();
        let merges: Vec<_> = tokens.merges().collect();
        let lengths = (0..tokens.next()).map(|token| tokens.bytes(token).len() as u32).collect();
        let merges = (!merges.is_empty()).then(|| Merges::new(Box::new(numbers), &merges, lengths));
        Self { merges, numbers, parts: Vec::new(), bound, held: 0, bytes: Vec::new() }
    }

    /// Adds the texts of a batch, on the threads of the pool that this runs in.
    pub(super) fn add_rows(&mut self, rows: &Rows<'_>) {
        let starts: Vec<usize> = (0..rows.len()).step_by(CHUNK_ROWS).collect();
        let parts: Vec<TextChunk> = starts
            .into_par_iter()
            .map(|start| {
                let chunk = start..rows.len().min(start + CHUNK_ROWS);
                let mut part = TextChunk::with_room(chunk.clone().map(|row| rows.get(row).0.len()).sum(), chunk.len());
                let mut scratch = Scratch::default();
                for row in chunk {
                    let (text, count, group) = rows.get(row);
                    part.add(text, (count, group), &self.bound, |text, out| self.segment(&mut scratch, text, out));
                }
                part.shrink();
                part
            })
            .collect();
        self.take(parts);
    }

    /// Adds texts that occur once each.
    pub(super) fn add_once<'a>(&mut self, texts: impl IntoIterator<Item = &'a [u8]>) {
        let (mut part, mut scratch) = (TextChunk::default(), Scratch::default());
        for text in texts {
            part.add(text, (1, 0), &self.bound, |text, out| self.segment(&mut scratch, text, out));
        }
        self.take(vec![part]);
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

    fn segment(&self, scratch: &mut Scratch, text: &[u8], out: &mut Vec<u32>) {
        match &self.merges {
            Some(merges) => merges.merge(scratch, text, &NEVER, out),
            None => out.extend(text.iter().map(|&byte| self.numbers[usize::from(byte)])),
        }
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
