//! The word cache: the tokens of words already met.
//!
//! One open-addressing table of fixed size with 128-bit keys; two entries share a cache line, and an entry holds up to three
//! tokens itself. A word of up to 15 bytes is its own key, packed with its length; the key of a longer word has its hash, and
//! the word is kept beside the table to compare. A word that finds its four slots taken takes the place of one of them. When
//! the stores of longer words or of longer token lists are full, everything is forgotten. So a cache never grows beyond about
//! 50 MB, whatever the text.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;

/// Words up to this length are their own key.
pub(super) const MAX_SHORT_BYTES: usize = 15;
/// Longer words are not kept.
const MAX_LONG_BYTES: usize = 256;
const SLOTS: usize = 1 << 19;
const PROBES: usize = 4;
const INLINE: usize = 3;
const MAX_STORED_TOKENS: usize = 1 << 22;
const MAX_STORED_BYTES: usize = 1 << 24;

#[derive(Clone, Copy)]
#[repr(align(32))]
struct Slot {
    key: u128,
    /// The tokens of a short word that has at most three; else the place of the first token in the store, and for a long word
    /// the place of its bytes.
    ids: [u32; INLINE],
    count: u32,
}

const EMPTY: Slot = Slot { key: 0, ids: [0; INLINE], count: 0 };

/// The tokens of words already met; one a worker, kept between calls.
pub(super) struct WordCache {
    slots: Box<[Slot]>,
    tokens: Vec<u32>,
    bytes: Vec<u8>,
    victim: usize,
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

/// The key of a longer word. Its last byte is greater than any length in a short word's key.
#[inline]
fn long_key(word: &[u8]) -> u128 {
    u128::from(FixedState::default().hash_one(word)) | (word.len() as u128) << 64 | 0xFF << 120
}

#[inline]
fn group_of(key: u128) -> usize {
    let product =
        u128::from(key as u64 ^ 0x9E37_79B9_7F4A_7C15) * u128::from((key >> 64) as u64 ^ 0xD6E8_FEB8_6659_FD93);
    (product as u64 ^ (product >> 64) as u64) as usize & (SLOTS - PROBES)
}

impl WordCache {
    /// Makes an empty cache.
    pub(super) fn new() -> Self {
        Self { slots: vec![EMPTY; SLOTS].into_boxed_slice(), tokens: Vec::new(), bytes: Vec::new(), victim: 0 }
    }

    /// The tokens of the short word with this key.
    #[inline]
    pub(super) fn short(&self, key: u128) -> Option<&[u32]> {
        let slot = self.find(key)?;
        let count = slot.count as usize;
        if count <= INLINE { Some(&slot.ids[..count]) } else { self.stored(slot) }
    }

    /// The tokens of a longer word.
    #[inline]
    pub(super) fn long(&self, word: &[u8]) -> Option<&[u32]> {
        if word.len() > MAX_LONG_BYTES {
            return None;
        }
        let slot = self.find(long_key(word))?;
        let start = slot.ids[1] as usize;
        if self.bytes.get(start..start + word.len()) == Some(word) { self.stored(slot) } else { None }
    }

    #[inline]
    fn find(&self, key: u128) -> Option<&Slot> {
        let group = group_of(key);
        self.slots[group..group + PROBES].iter().find(|slot| slot.key == key)
    }

    #[inline]
    fn stored(&self, slot: &Slot) -> Option<&[u32]> {
        let start = slot.ids[0] as usize;
        self.tokens.get(start..start + slot.count as usize)
    }

    /// Keeps the tokens of the short word with this key.
    pub(super) fn keep_short(&mut self, key: u128, tokens: &[u32]) {
        self.make_room(tokens.len(), 0);
        let mut ids = [0; INLINE];
        if tokens.len() <= INLINE {
            ids[..tokens.len()].copy_from_slice(tokens);
        } else {
            ids[0] = self.tokens.len() as u32;
            self.tokens.extend_from_slice(tokens);
        }
        self.insert(Slot { key, ids, count: tokens.len() as u32 });
    }

    /// Keeps the tokens of a longer word.
    pub(super) fn keep_long(&mut self, word: &[u8], tokens: &[u32]) {
        if word.len() > MAX_LONG_BYTES {
            return;
        }
        self.make_room(tokens.len(), word.len());
        let ids = [self.tokens.len() as u32, self.bytes.len() as u32, 0];
        self.tokens.extend_from_slice(tokens);
        self.bytes.extend_from_slice(word);
        self.insert(Slot { key: long_key(word), ids, count: tokens.len() as u32 });
    }

    fn make_room(&mut self, tokens: usize, bytes: usize) {
        if self.tokens.len() + tokens > MAX_STORED_TOKENS || self.bytes.len() + bytes > MAX_STORED_BYTES {
            self.slots.fill(EMPTY);
            self.tokens.clear();
            self.bytes.clear();
        }
    }

    fn insert(&mut self, slot: Slot) {
        let group = group_of(slot.key);
        let free = self.slots[group..group + PROBES].iter().position(|slot| slot.key == 0);
        let place = free.unwrap_or_else(|| {
            self.victim = (self.victim + 1) % PROBES;
            self.victim
        });
        self.slots[group + place] = slot;
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
        let (mut found, count) = (0, 900_000);
        for number in (0..count).chain((0..count).rev()) {
            let ids: Vec<u32> = (0..=number % 6).map(|index| number + index).collect();
            let short = pack(&number.to_le_bytes(), 0, 4);
            let long = format!("a_long_identifier_{number}");
            if let Some(kept) = cache.short(short) {
                assert_eq!(kept, ids);
                found += 1;
            } else {
                cache.keep_short(short, &ids);
            }
            if let Some(kept) = cache.long(long.as_bytes()) {
                assert_eq!(kept, ids);
                found += 1;
            } else {
                cache.keep_long(long.as_bytes(), &ids);
                assert_eq!(cache.long(long.as_bytes()), Some(&ids[..]));
            }
        }
        assert!(0 < found && found < 2 * count, "{found}");
        assert!(cache.tokens.len() <= MAX_STORED_TOKENS && cache.bytes.len() <= MAX_STORED_BYTES);
    }

    #[test]
    fn a_word_is_compared_even_if_its_key_is_found() {
        let mut cache = WordCache::new();
        cache.keep_long(b"a_long_identifier", &[7]);
        let place = cache.bytes.len() - 1;
        cache.bytes[place] = b'X';
        assert_eq!(cache.long(b"a_long_identifier"), None);
        cache.keep_long(&[b'a'; 300], &[1]);
        assert_eq!(cache.long(&[b'a'; 300]), None);
    }
}
