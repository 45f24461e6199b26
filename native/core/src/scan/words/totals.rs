//! Counting the words of documents: most in a small table of those met most recently, all others in that of all words.
//!
//! Words are taken in batches. Each step asks for the memory of the next one: for the lines of the small table, then for
//! the slots of the words that are not or no longer there.

use super::near::{Counted, Leaving, NearWords};
use super::table::WordTable;
use super::uses::{Nameless, Naming, Use};
use super::waiting::WaitingWord;
use crate::pattern::{Ends, Starts};
use crate::short_key::{KEY_BYTES, ShortKey};

/// How many words are taken at once at most.
const BLOCK: usize = 64;
/// How many words are counted together at most.
const BATCH: usize = 256 + BLOCK;
/// How many words wait for their slots together.
const WAITING: usize = 64;

/// Words that are counted together, one after another in the text.
struct Batch {
    /// Where the first one starts.
    start: usize,
    length: usize,
    ends: [u32; BATCH],
    keys: [ShortKey; BATCH],
    /// Their lines in the table of those met most recently.
    lines: [u16; BATCH],
    uses: [Use; BATCH],
    /// Those that are not there.
    rest: [u16; BATCH],
}

impl Default for Batch {
    fn default() -> Self {
        Self {
            start: 0,
            length: 0,
            ends: [0; BATCH],
            keys: [ShortKey::default(); BATCH],
            lines: [0; BATCH],
            uses: [Use::Word; BATCH],
            rest: [0; BATCH],
        }
    }
}

/// The words met most recently, and those that come next.
#[derive(Default)]
pub(super) struct Recent {
    near: NearWords,
    batch: Batch,
    /// The bytes of the documents since the counts of `near` were taken out: more than any of them.
    bytes: usize,
}

/// The words of documents with their counts.
pub(in crate::scan) struct WordTotals {
    table: WordTable,
    recent: Option<Box<Recent>>,
    waiting: [WaitingWord; WAITING],
    /// How many wait.
    length: usize,
}

impl WordTotals {
    /// No words yet; their table may take `share_bytes`, and all are put into one partition, if one is given.
    pub(in crate::scan) fn new(share_bytes: usize, partition: Option<u32>) -> Self {
        let table = WordTable::new(share_bytes, partition);
        Self { table, recent: None, waiting: [WaitingWord::default(); WAITING], length: 0 }
    }

    /// Counts every word of `source`, for which `starts` were found, and none as a name; returns how many there are.
    pub(in crate::scan) fn count_nameless(&mut self, source: &[u8], starts: &Starts) -> u64 {
        self.count(source, starts, &mut Nameless)
    }

    /// Counts every word of `source`, for which `starts` were found; returns how many there are.
    pub(in crate::scan) fn count(&mut self, source: &[u8], starts: &Starts, naming: &mut impl Naming) -> u64 {
        let mut recent = self.recent.take().unwrap_or_default();
        if recent.bytes + source.len() > u32::MAX as usize {
            self.settle_near(&mut recent);
        }
        recent.bytes += source.len();
        recent.batch.start = 0;
        let mut words = 0;
        starts.all_words(source, |ends| words += self.take(&mut recent, source, ends, naming));
        self.count_batch(&mut recent, source, naming);
        self.end_document(&mut recent, source, naming);
        self.recent = Some(recent);
        words
    }

    /// Counts every line of `source`, for which `starts` were found.
    pub(in crate::scan) fn count_lines(&mut self, source: &[u8], starts: &Starts) {
        let mut start = 0;
        starts.all_lines(source, |end| {
            let key = ShortKey::new(source, start, end);
            let word = if key.is_long() {
                WaitingWord::long(source, start, end, Counted::once(Use::Word))
            } else {
                WaitingWord::short(Leaving { key, counted: Counted::once(Use::Word) }, None)
            };
            start = end;
            if self.wait(word) {
                self.settle(source, &mut Nameless, None);
            }
        });
        self.settle(source, &mut Nameless, None);
    }

    /// Takes words by their ends; returns how many.
    #[inline]
    fn take(&mut self, recent: &mut Recent, source: &[u8], ends: Ends, naming: &mut impl Naming) -> u64 {
        let batch = &mut recent.batch;
        let Some(places) = batch.ends[batch.length..].first_chunk_mut() else { return 0 };
        let count = ends.put(places);
        batch.length += count;
        if batch.length > BATCH - BLOCK {
            self.count_batch(recent, source, naming);
        }
        count as u64
    }

