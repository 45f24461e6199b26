//! The word cache: the tokens of words already met.
//!
//! A word of up to 15 bytes is packed with its length into one 128-bit key of an open-addressing table of fixed size; two
//! entries share a cache line, and an entry holds up to three tokens itself. A word that finds its four slots taken takes the
//! place of one of them. Longer words are in a second map, which is emptied when it is full, as is everything when the store of
//! longer token lists is full. So a cache never grows beyond about 20 MB, whatever the text.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

/// Words up to this length have a packed key.
pub(super) const MAX_SHORT_BYTES: usize = 15;
/// Longer words are not kept.
const MAX_LONG_BYTES: usize = 256;
const SLOTS: usize = 1 << 18;
const PROBES: usize = 4;
const INLINE: usize = 3;
const MAX_STORED_TOKENS: usize = 1 << 20;
const MAX_LONG_MAP_BYTES: usize = 8 << 20;

#[derive(Clone, Copy)]
#[repr(align(32))]
struct Slot {
    key: u128,
    /// The tokens if there are at most three, else the place of the first in the store.
    ids: [u32; INLINE],
    count: u32,
}

const EMPTY: Slot = Slot { key: 0, ids: [0; INLINE], count: 0 };

/// The tokens of words already met; one a worker, kept between calls.
pub(super) struct WordCache {
    slots: Box<[Slot]>,
    store: Vec<u32>,
    victim: usize,
    long: HashMap<Box<[u8]>, Box<[u32]>, FixedState>,
    long_bytes: usize,
}

/// Packs the word `text[start..end]` of 1 to 15 bytes with its length.
#[inline]
pub(super) fn pack(text: &[u8], start: usize, end: usize) -> u128 {
    let length = end - start;
    let word = match text[start..].first_chunk::<16>() {
        Some(chunk) => u128::from_le_bytes(*chunk) & ((1 << (8 * length)) - 1),
        None => text[start..end].iter().rev().fold(0, |packed, &byte| packed << 8 | u128::from(byte)),
    };
    word | (length as u128) << 120
}

#[inline]
fn slot_of(key: u128) -> usize {
    let product = u128::from(key as u64 ^ 0x9E37_79B9_7F4A_7C15) * u128::from((key >> 64) as u64 ^ 0xD6E8_FEB8_6659_FD93);
    (product as u64 ^ (product >> 64) as u64) as usize & (SLOTS - PROBES)
}

impl WordCache {
    /// Makes an empty cache.
    pub(super) fn new() -> Self {
        Self {
            slots: vec![EMPTY; SLOTS].into_boxed_slice(),
            store: Vec::new(),
            victim: 0,
            long: HashMap::default(),
            long_bytes: 0,
        }
    }

    /// The tokens of the short word with this key.
    #[inline]
    pub(super) fn short(&self, key: u128) -> Option<&[u32]> {
        let first = slot_of(key);
        let slot = self.slots[first..first + PROBES].iter().find(|slot| slot.key == key)?;
        let count = slot.count as usize;
        if count <= INLINE { Some(&slot.ids[..count]) } else { self.store.get(slot.ids[0] as usize..slot.ids[0] as usize + count) }
    }

    /// Keeps the tokens of the short word with this key.
    pub(super) fn keep_short(&mut self, key: u128, ids: &[u32]) {
        if self.store.len() + ids.len() > MAX_STORED_TOKENS {
            self.slots.fill(EMPTY);
            self.store.clear();
        }
        let mut slot = Slot { key, ids: [0; INLINE], count: ids.len() as u32 };
        if ids.len() <= INLINE {
            slot.ids[..ids.len()].copy_from_slice(ids);
        } else {
            slot.ids[0] = self.store.len() as u32;
            self.store.extend_from_slice(ids);
        }
        let group = slot_of(key);
        let free = self.slots[group..group + PROBES].iter().position(|slot| slot.key == 0);
        let place = free.unwrap_or_else(|| {
            self.victim = (self.victim + 1) % PROBES;
            self.victim
        });
        self.slots[group + place] = slot;
    }

    /// The tokens of a longer word.
    #[inline]
    pub(super) fn long(&self, word: &[u8]) -> Option<&[u32]> {
        if word.len() > MAX_LONG_BYTES { None } else { self.long.get(word).map(AsRef::as_ref) }
    }

    /// Keeps the tokens of a longer word.
    pub(super) fn keep_long(&mut self, word: &[u8], ids: &[u32]) {
        if word.len() > MAX_LONG_BYTES {
            return;
        }
        self.long_bytes += word.len() + 4 * ids.len() + 64;
        if self.long_bytes > MAX_LONG_MAP_BYTES {
            self.long.clear();
            self.long_bytes = 0;
        }
        self.long.insert(word.into(), ids.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_is_one_to_one_and_does_not_depend_on_what_follows() {
        let text = b"\0\0a\0bcdefghijklmnopqrstuvwxyz";
        let mut keys = Vec::new();
        for start in 0..text.len() {
            for end in start + 1..=text.len().min(start + MAX_SHORT_BYTES) {
                let key = pack(text, start, end);
                assert_eq!(key, pack(&text[start..end], 0, end - start));
                assert_ne!(key, 0);
                keys.push((key, &text[start..end]));
            }
        }
        keys.sort_unstable();
        assert!(keys.windows(2).all(|two| (two[0].0 == two[1].0) == (two[0].1 == two[1].1)));
    }

    #[test]
    fn what_is_found_is_what_was_kept_though_the_cache_is_full() {
        let mut cache = WordCache::new();
        let mut found = 0;
        for round in 0..2 {
            for number in 0..2_000_000_u32 {
                let key = pack(&number.to_le_bytes(), 0, 4);
                let ids: Vec<u32> = (0..=number % 6).map(|index| number + index).collect();
                if let Some(kept) = cache.short(key) {
                    assert_eq!(kept, ids);
                    found += 1;
                } else {
                    cache.keep_short(key, &ids);
                }
                if round == 0 {
                    assert_eq!(cache.short(key), Some(&ids[..]));
                }
            }
        }
        assert!(found < 2_000_000);
    }

    #[test]
    fn long_words_are_kept_up_to_a_bound() {
        let mut cache = WordCache::new();
        for number in 0..100_000_u32 {
            let word = format!("a_long_identifier_with_a_number_{number:0100}");
            cache.keep_long(word.as_bytes(), &[number]);
            assert_eq!(cache.long(word.as_bytes()), Some(&[number][..]));
        }
        assert!(cache.long.len() < 60_000);
        cache.keep_long(&[b'a'; 300], &[1]);
        assert_eq!(cache.long(&[b'a'; 300]), None);
    }
}
