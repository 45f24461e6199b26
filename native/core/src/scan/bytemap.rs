//! A map from byte strings to small values, made for the identifiers of source text.

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use std::hash::BuildHasher;

use crate::memory::{defaults, prefetch};
use crate::short_key::{KEY_BYTES, MAX_SHORT_BYTES, ShortKey, StoredKey};

const LONG_HASH: FixedState = FixedState::with_seed(0x5bd1_e995);

/// A key and its value.
#[derive(Clone, Copy, Default)]
struct Slot<V> {
    key: StoredKey,
    value: V,
}

impl<V> Slot<V> {
    fn is_free(&self) -> bool {
        self.key == StoredKey::default()
    }
}

/// A map from [`ShortKey`] keys to `V`, by linear probing.
struct ShortTable<V> {
    slots: Vec<Slot<V>>,
    used: usize,
}

impl<V: Copy + Default> ShortTable<V> {
    fn new() -> Self {
        Self { slots: vec![Slot::default(); 64], used: 0 }
    }

    /// The memory of the table.
    fn memory_bytes(&self) -> usize {
        self.slots.len() * size_of::<Slot<V>>()
    }

    /// The value of `key`, the default if it is new.
    #[inline]
    fn entry(&mut self, key: ShortKey) -> &mut V {
        let mut at = self.find(key);
        if self.slots[at].is_free() {
            at = self.insert(key, at);
        }
        &mut self.slots[at].value
    }

    /// Asks for the slot of `key`.
    #[inline]
    fn prefetch(&self, key: ShortKey) {
        prefetch(&self.slots[key.hash() as usize & (self.slots.len() - 1)]);
    }

    /// The slot of `key`, or the free slot for it.
    #[inline]
    fn find(&self, key: ShortKey) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = key.hash() as usize & mask;
        let stored = StoredKey::from(key);
        while self.slots[at].key != stored && !self.slots[at].is_free() {
            at = (at + 1) & mask;
        }
        at
    }

    #[cold]
    fn insert(&mut self, key: ShortKey, mut at: usize) -> usize {
        if (self.used + 1) * 3 > self.slots.len() * 2 {
            self.grow();
            at = self.find(key);
        }
        self.used += 1;
        self.slots[at].key = key.into();
        at
    }

    fn grow(&mut self) {
        let larger = defaults(self.slots.len() * 2);
        for slot in std::mem::replace(&mut self.slots, larger) {
            if !slot.is_free() {
                let at = self.find(slot.key.into());
                self.slots[at] = slot;
            }
        }
    }

    /// Every key with its value, in no particular order.
    fn iter(&self) -> impl Iterator<Item = &Slot<V>> {
        self.slots.iter().filter(|slot| !slot.is_free())
    }
}

/// A key that is too long for a [`ShortKey`]: its place in the arena.
#[derive(Clone, Copy)]
struct Long<V> {
    start: usize,
    length: usize,
    value: V,
}

/// A map from byte strings to `V`; new keys start with the default. Its order is unspecified.
pub(super) struct ByteMap<V> {
    short: ShortTable<V>,
    long: HashTable<Long<V>>,
    arena: Vec<u8>,
}

impl<V: Copy + Default> ByteMap<V> {
    pub(super) fn new() -> Self {
        Self { short: ShortTable::new(), long: HashTable::new(), arena: Vec::new() }
    }

    /// The memory of everything that grows with the keys.
    pub(super) fn memory_bytes(&self) -> usize {
        self.short.memory_bytes() + self.long.allocation_size() + self.arena.capacity()
    }

    /// Asks for where the value of `key` is, if it is short.
    #[inline]
    pub(super) fn prefetch(&self, key: &[u8]) {
        if key.len() <= MAX_SHORT_BYTES {
            self.short.prefetch(ShortKey::new(key, 0, key.len()));
        }
    }

    /// The value of `key`, which is added if it is new.
    #[inline]
    pub(super) fn entry(&mut self, key: &[u8]) -> &mut V {
        if key.len() > MAX_SHORT_BYTES {
            return self.long_entry(key);
        }
        self.short.entry(ShortKey::new(key, 0, key.len()))
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
        let mut buffer = [0; KEY_BYTES];
        for slot in self.short.iter() {
            each(ShortKey::from(slot.key).bytes(&mut buffer), slot.value);
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
