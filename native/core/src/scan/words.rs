//! The words of one thread with their totals.
//!
//! One table holds every word, two of them a cache line. Words are taken in batches, so that the memory where they belong
//! is on its way while the next ones are cut.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;

use super::inline::{INLINE_BYTES, Inline};
use super::names::Names;
use crate::counts::Words;
use crate::lexer::continues_identifier;
use crate::memory::use_large_pages;

const LONG_HASH: FixedState = FixedState::with_seed(0x5bd1_e995);

/// What a word of a document is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// A word.
    Word,
    /// A word that is an identifier or keyword in code, with or without one byte in front.
    Name,
    /// The same, leading a chain `a::b`.
    Leading,
}

/// A word of a document that waits to be counted.
#[derive(Clone, Copy)]
struct Waiting {
    low: u64,
    high: u64,
    /// The low bits of its hash, more than any table has slots.
    hash: u32,
    size: u32,
    start: u32,
    end: u32,
    used: Use,
}

impl Waiting {
    const NONE: Self = Self { low: 0, high: 0, hash: 0, size: 0, start: 0, end: 0, used: Use::Word };

    fn is_hash(&self) -> bool {
        Inline { low: 0, high: 0, size: self.size }.is_hash()
    }

    fn text<'a>(&self, source: &'a [u8]) -> &'a [u8] {
        &source[self.start as usize..self.end as usize]
    }
}

/// How many words wait for each other.
const BATCH: usize = 32;

/// A word, half a cache line.
#[derive(Clone, Copy, Default)]
#[repr(align(32))]
struct Slot {
    low: u64,
    /// Of a word that is too long for its slot: where it stands in the arena, behind its length.
    high: u64,
    count: u64,
    size: u32,
    /// One more than the number of the name that it is; zero if it is none, or that is not known.
    name: u32,
}

impl Slot {
    fn key(&self) -> Inline {
        let key = Inline { low: self.low, high: self.high, size: self.size };
        if key.is_hash() { Inline::hashed(self.low) } else { key }
    }

    fn is_free(&self) -> bool {
        self.size == 0
    }
}

/// Slots of a new table, 8 KiB.
const LEAST_SLOTS: usize = 1 << 8;
/// From so many slots on, 32 MiB, a table grows to twice its size, before to four times.
const MANY_SLOTS: usize = 1 << 20;

/// Bytes of the length of a word in the arena.
const LENGTH_BYTES: usize = 4;

/// All words.
pub(super) struct WordTotals {
    slots: Vec<Slot>,
    used: usize,
    arena: Vec<u8>,
    waiting: [Waiting; BATCH],
    /// How many wait.
    length: usize,
}

impl WordTotals {
    pub(super) fn new() -> Self {
        Self { slots: table(LEAST_SLOTS), used: 0, arena: Vec::new(), waiting: [Waiting::NONE; BATCH], length: 0 }
    }

    /// Counts the word `source[start..end]`; [`Self::settle`] must come before another source.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "a call for each word is a tenth of what it does")]
    pub(super) fn count(&mut self, source: &[u8], [start, end]: [usize; 2], used: Use, names: &mut Names) {
        let key = if end - start <= INLINE_BYTES {
            Inline::within(source, start, end)
        } else {
            Inline::hashed(LONG_HASH.hash_one(&source[start..end]))
        };
        let hash = key.hash();
        prefetch(&self.slots[hash as usize & (self.slots.len() - 1)]);
        let Inline { low, high, size } = key;
        let [start, end] = [start as u32, end as u32];
        self.waiting[self.length % BATCH] = Waiting { low, high, hash: hash as u32, size, start, end, used };
        self.length += 1;
        if self.length == BATCH {
            self.settle(source, names);
        }
    }

    /// Counts what waits.
    pub(super) fn settle(&mut self, source: &[u8], names: &mut Names) {
        let waiting = self.waiting;
        for word in &waiting[..self.length] {
            let at = self.find_or_insert(word, source);
            let slot = &mut self.slots[at];
            slot.count += 1;
            if word.used != Use::Word {
                if slot.name == 0 {
                    slot.name = 1 + names.number(name(word.text(source)));
                }
                names.see(slot.name - 1, word.used == Use::Leading);
            }
        }
        self.length = 0;
    }

    #[inline]
    fn find_or_insert(&mut self, word: &Waiting, source: &[u8]) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = word.hash as usize & mask;
        loop {
            let slot = &self.slots[at];
            if slot.low == word.low && slot.size == word.size {
                let same = if word.is_hash() { self.long(slot) == word.text(source) } else { slot.high == word.high };
                if same {
                    return at;
                }
            }
            if slot.is_free() {
                return self.insert(word, at, source);
            }
            at = (at + 1) & mask;
        }
    }

    #[cold]
    fn insert(&mut self, word: &Waiting, mut at: usize, source: &[u8]) -> usize {
        if (self.used + 1) * 3 > self.slots.len() * 2 {
            self.grow();
            at = free(&self.slots, u64::from(word.hash));
        }
        self.used += 1;
        let Waiting { low, mut high, size, start, end, .. } = *word;
        if word.is_hash() {
            high = self.arena.len() as u64;
            self.arena.extend_from_slice(&(end - start).to_le_bytes());
            self.arena.extend_from_slice(word.text(source));
        }
        self.slots[at] = Slot { low, high, size, ..Slot::default() };
        at
    }

    #[cold]
    fn grow(&mut self) {
        let larger = table(self.slots.len() * if self.slots.len() < MANY_SLOTS { 4 } else { 2 });
        for slot in std::mem::replace(&mut self.slots, larger) {
            if !slot.is_free() {
                let at = free(&self.slots, slot.key().hash());
                self.slots[at] = slot;
            }
        }
    }

    /// The bytes of a word that is too long for its slot.
    fn long(&self, slot: &Slot) -> &[u8] {
        let (length, rest) = self.arena[slot.high as usize..].split_at(LENGTH_BYTES);
        &rest[..length.iter().rev().fold(0, |length, &byte| (length << 8) | usize::from(byte))]
    }

    /// The memory of everything that grows with the words.
    pub(super) fn memory_bytes(&self) -> usize {
        self.slots.len() * size_of::<Slot>() + self.arena.capacity()
    }
}

/// A table of free slots.
fn table(length: usize) -> Vec<Slot> {
    let mut slots = Vec::with_capacity(length);
    use_large_pages(&mut slots);
    slots.resize(length, Slot::default());
    slots
}

/// The free slot for a key that is not there.
fn free(slots: &[Slot], hash: u64) -> usize {
    let mask = slots.len() - 1;
    let mut at = hash as usize & mask;
    while !slots[at].is_free() {
        at = (at + 1) & mask;
    }
    at
}

/// Asks for a slot's memory.
#[inline]
fn prefetch(slot: &Slot) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing and cannot fault.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(slot).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = slot;
}

/// The identifier that a word is, without the byte that may stand in front of it.
fn name(word: &[u8]) -> &[u8] {
    match word {
        [first, rest @ ..] if !continues_identifier(*first) => rest,
        _ => word,
    }
}

impl Words for WordTotals {
    fn len(&self) -> usize {
        self.used
    }

    fn for_each(&self, mut each: impl FnMut(&[u8], u64)) {
        let mut buffer = [0; INLINE_BYTES];
        for slot in self.slots.iter().filter(|slot| !slot.is_free()) {
            let key = slot.key();
            each(if key.is_hash() { self.long(slot) } else { key.bytes(&mut buffer) }, slot.count);
        }
    }
}
