//! The short words that a thread has met most recently, and what the current document has of those that are names.
//!
//! The table is small enough to stay in a core's own cache, and every short word is looked up there first, without a
//! branch: most words are there. One that is not takes the place of another, whose counts go on to the table of all
//! words.

use super::uses::Use;
use crate::memory::prefetch;
use crate::short_key::{KeyPair, ShortKey};

/// Lines of the table.
const LINES: usize = 1 << 13;
/// Words in a line.
const WAYS: usize = 2;

/// Two words in one cache line.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Line {
    keys: KeyPair,
    counts: [u32; WAYS],
    /// What the current document has of each as a name,
    hits: [u32; WAYS],
    /// and as one that leads a chain.
    leading: [u32; WAYS],
    /// One more than the number of the name; zero if it is none, or that is not known.
    names: [u32; WAYS],
}

/// What was counted of a word.
#[derive(Clone, Copy, Default)]
pub(super) struct Counted {
    pub(super) count: u32,
    /// What the current document has of it as a name.
    pub(super) hits: u32,
    /// Those that lead a chain.
    pub(super) leading: u32,
}

impl Counted {
    /// A word that was met once.
    #[inline]
    pub(super) fn once(used: Use) -> Self {
        Self { count: 1, hits: u32::from(used != Use::Word), leading: u32::from(used == Use::Leading) }
    }
}

/// A word that comes next.
#[derive(Clone, Copy, Default)]
pub(super) struct NextWord {
    pub(super) key: ShortKey,
    /// Its line in the table.
    pub(super) line: u16,
    pub(super) used: Use,
}

/// A word that has lost its place, or the counts of one that keeps it.
#[derive(Clone, Copy)]
pub(super) struct Leaving {
    pub(super) key: ShortKey,
    pub(super) counted: Counted,
}

/// The place of a word in the table.
#[derive(Clone, Copy)]
pub(super) struct Place(u16);

/// Words met most recently, with their counts since they came here.
pub(super) struct NearWords {
    lines: Box<[Line; LINES]>,
    /// Which word of each line was met last.
    last: Box<[u8; LINES]>,
    /// Where the names of the current document are, and words that took their places.
    named: Vec<Place>,
    /// How many of `named` these are.
    length: usize,
}

impl Default for NearWords {
    #[allow(clippy::large_stack_arrays, reason = "256 KiB, once for each table")]
    fn default() -> Self {
        let (lines, last) = (Box::new([Line::default(); LINES]), Box::new([0; LINES]));
        Self { lines, last, named: Vec::new(), length: 0 }
    }
}

impl NearWords {
    /// The line where a word belongs; asks for it.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "for each word")]
    pub(super) fn prefetch(&self, key: ShortKey) -> u16 {
        let line = key.hash() as usize % LINES;
        prefetch(&self.lines[line]);
        line as u16
    }

    /// Counts those of `words` that are here; writes the indices of the others to `rest`, which is as long, and returns
    /// how many they are.
    #[inline]
    pub(super) fn count(&mut self, words: &[NextWord], rest: &mut [u16]) -> usize {
        self.make_room(words.len());
        let Self { lines, last, named, length } = self;
        let (mut missing, mut names) = (0, *length);
        for (index, word) in words.iter().enumerate() {
            let number = usize::from(word.line) % LINES;
            let line = &mut lines[number];
            let (way, is_near) = line.keys.find(word.key);
            let (near, hits) = (u32::from(is_near), line.hits[way]);
            let name = near & u32::from(word.used != Use::Word);
            named[names] = place(number, way);
            names += usize::from(hits == 0) & name as usize;
            line.counts[way] += near;
            line.hits[way] = hits + name;
            if word.used == Use::Leading {
                line.leading[way] += near;
            }
            // A choice would be a branch that is hard to foresee.
            last[number] = way as u8 | (last[number] & !(near as u8));
            rest[missing] = index as u16;
            missing += usize::from(!is_near);
        }
        *length = names;
        missing
    }

    /// Counts a word of this line that was not here, unless it came meanwhile; returns the one whose place it takes.
    pub(super) fn insert(&mut self, NextWord { key, line, used }: NextWord) -> Option<Leaving> {
        let number = usize::from(line) % LINES;
        let line = &mut self.lines[number];
        let (way, is_near) = line.keys.find(key);
        let (way, leaving) = if is_near { (way, None) } else { line.replace(key, usize::from(self.last[number] ^ 1)) };
        self.last[number] = way as u8;
        let Counted { count, hits, leading } = Counted::once(used);
        if hits > 0 && line.hits[way] == 0 {
            self.make_room(1);
            self.named[self.length] = place(number, way);
            self.length += 1;
        }
        let line = &mut self.lines[number];
        line.counts[way] += count;
        line.hits[way] += hits;
        line.leading[way] += leading;
        leaving
    }

    /// Makes room for so many names.
    fn make_room(&mut self, names: usize) {
        if self.length + names >= self.named.len() {
            self.named.resize((2 * self.named.len()).max(self.length + names + 1), Place(0));
        }
    }

    /// How many places of names there are to close.
    pub(super) fn names(&self) -> usize {
        self.length
    }

    /// Ends the document for one of its names: gives its place, its number, and what was counted since it came here;
    /// none if it has lost its place, or was closed before. If its number is not known, its counts go with it.
    #[inline]
    pub(super) fn close(&mut self, index: usize) -> Option<(Place, u32, Leaving)> {
        let place = self.named[index];
        let (line, way) = (&mut self.lines[place.line()], place.way());
        let word = line.word(way);
        if word.counted.hits == 0 {
            return None;
        }
        (line.hits[way], line.leading[way]) = (0, 0);
        if line.names[way] == 0 {
            line.counts[way] = 0;
        }
        Some((place, line.names[way], word))
    }

    /// Ends the document, whose names are closed.
    pub(super) fn end_document(&mut self) {
        self.length = 0;
    }

    /// Keeps the number of a name, if the word is still at its place.
    pub(super) fn put_name(&mut self, place: Place, key: ShortKey, name: u32) {
        let line = &mut self.lines[place.line()];
        if line.keys.get(place.way()) == key {
            line.names[place.way()] = name;
        }
    }

    /// Takes all words out; calls `each` with those that have counts. No document must be open.
    pub(super) fn take(&mut self, mut each: impl FnMut(Leaving)) {
        for line in &mut *self.lines {
            let line = std::mem::take(line);
            (0..WAYS).map(|way| line.word(way)).filter(|word| word.counted.count > 0).for_each(&mut each);
        }
    }
}

impl Line {
    fn word(&self, way: usize) -> Leaving {
        let counted = Counted { count: self.counts[way], hits: self.hits[way], leading: self.leading[way] };
        Leaving { key: self.keys.get(way), counted }
    }

    /// Puts a word in the place of another; returns where it is, and the other if it has counts.
    fn replace(&mut self, key: ShortKey, way: usize) -> (usize, Option<Leaving>) {
        let leaving = self.word(way);
        self.keys.put(way, key);
        (self.counts[way], self.hits[way], self.leading[way], self.names[way]) = (0, 0, 0, 0);
        (way, (leaving.counted.count > 0).then_some(leaving))
    }
}

#[inline]
fn place(line: usize, way: usize) -> Place {
    Place((line * WAYS + way) as u16)
}

impl Place {
    fn line(self) -> usize {
        usize::from(self.0) / WAYS % LINES
    }

    fn way(self) -> usize {
        usize::from(self.0) % WAYS
    }
}
