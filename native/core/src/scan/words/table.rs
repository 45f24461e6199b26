//! The words of one thread with their totals.
//!
//! One table holds every word, two of them a cache line. Words are taken in batches: the memory where they belong is
//! on its way while the next ones are cut.

use std::cmp::Ordering;
use std::hash::BuildHasher;
use std::ops::Range;

use foldhash::fast::FixedState;

use crate::blocks::Classes;
use crate::counts::Words;
use crate::lexer::continues_identifier;
use crate::memory::{prefetch, use_large_pages};
use crate::pattern::Pattern;
use crate::scan::names::Names;
use crate::short_key::{KEY_BYTES, MAX_SHORT_BYTES, ShortKey};

const LONG_HASH: FixedState = FixedState::with_seed(0x5bd1_e995);

/// What a word of a document is.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::scan) enum Use {
    /// A word.
    #[default]
    Word,
    /// A word that is an identifier or keyword in code, with or without one byte in front.
    Name,
    /// The same, leading a chain `a::b`.
    Leading,
}

/// What becomes of the words that are names.
pub(in crate::scan) trait Naming {
    /// Takes note of a word that is a name; `number` is the one of its slot, zero as long as none was given.
    fn note(&mut self, word: &[u8], number: &mut u32, leading: bool);
}

impl Naming for Names {
    #[inline]
    fn note(&mut self, word: &[u8], number: &mut u32, leading: bool) {
        if *number == 0 {
            *number = 1 + self.number(name(word));
        }
        self.see(*number - 1, leading);
    }
}

/// Of words that are only counted none is a name.
struct Nameless;

impl Naming for Nameless {
    #[inline]
    fn note(&mut self, _: &[u8], _: &mut u32, _: bool) {}
}

/// A word of a document that waits to be counted.
#[derive(Clone, Copy, Default)]
struct WaitingWord {
    key: ShortKey,
    /// The high bits of its hash, more than any table has slots.
    hash: u32,
    start: u32,
    end: u32,
    used: Use,
}

impl WaitingWord {
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
    /// Of a long word with its place in the arena, where its length comes first.
    key: ShortKey,
    count: u64,
    /// One more than the number of the name that it is; zero if it is none, or that is not known.
    name: u32,
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
pub(in crate::scan) struct WordTotals {
    slots: Vec<Slot>,
    used: usize,
    /// The partition of all its words, if they have one together.
    partition: Option<u32>,
    /// Up to so many bytes, the slots may grow to four times what they are.
    share_bytes: usize,
    arena: Vec<u8>,
    waiting: [WaitingWord; BATCH],
    /// How many wait.
    length: usize,
    /// Which of them are too long for a slot, and how many these are.
    long: [u8; BATCH],
    long_length: usize,
}

impl WordTotals {
    /// An empty table of one that may take `share_bytes`; it grows beyond that, to twice its size at a time.
    pub(in crate::scan) fn new(share_bytes: usize) -> Self {
        Self {
            slots: table(LEAST_SLOTS),
            used: 0,
            partition: None,
            share_bytes,
            arena: Vec::new(),
            waiting: [WaitingWord::default(); BATCH],
            length: 0,
            long: [0; BATCH],
            long_length: 0,
        }
    }

    /// Puts all words into one partition.
    pub(in crate::scan) fn in_partition(self, partition: Option<u32>) -> Self {
        Self { partition, ..self }
    }

    /// Counts every word of `source`, whose classes are those that `pattern` looks at, and none as a name; returns how
    /// many there are.
    pub(in crate::scan) fn count_all(&mut self, pattern: Pattern, source: &[u8], classes: &Classes) -> u64 {
        let mut words = 0;
        pattern.split_classified(source, classes, |_, start, end| {
            words += 1;
            self.count(source, [start, end], Use::Word, &mut Nameless);
        });
        self.settle(source, &mut Nameless);
        words
    }

    /// Counts the word `source[start..end]`; [`Self::settle`] must come before another source.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "a call for each word is a tenth of what it does")]
    pub(in crate::scan) fn count(
        &mut self,
        source: &[u8],
        [start, end]: [usize; 2],
        used: Use,
        names: &mut impl Naming,
    ) {
        let key = if end - start <= MAX_SHORT_BYTES {
            ShortKey::new(source, start, end)
        } else {
            self.long[self.long_length % BATCH] = self.length as u8;
            self.long_length += 1;
            ShortKey::of_hash(LONG_HASH.hash_one(&source[start..end]))
        };
        let hash = (key.hash() >> 32) as u32;
        prefetch(&self.slots[home(hash, self.slots.len())]);
        let [start, end] = [start as u32, end as u32];
        self.waiting[self.length % BATCH] = WaitingWord { key, hash, start, end, used };
        self.length += 1;
        if self.length == BATCH {
            self.settle(source, names);
        }
    }

    /// Counts what waits.
    pub(in crate::scan) fn settle(&mut self, source: &[u8], names: &mut impl Naming) {
        let waiting = self.waiting;
        for &at in &self.long[..self.long_length] {
            self.prefetch_text(&self.slots[home(waiting[usize::from(at) % BATCH].hash, self.slots.len())]);
        }
        self.long_length = 0;
        for word in &waiting[..self.length] {
            let at = self.find_or_insert(word, source);
            let slot = &mut self.slots[at];
            slot.count += 1;
            if word.used != Use::Word {
                names.note(word.text(source), &mut slot.name, word.used == Use::Leading);
            }
        }
        self.length = 0;
    }

    #[inline]
    fn find_or_insert(&mut self, word: &WaitingWord, source: &[u8]) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = home(word.hash, self.slots.len());
        loop {
            let slot = &self.slots[at];
            if slot.key.low() == word.key.low() && self.is_same(slot, word, source) {
                return at;
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
            slot.key.is_long() && self.long_text(slot) == word.text(source)
        } else {
            slot.key == word.key
        }
    }

    #[cold]
    fn insert(&mut self, word: &WaitingWord, mut at: usize, source: &[u8]) -> usize {
        if (self.used + 1) * 3 > self.slots.len() * 2 {
            self.grow();
            at = free(&self.slots, word.hash);
        }
        self.used += 1;
        let WaitingWord { mut key, start, end, .. } = *word;
        if key.is_long() {
            key = key.with_place(self.arena.len());
            self.arena.extend_from_slice(&(end - start).to_le_bytes());
            self.arena.extend_from_slice(word.text(source));
        }
        self.slots[at] = Slot { key, ..Slot::default() };
        at
    }

    #[cold]
    fn grow(&mut self) {
        let four_times = 4 * self.slots.len();
        let is_small = self.slots.len() < MANY_SLOTS && four_times * size_of::<Slot>() <= self.share_bytes;
        let larger = table(if is_small { four_times } else { 2 * self.slots.len() });
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
    words: &'a WordTotals,
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

/// A table of free slots.
fn table(length: usize) -> Vec<Slot> {
    let mut slots = Vec::with_capacity(length);
    use_large_pages(&mut slots);
    slots.resize(length, Slot::default());
    slots
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

/// The identifier that a word is, without the byte that may be in front of it.
fn name(word: &[u8]) -> &[u8] {
    match word {
        [first, rest @ ..] if !continues_identifier(*first) => rest,
        _ => word,
    }
}

impl Words for WordTotals {
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
