//! The words of one thread with their totals, in one table, two of them a cache line.

use std::cmp::Ordering;
use std::ops::Range;

use super::waiting::WaitingWord;
use crate::counts::Words;
use crate::memory::{defaults, prefetch};
use crate::short_key::{KEY_BYTES, ShortKey};

/// A word, half a cache line.
#[derive(Clone, Copy, Default)]
#[repr(align(32))]
pub(super) struct Slot {
    /// Of a long word with its place in the arena, where its length comes first.
    key: ShortKey,
    pub(super) count: u64,
    /// One more than the number of the name that it is; zero if it is none, or that is not known.
    pub(super) name: u32,
}

impl Slot {
    fn is_free(&self) -> bool {
        self.key.is_none()
    }

    /// The high bits of the hash of its word.
    fn hash(&self) -> u32 {
        let key = if self.key.is_long() { ShortKey::of_hash(self.key.low()) } else { self.key };
        (key.hash() >> 32) as u32
    }
}

/// Slots of a new table, 8 KiB.
const LEAST_SLOTS: usize = 1 << 8;
/// From so many slots on, 32 MiB, a table grows to twice its size, before to four times, if its share of memory allows.
const MANY_SLOTS: usize = 1 << 20;

/// How many words ahead the bytes of a long one are asked for.
pub(in crate::scan) const AHEAD: usize = 16;

/// Bytes of the length of a word in the arena.
const LENGTH_BYTES: usize = 4;

/// All words. A word is in the slot that the high bits of its hash tell, or in the first free one behind it. So the
/// words of any table are nearly in the order of their hashes.
pub(in crate::scan) struct WordTable {
    slots: Vec<Slot>,
    used: usize,
    /// The partition of all its words, if they have one together.
    partition: Option<u32>,
    /// Up to so many bytes, the slots may grow to four times what they are.
    share_bytes: usize,
    arena: Vec<u8>,
}

impl WordTable {
    /// An empty table of one that may take `share_bytes`; it grows beyond that, to twice its size at a time.
    pub(super) fn new(share_bytes: usize, partition: Option<u32>) -> Self {
        Self { slots: defaults(LEAST_SLOTS), used: 0, partition, share_bytes, arena: Vec::new() }
    }

    /// Asks for the slot of a hash.
    #[inline]
    pub(super) fn prefetch(&self, hash: u32) {
        prefetch(&self.slots[home(hash, self.slots.len())]);
    }

    /// Asks for the bytes of the long word in the slot of a hash.
    #[inline]
    pub(super) fn prefetch_long(&self, hash: u32) {
        self.prefetch_text(&self.slots[home(hash, self.slots.len())]);
    }

    /// The slot of a word of `source`, which is put there if it is new.
    #[inline]
    pub(super) fn find_or_insert(&mut self, word: &WaitingWord, source: &[u8]) -> &mut Slot {
        let mask = self.slots.len() - 1;
        let mut at = home(word.hash, self.slots.len());
        loop {
            let slot = &self.slots[at];
            if slot.key.low() == word.key.low() && self.is_same(slot, word, source) {
                return &mut self.slots[at];
            }
            if slot.is_free() {
                return self.insert(word, at, source);
            }
            at = (at + 1) & mask;
        }
    }

    /// Whether the slot has this word.
    #[inline]
    fn is_same(&self, slot: &Slot, word: &WaitingWord, source: &[u8]) -> bool {
        if word.key.is_long() {
            slot.key.is_long() && self.long_text(slot) == word.text(source, &mut [0; KEY_BYTES])
        } else {
            slot.key == word.key
        }
    }

    #[cold]
    fn insert(&mut self, word: &WaitingWord, mut at: usize, source: &[u8]) -> &mut Slot {
        if (self.used + 1) * 3 > self.slots.len() * 2 {
            self.grow();
            at = free(&self.slots, word.hash);
        }
        self.used += 1;
        let mut key = word.key;
        if key.is_long() {
            key = key.with_place(self.arena.len());
            let mut buffer = [0; KEY_BYTES];
            let text = word.text(source, &mut buffer);
            self.arena.extend_from_slice(&(text.len() as u32).to_le_bytes());
            self.arena.extend_from_slice(text);
        }
        self.slots[at] = Slot { key, ..Slot::default() };
        &mut self.slots[at]
    }

