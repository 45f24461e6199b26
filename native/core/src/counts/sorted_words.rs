//! A sorted run in memory.

use rayon::prelude::*;

use super::head::{Head, partition, prefix};

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

/// A word in the arena of its partition, with its count.
struct Entry {
    prefix: u64,
    start: usize,
    length: usize,
    count: u64,
}

/// So few entries are compared as they are,
const FEW: usize = 16;
/// and those that agree in so many bytes.
const DEEP: usize = 256;

/// The words of a partition.
#[derive(Default)]
struct Partition {
    entries: Vec<Entry>,
    arena: Vec<u8>,
}

/// Words by partition, sorted bytewise inside each, every one once.
pub(crate) struct SortedWords {
    parts: Vec<Partition>,
    /// The partition and the entry that are current.
    part: usize,
    entry: usize,
}

impl SortedWords {
    /// Sorts the words of all `tables`, adding up the counts of those that recur. Uses the current thread pool.
    pub(crate) fn new(tables: Vec<impl Words>, partitions: u32) -> Self {
        let scattered: Vec<_> = tables.into_par_iter().map(|table| scatter(&table, partitions)).collect();
        let mut parts: Vec<Vec<Partition>> = (0..partitions).map(|_| Vec::new()).collect();
        for table in scattered {
            parts.iter_mut().zip(table).for_each(|(parts, part)| parts.push(part));
        }
        let mut sorted = Self { parts: parts.into_par_iter().map(Partition::join).collect(), part: 0, entry: 0 };
        sorted.skip_empty();
        sorted
    }

    pub(super) fn head(&self) -> Head {
        match self.entry() {
            Some((_, entry)) => Head::new(self.part as u32, entry.prefix),
            None => Head::END,
        }
    }

    pub(super) fn word(&self) -> &[u8] {
        self.entry().map_or(&[], |(part, entry)| part.text(entry))
    }

    pub(super) fn count(&self) -> u64 {
        self.entry().map_or(0, |(_, entry)| entry.count)
    }

    pub(super) fn advance(&mut self) {
        self.entry += 1;
        self.skip_empty();
    }

    #[inline]
    fn entry(&self) -> Option<(&Partition, &Entry)> {
        let part = self.parts.get(self.part)?;
        part.entries.get(self.entry).map(|entry| (part, entry))
    }

    /// Goes on to the next partition that has words, and gives back the memory of those that are done.
    fn skip_empty(&mut self) {
        while self.parts.get(self.part).is_some_and(|part| self.entry >= part.entries.len()) {
            self.parts[self.part] = Partition::default();
            (self.part, self.entry) = (self.part + 1, 0);
        }
    }
}

fn scatter(table: &impl Words, partitions: u32) -> Vec<Partition> {
    let share = if table.partition().is_none() { table.len() / partitions as usize } else { 0 };
    let part = |_| Partition { entries: Vec::with_capacity(share + share / 16), ..Partition::default() };
    let mut parts: Vec<Partition> = (0..partitions).map(part).collect();
    let own = table.partition();
    table.for_each(|word, count| {
        let Partition { entries, arena } = &mut parts[own.unwrap_or_else(|| partition(word, partitions)) as usize];
        entries.push(Entry { prefix: prefix(word), start: arena.len(), length: word.len(), count });
        arena.extend_from_slice(word);
    });
    parts
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
            all.entries.extend(part.entries.into_iter().map(|entry| Entry { start: entry.start + moved, ..entry }));
        }
        let Self { mut entries, arena } = all;
        sort(&mut entries, &arena, 0);
        let text = |entry: &Entry| &arena[entry.start..entry.start + entry.length];
        entries.dedup_by(|next, first| {
            let same = next.prefix == first.prefix && text(next) == text(first);
            first.count += if same { next.count } else { 0 };
            same
        });
        Self { entries, arena }
    }

    fn text(&self, entry: &Entry) -> &[u8] {
        &self.arena[entry.start..entry.start + entry.length]
    }
}

/// Sorts entries whose words agree before `depth`; their prefixes begin there. Words that also agree in the prefix are
/// sorted by the next one. Their bytes are rarely in a cache, so they are read once per prefix, not once per
/// comparison.
fn sort(entries: &mut [Entry], arena: &[u8], depth: usize) {
    if entries.len() < FEW || depth > DEEP {
        let rest = |entry: &Entry| &arena[entry.start + depth.min(entry.length)..entry.start + entry.length];
        let compare =
            |left: &Entry, right: &Entry| left.prefix.cmp(&right.prefix).then_with(|| rest(left).cmp(rest(right)));
        return entries.sort_unstable_by(compare);
    }
    entries.sort_unstable_by_key(|entry| entry.prefix);
    let next = depth + size_of::<u64>();
    for same in entries.chunk_by_mut(|left, right| left.prefix == right.prefix).filter(|same| same.len() > 1) {
        let shared = same[0].prefix;
        // Of words that end here, those with more zeros at their end come later.
        same.sort_unstable_by_key(|entry| entry.length.min(next + 1));
        let longer = same.partition_point(|entry| entry.length <= next);
        let longer = &mut same[longer..];
        for entry in &mut *longer {
            entry.prefix = prefix(&arena[entry.start + next..entry.start + entry.length]);
        }
        sort(longer, arena, next);
        for entry in longer {
            entry.prefix = shared;
        }
    }
}