    /// Counts the words of the batch.
    #[inline(never)]
    fn count_batch(&mut self, recent: &mut Recent, source: &[u8], naming: &mut impl Naming) {
        let Recent { near, batch: Batch { start, length, ends, keys, lines, uses, rest }, .. } = recent;
        let count = std::mem::take(length).min(BATCH);
        let (ends, uses, first) = (&ends[..count], &mut uses[..count], *start);
        for ((key, line), &end) in keys.iter_mut().zip(&mut *lines).zip(ends) {
            *key = ShortKey::new(source, *start, end as usize);
            *line = near.prefetch(*key);
            *start = end as usize;
        }
        naming.uses(first, ends, uses);
        let missing = near.count(&keys[..count], &lines[..count], uses, &mut rest[..count]);
        for &index in &rest[..missing] {
            let index = usize::from(index) % BATCH;
            let (key, used) = (keys[index], uses[index]);
            let waits = if key.is_long() {
                let start = if index == 0 { first } else { ends[index - 1] as usize };
                Some(WaitingWord::long(source, start, ends[index] as usize, Counted::once(used)))
            } else {
                near.insert(key, lines[index], used).map(|leaving| WaitingWord::short(leaving, None))
            };
            if waits.is_some_and(|word| self.wait(word)) {
                self.settle(source, naming, Some(near));
            }
        }
    }

    /// Hands over what the document has of each name.
    fn end_document(&mut self, recent: &mut Recent, source: &[u8], naming: &mut impl Naming) {
        let near = &mut recent.near;
        for index in 0..near.names() {
            let Some((place, name, word)) = near.close(index) else { continue };
            if name > 0 {
                naming.add(name - 1, word.counted.hits, word.counted.leading);
            } else if self.wait(WaitingWord::short(word, Some(place))) {
                self.settle(source, naming, Some(near));
            }
        }
        near.end_document();
        self.settle(source, naming, Some(near));
    }

    /// Lets a word wait for its slot; says whether no more can.
    #[inline]
    fn wait(&mut self, word: WaitingWord) -> bool {
        self.table.prefetch(word.hash);
        self.waiting[self.length % WAITING] = word;
        self.length += 1;
        self.length == WAITING
    }

    /// Counts what waits; those that are also in `near` have their names known there.
    #[inline(never)]
    fn settle(&mut self, source: &[u8], naming: &mut impl Naming, mut near: Option<&mut NearWords>) {
        let waiting = &self.waiting[..std::mem::take(&mut self.length)];
        for word in waiting.iter().filter(|word| word.key.is_long()) {
            self.table.prefetch_long(word.hash);
        }
        for word in waiting {
            let Counted { count, hits, leading } = word.counted;
            let slot = self.table.find_or_insert(word, source);
            slot.count += u64::from(count);
            if hits == 0 {
                continue;
            }
            if slot.name == 0 {
                slot.name = 1 + naming.number(word.text(source, &mut [0; KEY_BYTES]));
            }
            naming.add(slot.name - 1, hits, leading);
            if let (Some(near), Some(place)) = (near.as_deref_mut(), word.place) {
                near.put_name(place, word.key, slot.name);
            }
        }
    }

    /// Moves the counts of the words met most recently to the table.
    fn settle_near(&mut self, recent: &mut Recent) {
        recent.bytes = 0;
        recent.near.take(|word| {
            if self.wait(WaitingWord::short(word, None)) {
                self.settle(&[], &mut Nameless, None);
            }
        });
        self.settle(&[], &mut Nameless, None);
    }

    /// Takes out the table of the words met most recently, whose counts stay here, for another partition.
    pub(super) fn take_recent(&mut self) -> Option<Box<Recent>> {
        let mut recent = self.recent.take()?;
        self.settle_near(&mut recent);
        Some(recent)
    }

    /// Gives this partition the table for words met most recently of another one.
    pub(super) fn put_recent(&mut self, recent: Option<Box<Recent>>) {
        self.recent = recent;
    }

    /// All words that were counted.
    pub(in crate::scan) fn finish(mut self) -> WordTable {
        self.take_recent();
        self.table
    }

    /// The memory of everything that grows with the words.
    pub(in crate::scan) fn memory_bytes(&self) -> usize {
        self.table.memory_bytes()
    }
}