    #[cold]
    fn grow(&mut self) {
        let four_times = 4 * self.slots.len();
        let is_small = self.slots.len() < MANY_SLOTS && four_times * size_of::<Slot>() <= self.share_bytes;
        let larger = defaults(if is_small { four_times } else { 2 * self.slots.len() });
        for slot in std::mem::replace(&mut self.slots, larger) {
            if !slot.is_free() {
                let at = free(&self.slots, slot.hash());
                self.slots[at] = slot;
            }
        }
    }

    /// The bytes of a word, in `buffer` if they are few.
    fn text<'a>(&'a self, slot: &Slot, buffer: &'a mut [u8; KEY_BYTES]) -> &'a [u8] {
        if slot.key.is_long() { self.long_text(slot) } else { slot.key.bytes(buffer) }
    }

    /// The bytes of a word that is too long for its slot.
    fn long_text(&self, slot: &Slot) -> &[u8] {
        let (length, rest) = self.arena[slot.key.place()..].split_at(LENGTH_BYTES);
        &rest[..length.iter().rev().fold(0, |length, &byte| (length << 8) | usize::from(byte))]
    }

    /// Asks for the bytes of a word that is too long for its slot.
    #[inline]
    fn prefetch_text(&self, slot: &Slot) {
        if slot.key.is_long()
            && let Some(text) = self.arena.get(slot.key.place())
        {
            prefetch(text);
        }
    }

    /// The words whose hashes lie in `range`, high bits only, nearly in the order of these.
    pub(in crate::scan) fn within(&self, range: Range<u64>) -> impl Iterator<Item = CountedWord<'_>> {
        let home = |hash: u64| ((hash * self.slots.len() as u64) >> 32) as usize;
        let (first, end) = (home(range.start), home(range.end - 1));
        // Words that found the last home taken are behind it, up to a free slot.
        let overflow = (end + 1..self.slots.len()).chain(0..first).take_while(|&at| !self.slots[at].is_free());
        (first..=end).chain(overflow).filter_map(move |at| {
            let slot = &self.slots[at];
            let hash = slot.hash();
            let inside = !slot.is_free() && range.contains(&u64::from(hash));
            inside.then_some(CountedWord { words: self, slot, hash })
        })
    }

    /// The bytes of all words, about.
    pub(in crate::scan) fn text_bytes(&self) -> usize {
        self.used * KEY_BYTES + self.arena.len()
    }

    /// The memory of everything that grows with the words.
    pub(in crate::scan) fn memory_bytes(&self) -> usize {
        self.slots.len() * size_of::<Slot>() + self.arena.capacity()
    }
}

/// A word of a table.
#[derive(Clone, Copy)]
pub(in crate::scan) struct CountedWord<'a> {
    words: &'a WordTable,
    slot: &'a Slot,
    /// The high bits of its hash.
    pub(in crate::scan) hash: u32,
}

impl CountedWord<'_> {
    pub(in crate::scan) fn count(&self) -> u64 {
        self.slot.count
    }

    /// Asks for the word's bytes.
    pub(in crate::scan) fn prefetch(&self) {
        self.words.prefetch_text(self.slot);
    }

    /// The word, in `buffer` if it is short.
    pub(in crate::scan) fn text<'b>(&'b self, buffer: &'b mut [u8; KEY_BYTES]) -> &'b [u8] {
        self.words.text(self.slot, buffer)
    }

    /// By hash, then bytewise.
    pub(in crate::scan) fn order(&self, other: &Self) -> Ordering {
        let (mut left, mut right) = ([0; KEY_BYTES], [0; KEY_BYTES]);
        self.hash.cmp(&other.hash).then_with(|| self.text(&mut left).cmp(other.text(&mut right)))
    }
}

/// The free slot for a key that is not there.
fn free(slots: &[Slot], hash: u32) -> usize {
    let mask = slots.len() - 1;
    let mut at = home(hash, slots.len());
    while !slots[at].is_free() {
        at = (at + 1) & mask;
    }
    at
}

/// The slot of a hash in a table of `slots`, a power of two.
#[inline]
fn home(hash: u32, slots: usize) -> usize {
    ((u64::from(hash) * slots as u64) >> 32) as usize
}

impl Words for WordTable {
    fn partition(&self) -> Option<u32> {
        self.partition
    }

    fn len(&self) -> usize {
        self.used
    }

    fn for_each(&self, mut each: impl FnMut(&[u8], u64)) {
        let mut buffer = [0; KEY_BYTES];
        for (at, slot) in self.slots.iter().enumerate() {
            if let Some(later) = self.slots.get(at + AHEAD) {
                self.prefetch_text(later);
            }
            if !slot.is_free() {
                each(self.text(slot, &mut buffer), slot.count);
            }
        }
    }
}
