//! A sorted run in memory.

use std::cmp::Ordering;

use rayon::prelude::*;

use super::merge::Head;
use super::{partition, prefix};

/// Words with counts, in any order.
pub(crate) trait Words: Send {
    /// How many there are.
    fn len(&self) -> usize;

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

/// The words of a partition.
#[derive(Default)]
struct Part {
    entries: Vec<Entry>,
    arena: Vec<u8>,
}

/// Words by partition, sorted bytewise inside each, every one once.
pub(crate) struct Sorted {
    parts: Vec<Part>,
    /// The partition and the entry that are current.
    part: usize,
    entry: usize,
}

impl Sorted {
    /// Sorts the words of all `tables`, adding up the counts of those that recur. Uses the current thread pool.
    pub(crate) fn new(tables: Vec<impl Words>, partitions: u32) -> Self {
        let scattered: Vec<_> = tables.into_par_iter().map(|table| scatter(&table, partitions)).collect();
        let mut parts: Vec<Vec<Part>> = (0..partitions).map(|_| Vec::new()).collect();
        for table in scattered {
            parts.iter_mut().zip(table).for_each(|(parts, part)| parts.push(part));
        }
        let mut sorted = Self { parts: parts.into_par_iter().map(Part::join).collect(), part: 0, entry: 0 };
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
    fn entry(&self) -> Option<(&Part, &Entry)> {
        let part = self.parts.get(self.part)?;
        part.entries.get(self.entry).map(|entry| (part, entry))
    }

    /// Goes on to the next partition that has words, and gives back the memory of those that are done.
    fn skip_empty(&mut self) {
        while self.parts.get(self.part).is_some_and(|part| self.entry >= part.entries.len()) {
            self.parts[self.part] = Part::default();
            (self.part, self.entry) = (self.part + 1, 0);
        }
    }
}

fn scatter(table: &impl Words, partitions: u32) -> Vec<Part> {
    let share = table.len() / partitions as usize;
    let part = |_| Part { entries: Vec::with_capacity(share + share / 16), ..Part::default() };
    let mut parts: Vec<Part> = (0..partitions).map(part).collect();
    table.for_each(|word, count| {
        let Part { entries, arena } = &mut parts[partition(word, partitions) as usize];
        entries.push(Entry { prefix: prefix(word), start: arena.len(), length: word.len(), count });
        arena.extend_from_slice(word);
    });
    parts
}

impl Part {
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
        entries.sort_unstable_by(|left, right| compare(&arena, left, right));
        entries.dedup_by(|next, first| {
            let same = compare(&arena, next, first).is_eq();
            first.count += if same { next.count } else { 0 };
            same
        });
        Self { entries, arena }
    }

    fn text(&self, entry: &Entry) -> &[u8] {
        &self.arena[entry.start..entry.start + entry.length]
    }
}

fn compare(arena: &[u8], left: &Entry, right: &Entry) -> Ordering {
    let text = |entry: &Entry| &arena[entry.start..entry.start + entry.length];
    left.prefix.cmp(&right.prefix).then_with(|| text(left).cmp(text(right)))
}
