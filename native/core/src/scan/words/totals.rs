//! Counting the words of documents: most in a small table of those met most recently, all others in that of all words.
//!
//! Words are taken in batches. Each step asks for the memory of the next one: for the lines of the small table, then
//! for the slots of the words that are not or no longer there.

use super::near::{Counted, Leaving, NearWords, NextWord};
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
    words: [NextWord; BATCH],
    /// Those that may be names, later those that are not there.
    rest: [u16; BATCH],
}

impl Default for Batch {
    fn default() -> Self {
        Self { start: 0, length: 0, ends: [0; BATCH], words: [NextWord::default(); BATCH], rest: [0; BATCH] }
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

    /// Counts the words of the batch. No step but for the first waits for memory that the step before has not asked
    /// for.
    #[inline(never)]
    fn count_batch(&mut self, recent: &mut Recent, source: &[u8], naming: &mut impl Naming) {
        let Recent { near, batch: Batch { start, length, ends, words, rest }, .. } = recent;
        let count = std::mem::take(length).min(BATCH);
        let (ends, words, first) = (&ends[..count], &mut words[..count], *start);
        let (mut at, mut named) = (first, 0);
        for (index, (word, &end)) in words.iter_mut().zip(ends).enumerate() {
            let key = ShortKey::new(source, at, end as usize);
            *word = NextWord { key, line: near.prefetch(key), used: Use::Word };
            rest[named] = index as u16;
            named += usize::from(naming.may_be_name(at));
            at = end as usize;
        }
        *start = at;
        let start = |index: usize| if index == 0 { first } else { ends[index - 1] as usize };
        for &index in &rest[..named] {
            let index = usize::from(index);
            words[index].used = naming.use_of(start(index), ends[index] as usize);
        }
        let missing = near.count(words, &mut rest[..count]);
        for &index in &rest[..missing] {
            let index = usize::from(index);
            let word = words[index];
            let waits = if word.key.is_long() {
                Some(WaitingWord::long(source, start(index), ends[index] as usize, Counted::once(word.used)))
            } else {
                near.insert(word).map(|leaving| WaitingWord::short(leaving, None))
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

    /// Counts what waits; of words that are in `near` the names are known there from then on.
    #[inline(never)]
    fn settle(&mut self, source: &[u8], naming: &mut impl Naming, mut near: Option<&mut NearWords>) {
        let waiting = &self.waiting[..std::mem::take(&mut self.length)];
        for word in waiting.iter().filter(|word| word.key.is_long()) {
            self.table.prefetch_long(word.hash);
        }
        let (mut unnamed, mut count_unnamed) = ([0; WAITING], 0);
        for (index, word) in waiting.iter().enumerate() {
            let Counted { count, hits, leading } = word.counted;
            let slot = self.table.find_or_insert(word, source);
            slot.count += u64::from(count);
            if hits > 0 && slot.name > 0 {
                naming.add(slot.name - 1, hits, leading);
                put_name(&mut near, word, slot.name);
            } else if hits > 0 {
                naming.prefetch(word.text(source, &mut [0; KEY_BYTES]));
                unnamed[count_unnamed] = index;
                count_unnamed += 1;
            }
        }
        for word in unnamed[..count_unnamed].iter().map(|&index| &waiting[index]) {
            let slot = self.table.find_or_insert(word, source);
            if slot.name == 0 {
                slot.name = 1 + naming.number(word.text(source, &mut [0; KEY_BYTES]));
            }
            naming.add(slot.name - 1, word.counted.hits, word.counted.leading);
            put_name(&mut near, word, slot.name);
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

/// Makes the name of a word known where it is among those met most recently.
#[inline]
fn put_name(near: &mut Option<&mut NearWords>, word: &WaitingWord, name: u32) {
    if let (Some(near), Some(place)) = (near, word.place) {
        near.put_name(place, word.key, name);
    }
}
