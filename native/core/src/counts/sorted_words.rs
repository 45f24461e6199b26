//! A sorted run in memory.

use rayon::prelude::*;

use super::head::{Head, KEY_TEXT, OrderKey, partition};
use crate::memory::prefetch;

/// Words with counts, in any order.
pub(crate) trait Words: Send {
    /// How many there are.
    fn len(&self) -> usize;

    /// The partition of all of them, if they have one together.
    fn partition(&self) -> Option<u32> {
        None
    }

    /// Calls `each` with every word and its count.
    fn for_each(&self, each: impl FnMut(&[u8], u64));
}

/// A word with its count.
#[derive(Clone, Copy)]
struct Entry {
    key: OrderKey,
    /// Where it is in the arena of its partition, its length before it, if it is not whole in its key.
    place: usize,
    count: u64,
}

/// Bytes of the length of a word in the arena.
const LENGTH_BYTES: usize = 4;
/// How many words ahead the bytes of a long one are asked for.
const AHEAD: usize = 16;

/// So few entries are compared as they are,
const FEW: usize = 16;
/// and those that agree in so many bytes.
const DEEP: usize = 256;

/// The words of a partition.
#[derive(Default)]
struct Partition {
    entries: Vec<Entry>,
    /// Words that are too long for their keys.
    arena: Vec<u8>,
}

/// Words by partition, sorted bytewise inside each, every one once.
pub(crate) struct SortedWords {
    parts: Vec<Partition>,
    /// The partition and the entry that are current.
    part: usize,
    entry: usize,
    /// The current word, if it is short, and its length.
    short: [u8; KEY_TEXT + 1],
    length: usize,
}

impl SortedWords {
    /// Sorts the words of all `tables`, adding up the counts of those that recur. Uses the current thread pool.
    pub(crate) fn new(tables: Vec<impl Words>, partitions: u32) -> Self {
        let scattered: Vec<_> = tables.into_par_iter().map(|table| scatter(&table, partitions)).collect();
        let mut parts: Vec<Vec<Partition>> = (0..partitions).map(|_| Vec::new()).collect();
        for (number, part) in scattered.into_iter().flatten() {
            parts[number].push(part);
        }
        let parts = parts.into_par_iter().map(Partition::join).collect();
        let mut sorted = Self { parts, part: 0, entry: 0, short: [0; KEY_TEXT + 1], length: 0 };
        sorted.settle();
        sorted
    }

    pub(super) fn head(&self) -> Head {
        match self.entry() {
            Some((_, entry)) => Head::new(self.part as u32, entry.key.prefix()),
            None => Head::END,
        }
    }

    #[inline]
    pub(super) fn word(&self) -> &[u8] {
        match self.entry() {
            Some((part, entry)) if entry.key.goes_on() => text(&part.arena, entry),
            Some(_) => &self.short[..self.length],
            None => &[],
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.entry().map_or(0, |(_, entry)| entry.count)
    }

    #[inline]
    pub(super) fn advance(&mut self) {
        self.entry += 1;
        self.settle();
    }

    #[inline]
    fn entry(&self) -> Option<(&Partition, &Entry)> {
        let part = self.parts.get(self.part)?;
        part.entries.get(self.entry).map(|entry| (part, entry))
    }

    /// Goes on to the next partition that has words, gives back the memory of those that are done, and reads the
    /// current word.
    #[inline]
    fn settle(&mut self) {
        while self.parts.get(self.part).is_some_and(|part| self.entry >= part.entries.len()) {
            self.parts[self.part] = Partition::default();
            (self.part, self.entry) = (self.part + 1, 0);
        }
        let Some(part) = self.parts.get(self.part) else { return };
        if let Some(later) = part.entries.get(self.entry + AHEAD)
            && later.key.goes_on()
            && let Some(text) = part.arena.get(later.place)
        {
            prefetch(text);
        }
        self.length = part.entries[self.entry].key.word(&mut self.short);
    }
}

/// The words of a table by partition, with the number of each: of one partition only, if they have that together.
fn scatter(table: &impl Words, partitions: u32) -> Vec<(usize, Partition)> {
    let (first, count) = table.partition().map_or((0, partitions), |own| (own, 1));
    let share = table.len() / count as usize;
    let part = || Partition { entries: Vec::with_capacity(share + share / 16), ..Partition::default() };
    let mut parts: Vec<_> = (first..first + count).map(|number| (number as usize, part())).collect();
    table.for_each(|word, hits| {
        let (_, Partition { entries, arena }) = &mut parts[partition(word, count) as usize];
        let (key, place) = (OrderKey::new(word), arena.len());
        if key.goes_on() {
            arena.extend_from_slice(&(word.len() as u32).to_le_bytes());
            arena.extend_from_slice(word);
        }
        entries.push(Entry { key, place, count: hits });
    });
    parts
}

/// The bytes of a word that is not whole in its key.
fn text<'a>(arena: &'a [u8], entry: &Entry) -> &'a [u8] {
    let (length, rest) = arena[entry.place..].split_at(LENGTH_BYTES);
    &rest[..length.iter().rev().fold(0, |length, &byte| length << 8 | usize::from(byte))]
}

