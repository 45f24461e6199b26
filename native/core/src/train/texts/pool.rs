//! Equal parts of texts as one, with the sum of their counts.

use std::hash::BuildHasher;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use foldhash::fast::FixedState;
use hashbrown::hash_table::Entry;
use hashbrown::{HashMap, HashTable};
use rayon::prelude::*;

use super::chunk::tokens;
use super::cuts::Cuts;
use super::held::Held;
use super::laid_out::{GONE, Texts, Weights};
use crate::memory::use_large_pages;
use crate::{Error, Result};

/// Parts are spread over so many tables by the highest bits of their hash, so that threads seldom want the same one.
const SHARD_BITS: u32 = 6;

const HASH: FixedState = FixedState::with_seed(0x7f4a_7c15);

/// The parts of all texts.
pub(super) struct Pool {
    shards: Vec<Shard>,
}

/// Where each part is laid out.
pub(in crate::train) struct Places {
    shards: Vec<Shard>,
}

#[derive(Default)]
struct Shard {
    parts: HashTable<Part>,
    units: Vec<u16>,
}

struct Part {
    /// How often it occurs; once it is laid out, its place.
    number: u64,
    start: u32,
    len: u32,
    hash: u32,
    group: u16,
}

impl Pool {
    /// Collects the parts of two tokens or more.
    pub(super) fn new(texts: &Held, cuts: &Cuts) -> Self {
        let shards: Vec<Mutex<Shard>> = (0..1 << SHARD_BITS).map(|_| Mutex::default()).collect();
        // The parts of a chunk are made one before any other thread must wait for it.
        texts.chunks().par_iter().enumerate().for_each_init(empty_shards, |own, (number, chunk)| {
            let mut start = 0;
            for (text, units) in texts.texts(chunk) {
                for (part, _) in cuts.parts(number, start, units).filter(|&(_, is_longer)| is_longer) {
                    let (shard, hash) = hash(part, text.group);
                    own[shard].add(part, text.group, hash, text.count);
                }
                start += units.len();
            }
            for (own, shard) in own.iter_mut().zip(&shards) {
                shard.lock().unwrap_or_else(PoisonError::into_inner).take(own);
            }
        });
        let unlocked = |shard: Mutex<Shard>| shard.into_inner().unwrap_or_else(PoisonError::into_inner);
        Self { shards: shards.into_iter().map(unlocked).collect() }
    }

    /// Lays the parts out.
    ///
    /// # Errors
    /// `Invalid` if they are more than positions can hold.
    pub(super) fn lay_out(mut self, sizes: Vec<u64>) -> Result<(Texts, Places)> {
        let len = 1 + self.shards.iter().map(|shard| shard.units.len() + shard.parts.len()).sum::<usize>();
        if len >= GONE as usize {
            return Err(Error::invalid(format!(
                "distinct texts of {len} tokens in all: 2^32 is the most; drop rare ones"
            )));
        }
        let (weights, mut places) = self.assign_places();
        let mut symbols = Vec::with_capacity(len);
        use_large_pages(&mut symbols);
        symbols.resize(len, GONE);
        for Shard { parts, units } in &mut self.shards {
            for part in parts.iter_mut() {
                let Some(place) = places.get_mut(&(part.number, part.group)) else { continue };
                let own = &units[part.range()];
                part.number = *place as u64;
                symbols[*place..].iter_mut().zip(tokens(own)).for_each(|(symbol, token)| *symbol = token);
                *place += own.len() + 1;
            }
        }
        Ok((Texts { symbols, weights, sizes }, Places { shards: self.shards }))
    }

    /// Where the parts of each count and group begin, the higher counts first.
    fn assign_places(&self) -> (Weights, HashMap<(u64, u16), usize>) {
        let mut sizes: HashMap<(u64, u16), usize> = HashMap::new();
        for part in self.shards.iter().flat_map(|shard| shard.parts.iter()) {
            *sizes.entry((part.number, part.group)).or_default() += part.len as usize + 1;
        }
        let mut sizes: Vec<((u64, u16), usize)> = sizes.into_iter().collect();
        sizes.sort_unstable_by_key(|&(key, _)| std::cmp::Reverse(key));
        let mut weights = Weights::default();
        let (mut places, mut start) = (HashMap::with_capacity(sizes.len()), 1);
        for ((count, group), size) in sizes {
            weights.push(start, start + size, count, group);
            places.insert((count, group), start);
            start += size;
        }
        (weights, places)
    }
}

impl Places {
    /// Where a part is laid out.
    pub(super) fn find(&self, part: &[u16], group: u16) -> Option<usize> {
        let (shard, hash) = hash(part, group);
        let Shard { parts, units } = &self.shards[shard];
        let same = |known: &Part| known.is(part, group, hash, units);
        parts.find(spread(hash), same).map(|part| part.number as usize)
    }
}

fn empty_shards() -> Vec<Shard> {
    (0..1 << SHARD_BITS).map(|_| Shard::default()).collect()
}

/// The shard of a part, and its hash there.
fn hash(part: &[u16], group: u16) -> (usize, u32) {
    let hash = HASH.hash_one((group, part));
    ((hash >> (u64::BITS - SHARD_BITS)) as usize, hash as u32)
}

/// A hash of 64 bits, as tables want it.
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl Shard {
    fn add(&mut self, part: &[u16], group: u16, hash: u32, count: u64) {
        let Self { parts, units } = self;
        let same = |known: &Part| known.is(part, group, hash, units);
        match parts.entry(spread(hash), same, |known| spread(known.hash)) {
            Entry::Occupied(mut known) => known.get_mut().number += count,
            Entry::Vacant(room) => {
                // An arena beyond 32 bits ends in the error of `lay_out`.
                let start = units.len() as u32;
                room.insert(Part { number: count, start, len: part.len() as u32, hash, group });
                units.extend_from_slice(part);
            }
        }
    }

    /// Moves all parts of another shard here.
    fn take(&mut self, other: &mut Self) {
        for part in other.parts.drain() {
            self.add(&other.units[part.range()], part.group, part.hash, part.number);
        }
        other.units.clear();
    }
}

impl Part {
    fn range(&self) -> Range<usize> {
        self.start as usize..self.start as usize + self.len as usize
    }

    fn is(&self, part: &[u16], group: u16, hash: u32, units: &[u16]) -> bool {
        self.hash == hash && self.group == group && &units[self.range()] == part
    }
}
