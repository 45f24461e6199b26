//! A map from byte strings to small values, made for the identifiers of source text.

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use std::hash::BuildHasher;

use super::inline::{INLINE_BYTES, Inline, InlineTable};

const LONG_HASH: FixedState = FixedState::with_seed(0x5bd1_e995);

/// A key that is too long to be inline: its place in the arena.
#[derive(Clone, Copy)]
struct Long<V> {
    start: usize,
    length: usize,
    value: V,
}

/// A map from byte strings to `V`; new keys start with the default. Its order is unspecified.
pub(super) struct ByteMap<V> {
    inline: InlineTable<V>,
    long: HashTable<Long<V>>,
    arena: Vec<u8>,
}

impl<V: Copy + Default> ByteMap<V> {
    pub(super) fn new() -> Self {
        Self { inline: InlineTable::new(), long: HashTable::new(), arena: Vec::new() }
    }

    /// The memory of everything that grows with the keys.
    pub(super) fn memory_bytes(&self) -> usize {
        self.inline.memory_bytes() + self.long.allocation_size() + self.arena.capacity()
    }

    /// The value of `key`, which is added if it is new.
    #[inline]
    pub(super) fn entry(&mut self, key: &[u8]) -> &mut V {
        match Inline::new(key) {
            Some(key) => self.inline.entry(key),
            None => self.long_entry(key),
        }
    }

    fn long_entry(&mut self, key: &[u8]) -> &mut V {
        let Self { long, arena, .. } = self;
        let text = |entry: &Long<V>| &arena[entry.start..entry.start + entry.length];
        let entry = long.entry(LONG_HASH.hash_one(key), |it| text(it) == key, |it| LONG_HASH.hash_one(text(it)));
        let new = Long { start: arena.len(), length: key.len(), value: V::default() };
        let entry = entry.or_insert(new).into_mut();
        if entry.start == arena.len() {
            arena.extend_from_slice(key);
        }
        &mut entry.value
    }

    /// Calls `each` with every key and its value.
    pub(super) fn for_each(&self, mut each: impl FnMut(&[u8], V)) {
        let mut buffer = [0; INLINE_BYTES];
        for slot in self.inline.iter() {
            each(slot.key.bytes(&mut buffer), slot.value);
        }
        for entry in &self.long {
            each(&self.arena[entry.start..entry.start + entry.length], entry.value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ByteMap;
    use std::collections::BTreeMap;

    #[test]
    fn keys_of_every_length_come_back_with_their_counts() {
        let mut map = ByteMap::<u64>::new();
        let mut expected = BTreeMap::new();
        for length in 0..40 {
            for changed in 0..=length {
                for fill in [0, b'a', 0xff] {
                    let mut key = vec![fill; length];
                    if let Some(byte) = key.get_mut(changed) {
                        *byte = 7;
                    }
                    *map.entry(&key) += 1;
                    *expected.entry(key).or_insert(0) += 1;
                }
            }
        }
        let mut found = BTreeMap::new();
        map.for_each(|key, count| assert_eq!(found.insert(key.to_vec(), count), None));
        assert_eq!(found, expected);
    }
}