impl Partition {
    /// All words of `parts`, sorted, equal ones added up.
    fn join(parts: Vec<Self>) -> Self {
        let mut parts = parts.into_iter();
        let mut all = parts.next().unwrap_or_default();
        for part in parts {
            let moved = all.arena.len();
            all.arena.extend_from_slice(&part.arena);
            all.entries.reserve_exact(part.entries.len());
            all.entries.extend(part.entries.into_iter().map(|entry| Entry { place: entry.place + moved, ..entry }));
        }
        let Self { mut entries, arena } = all;
        sort(&mut entries, &arena, 0);
        entries.dedup_by(|next, first| {
            let same = next.key == first.key && (!next.key.goes_on() || text(&arena, next) == text(&arena, first));
            first.count += if same { next.count } else { 0 };
            same
        });
        Self { entries, arena }
    }
}

/// Sorts entries whose words agree before `depth`; their keys begin there. Longer words that also agree in the key are
/// sorted by the next one. Their bytes are rarely in a cache, so they are read once per key, not once per comparison.
fn sort(entries: &mut [Entry], arena: &[u8], depth: usize) {
    if entries.len() < FEW || depth > DEEP {
        let rest = |entry: &Entry| if entry.key.goes_on() { &text(arena, entry)[depth..] } else { &[] };
        return entries
            .sort_unstable_by(|left, right| left.key.cmp(&right.key).then_with(|| rest(left).cmp(rest(right))));
    }
    entries.sort_unstable_by_key(|entry| entry.key);
    let next = depth + KEY_TEXT;
    let alike = entries.chunk_by_mut(|left, right| left.key == right.key);
    for same in alike.filter(|same| same.len() > 1 && same[0].key.goes_on()) {
        let shared = same[0].key;
        for entry in &mut *same {
            entry.key = OrderKey::new(&text(arena, entry)[next..]);
        }
        sort(same, arena, next);
        for entry in same {
            entry.key = shared;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct OneWord(Option<u32>);

    impl Words for OneWord {
        fn len(&self) -> usize {
            1
        }

        fn partition(&self) -> Option<u32> {
            self.0
        }

        fn for_each(&self, mut each: impl FnMut(&[u8], u64)) {
            each(b"word", 3);
        }
    }

    #[test]
    fn a_table_of_one_partition_takes_no_memory_for_the_others() {
        let sizes = |own, partitions| -> Vec<_> {
            scatter(&OneWord(own), partitions).into_iter().map(|(number, part)| (number, part.entries.len())).collect()
        };
        assert_eq!(sizes(Some(700), 1000), [(700, 1)]);
        assert_eq!(sizes(None, 1), [(0, 1)]);
        assert_eq!(sizes(None, 1000).len(), 1000);
    }
}
