//! A map from byte strings to small values, made for counting the words of source text.
//!
//! Keys of up to 16 bytes, nearly all of them, live in the table itself as two integers, so that a lookup compares no
//! memory outside its bucket; longer ones live in an arena. The folded multiplication that hashes the short keys is that
//! of wyhash (<https://github.com/wangyi-fudan/wyhash>). Order is unspecified: whoever writes the content out sorts it.

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use std::hash::BuildHasher;

/// Keys up to this length are stored inline.
const INLINE_BYTES: usize = 16;
const LONG_HASH: FixedState = FixedState::with_seed(0x5bd1_e995);

/// A key of up to 16 bytes: its first and last 8 bytes (which may overlap) and its length.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Inline {
    low: u64,
    high: u64,
    length: u32,
}

#[derive(Clone, Copy)]
struct Long<V> {
    start: usize,
    length: usize,
    value: V,
}

/// A map from byte strings to `V`; new keys start with the default.
pub(super) struct ByteMap<V> {
    inline: HashTable<(Inline, V)>,
    long: HashTable<Long<V>>,
    arena: Vec<u8>,
}

impl Inline {
    #[inline]
    fn new(key: &[u8]) -> Self {
        let (low, high) = match (key.first_chunk::<8>(), key.last_chunk::<8>()) {
            (Some(&first), Some(&last)) => (u64::from_le_bytes(first), u64::from_le_bytes(last)),
            _ => (short(key), 0),
        };
        Self { low, high, length: key.len() as u32 }
    }

    #[inline]
    fn hash(self) -> u64 {
        let left = self.low ^ 0x9e37_79b9_7f4a_7c15;
        let right = self.high ^ (u64::from(self.length) << 56) ^ 0xe703_7ed1_a0b4_28db;
        let product = u128::from(left) * u128::from(right);
        (product as u64) ^ ((product >> 64) as u64)
    }

    /// The bytes of the key, in `buffer`.
    fn bytes(self, buffer: &mut [u8; INLINE_BYTES]) -> &[u8] {
        let length = self.length as usize;
        buffer[..8].copy_from_slice(&self.low.to_le_bytes());
        if length > 8 {
            buffer[length - 8..length].copy_from_slice(&self.high.to_le_bytes());
        }
        &buffer[..length]
    }
}

/// Up to 7 bytes as the little-endian number that they spell.
#[inline]
fn short(key: &[u8]) -> u64 {
    if let (Some(&first), Some(&last)) = (key.first_chunk::<4>(), key.last_chunk::<4>()) {
        let shift = 8 * (key.len() - 4);
        return u64::from(u32::from_le_bytes(first)) | (u64::from(u32::from_le_bytes(last)) << shift);
    }
    key.iter().rev().fold(0, |number, &byte| (number << 8) | u64::from(byte))
}

impl<V: Copy + Default> ByteMap<V> {
    pub(super) fn new() -> Self {
        Self { inline: HashTable::new(), long: HashTable::new(), arena: Vec::new() }
    }

    /// How many keys there are.
    pub(super) fn len(&self) -> usize {
        self.inline.len() + self.long.len()
    }

    /// The value of `key`, which is added if it is new.
    #[inline]
    pub(super) fn entry(&mut self, key: &[u8]) -> &mut V {
        if key.len() > INLINE_BYTES {
            return self.long_entry(key);
        }
        let inline = Inline::new(key);
        let entry = self.inline.entry(inline.hash(), |(other, _)| *other == inline, |(other, _)| other.hash());
        &mut entry.or_insert_with(|| (inline, V::default())).into_mut().1
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

    /// Calls `each` with every key and its value, in no particular order.
    pub(super) fn for_each(&self, mut each: impl FnMut(&[u8], V)) {
        let mut buffer = [0; INLINE_BYTES];
        for &(key, value) in &self.inline {
            each(key.bytes(&mut buffer), value);
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
            for repeat in 0..=length {
                for fill in [0, b'a', 0xff] {
                    let mut key = vec![fill; length];
                    if let Some(byte) = key.get_mut(repeat) {
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
        assert_eq!(map.len(), expected.len());
    }
}
