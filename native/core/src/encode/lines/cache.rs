//! The line cache: the tokens of lines seen before.
//!
//! Four entries share a cache line. An entry has a part of the line's hash, and where its text and its tokens are kept;
//! a line is compared with the text. When there are too many texts or tokens, everything is forgotten, so a cache takes
//! at most 28 MiB.

use std::hash::BuildHasher;
use std::ops::Range;

use foldhash::fast::FixedState;

use crate::encode::id::Id;
use crate::memory::{prefetch, use_large_pages};

/// Longer lines are not kept.
const MAX_BYTES: usize = 192;
const GROUPS: usize = 1 << 16;
const ENTRIES: usize = 4;
const MAX_STORED_TOKENS: usize = 1 << 22;
const MAX_STORED_BYTES: usize = 1 << 24;

/// The tokens of a line; without any it is not an entry.
#[derive(Clone, Copy, Default)]
struct Entry {
    tag: u32,
    text: u32,
    tokens: u32,
    length: u16,
    count: u16,
}

#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Group([Entry; ENTRIES]);

/// The key by which a line is looked up; the key of a line that is not kept finds nothing.
#[derive(Clone, Copy, Default)]
pub(crate) struct LineKey {
    hash: u64,
    length: u16,
}

impl LineKey {
    pub(crate) fn new(line: &[u8]) -> Self {
        if line.len() > MAX_BYTES {
            return Self::default();
        }
        Self { hash: FixedState::default().hash_one(line), length: line.len() as u16 }
    }

    fn group(self) -> usize {
        self.hash as usize % GROUPS
    }

    fn tag(self) -> u32 {
        (self.hash >> 32) as u32
    }
}

/// Where the text and the tokens of a line are kept.
pub(crate) struct CachedLine {
    text: Range<usize>,
    tokens: Range<usize>,
}

/// The tokens of lines seen before; one per worker, kept between calls.
pub(crate) struct LineCache<T: Id> {
    groups: Vec<Group>,
    tokens: Vec<T>,
    texts: Vec<u8>,
    victim: usize,
}

impl<T: Id> Default for LineCache<T> {
    fn default() -> Self {
        Self { groups: Vec::new(), tokens: Vec::new(), texts: Vec::new(), victim: 0 }
    }
}

impl<T: Id> LineCache<T> {
    /// Makes room; to be called before use.
    pub(crate) fn prepare(&mut self) {
        if self.groups.is_empty() {
            self.groups.reserve_exact(GROUPS);
            use_large_pages(&mut self.groups);
            self.groups.resize(GROUPS, Group::default());
        }
    }

    /// Asks for the memory where a line belongs.
    pub(crate) fn prefetch(&self, key: LineKey) {
        prefetch(&self.groups[key.group()]);
    }

    /// What is kept under a key; asks for its memory.
    pub(crate) fn find(&self, key: LineKey) -> Option<CachedLine> {
        let entries = &self.groups[key.group()].0;
        let is_it = |entry: &&Entry| entry.tag == key.tag() && entry.length == key.length && entry.count > 0;
        let entry = entries.iter().find(is_it)?;
        let (text, tokens) = (entry.text as usize, entry.tokens as usize);
        prefetch(&self.texts[text]);
        prefetch(&self.tokens[tokens]);
        let text = text..text + usize::from(entry.length);
        Some(CachedLine { text, tokens: tokens..tokens + usize::from(entry.count) })
    }

    /// Whether what was found is of this line.
    pub(crate) fn holds(&self, found: &CachedLine, line: &[u8]) -> bool {
        self.texts[found.text.clone()] == *line
    }

    /// The tokens that were found; nothing may have been kept since.
    pub(crate) fn tokens(&self, found: &CachedLine) -> &[T] {
        &self.tokens[found.tokens.clone()]
    }

    /// Keeps the tokens of `line`, whose key is `key`; there is one at least.
    pub(crate) fn keep(&mut self, key: LineKey, line: &[u8], tokens: &[T]) {
        if key.length == 0 {
            return;
        }
        if self.tokens.len() + tokens.len() > MAX_STORED_TOKENS || self.texts.len() + line.len() > MAX_STORED_BYTES {
            self.groups.fill(Group::default());
            self.tokens.clear();
            self.texts.clear();
        }
        let group = &mut self.groups[key.group()].0;
        let place = group.iter().position(|entry| entry.count == 0).unwrap_or_else(|| {
            self.victim = (self.victim + 1) % ENTRIES;
            self.victim
        });
        group[place] = Entry {
            tag: key.tag(),
            text: self.texts.len() as u32,
            tokens: self.tokens.len() as u32,
            length: key.length,
            count: tokens.len() as u16,
        };
        self.texts.extend_from_slice(line);
        self.tokens.extend_from_slice(tokens);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_found_is_what_was_kept_though_the_cache_is_full() {
        let mut cache = LineCache::<u16>::default();
        cache.prepare();
        let (mut hits, count) = (0, 700_000);
        for number in (0..count).chain((0..count).rev()) {
            let line = format!("{:1$}line {number};\n", "", number % 100);
            let tokens: Vec<u16> = (0..=number % 7).map(|index| (number + index) as u16).collect();
            let key = LineKey::new(line.as_bytes());
            if let Some(found) = cache.find(key).filter(|found| cache.holds(found, line.as_bytes())) {
                assert_eq!(cache.tokens(&found), tokens);
                hits += 1;
            } else {
                cache.keep(key, line.as_bytes(), &tokens);
            }
        }
        assert!(0 < hits && hits < count, "{hits}");
        assert!(cache.tokens.len() <= MAX_STORED_TOKENS && cache.texts.len() <= MAX_STORED_BYTES);
    }

    #[test]
    fn a_line_is_compared_even_if_its_key_is_found_and_a_long_one_is_not_kept() {
        let mut cache = LineCache::<u16>::default();
        cache.prepare();
        let key = LineKey::new(b"a line\n");
        cache.keep(key, b"a line\n", &[7]);
        cache.texts[0] = b'X';
        assert!(cache.find(key).is_some_and(|found| !cache.holds(&found, b"a line\n")));
        let long = [b'a'; MAX_BYTES + 1];
        cache.keep(LineKey::new(&long), &long, &[1]);
        assert!(cache.find(LineKey::new(&long)).is_none());
    }
}
