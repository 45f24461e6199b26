//! The word cache: the tokens of words already met.
//!
//! One open-addressing table of fixed size; two entries share a cache line, and an entry holds a key of 16 bytes and up to seven
//! narrow or three wide ids. A word of up to 15 bytes is its own key, packed with its length; the key of a longer word has its
//! hash, and the word is kept beside the table to compare. A word that finds its four slots taken takes the place of one of
//! them. When the stores of longer words or of longer token lists are full, everything is forgotten. So a cache never grows
//! beyond about 60 MB, whatever the text.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;

use super::batch::Id;
use crate::memory::{prefetch, use_large_pages};

/// Words up to this length are their own key.
pub(super) const MAX_SHORT_BYTES: usize = 15;
/// Longer words are not kept.
const MAX_LONG_BYTES: usize = 256;
const SLOTS: usize = 1 << 20;
const PROBES: usize = 4;
const MAX_STORED_TOKENS: usize = 1 << 22;
const MAX_STORED_BYTES: usize = 1 << 24;
#[derive(Clone, Copy, Default)]
#[repr(align(32))]
struct Slot<T: Id> {
    key: u128,
    /// The ids, and in the last lane their number. Or, with zero there: where their number and they stand in the store, and the
    /// place of the bytes of a long word, as two 32-bit numbers in the order of their bytes.
    ids: T::Lanes,
}

/// The tokens of words already met; one a worker, kept between calls.
pub(super) struct WordCache<T: Id> {
    slots: Vec<Slot<T>>,
    tokens: Vec<T>,
    bytes: Vec<u8>,
    victim: usize,
}

/// What a word is looked up by.
#[derive(Clone, Copy, Default)]
pub(super) struct Key {
    packed: u128,
    group: u32,
}

impl Key {
    /// The key of the word `text[start..end]`, which is not empty.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "a call for each word")]
    pub(super) fn new(text: &[u8], start: usize, end: usize) -> Self {
        let packed = if end - start <= MAX_SHORT_BYTES { pack(text, start, end) } else { long_key(&text[start..end]) };
        Self { packed, group: group_of(packed) }
    }
}

/// As many low bytes as the index.
const KEPT: [u128; MAX_SHORT_BYTES + 1] = {
    let mut masks = [0; MAX_SHORT_BYTES + 1];
    let mut length = 0;
    while length <= MAX_SHORT_BYTES {
        masks[length] = (1 << (8 * length)) - 1;
        length += 1;
    }
    masks
};

/// Packs the word `text[start..end]` of 1 to 15 bytes with its length.
#[inline(always)]
#[allow(clippy::inline_always, reason = "a call for each word")]
fn pack(text: &[u8], start: usize, end: usize) -> u128 {
    let length = end - start;
    let word = match text[start..].first_chunk::<16>() {
        Some(chunk) => u128::from_le_bytes(*chunk) & KEPT[length],
        None => text[start..end].iter().rev().fold(0, |packed, &byte| packed << 8 | u128::from(byte)),
    };
    word | (length as u128) << 120
}

/// The key of a longer word. Its last byte is greater than any length in a short word's key.
#[inline(never)]
fn long_key(word: &[u8]) -> u128 {
    u128::from(FixedState::default().hash_one(word)) | (word.len() as u128) << 64 | 0xFF << 120
}

#[inline]
fn group_of(key: u128) -> u32 {
    let product =
        u128::from(key as u64 ^ 0x9E37_79B9_7F4A_7C15) * u128::from((key >> 64) as u64 ^ 0xD6E8_FEB8_6659_FD93);
    (product as u64 ^ (product >> 64) as u64) as u32 & (SLOTS - PROBES) as u32
}

impl<T: Id> WordCache<T> {
    /// Makes an empty cache.
    pub(super) fn new() -> Self {
        let mut slots = Vec::with_capacity(SLOTS);
        use_large_pages(&mut slots);
        slots.resize(SLOTS, Slot::default());
        Self { slots, tokens: Vec::new(), bytes: Vec::new(), victim: 0 }
    }

    /// Asks for the memory where a word belongs.
    #[inline]
    pub(super) fn prefetch(&self, key: Key) {
        prefetch(&self.slots[key.group as usize]);
    }

    /// Whether the tokens of `word`, whose key is `key`, are known, or those of another word with this key.
    #[inline]
    pub(super) fn knows(&self, key: Key) -> bool {
        self.slots[key.group as usize..key.group as usize + PROBES].iter().any(|slot| slot.key == key.packed)
    }

    /// Appends the tokens of `word`, whose key is `key`, to `out`, if they are known.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "a call for each word")]
    pub(super) fn append<'a>(&self, key: Key, word: impl Fn() -> &'a [u8], out: &mut Vec<T>) -> bool {
        let group = key.group as usize;
        let Some(slot) = self.slots[group..group + PROBES].iter().find(|slot| slot.key == key.packed) else {
            return false;
        };
        let lanes = slot.ids.as_ref();
        let count = lanes[lanes.len() - 1].id() as usize;
        if count == 0 {
            return self.append_stored(slot, word(), out);
        }
        let length = out.len() + count;
        out.extend_from_slice(lanes);
        out.truncate(length);
        true
    }

    #[inline(never)]
    fn append_stored(&self, slot: &Slot<T>, word: &[u8], out: &mut Vec<T>) -> bool {
        let place = T::number(&slot.ids.as_ref()[T::NUMBER_LANES..]) as usize;
        if word.len() > MAX_SHORT_BYTES && self.bytes.get(place..place + word.len()) != Some(word) {
            return false;
        }
        let (count, tokens) = self.tokens[T::number(slot.ids.as_ref()) as usize..].split_at(T::NUMBER_LANES);
        out.extend_from_slice(&tokens[..T::number(count) as usize]);
        true
    }

    /// Keeps the tokens of `word`, whose key is `key`; there is one at least.
    pub(super) fn keep(&mut self, key: Key, word: &[u8], tokens: &[T]) {
        if word.len() > MAX_LONG_BYTES {
            return;
        }
        let mut ids = T::Lanes::default();
        let lanes = ids.as_mut();
        if word.len() <= MAX_SHORT_BYTES && tokens.len() < lanes.len() {
            lanes[..tokens.len()].copy_from_slice(tokens);
            lanes[lanes.len() - 1] = T::new(tokens.len() as u32);
        } else {
            self.make_room(tokens.len() + T::NUMBER_LANES, word.len());
            T::put_number(self.tokens.len() as u32, lanes);
            T::put_number(self.bytes.len() as u32, &mut lanes[T::NUMBER_LANES..]);
            let mut count = T::Lanes::default();
            T::put_number(tokens.len() as u32, count.as_mut());
            self.tokens.extend_from_slice(&count.as_ref()[..T::NUMBER_LANES]);
            self.tokens.extend_from_slice(tokens);
            if word.len() > MAX_SHORT_BYTES {
                self.bytes.extend_from_slice(word);
            }
        }
        self.insert(key, ids);
    }

    fn make_room(&mut self, tokens: usize, bytes: usize) {
        if self.tokens.len() + tokens > MAX_STORED_TOKENS || self.bytes.len() + bytes > MAX_STORED_BYTES {
            self.slots.fill(Slot::default());
            self.tokens.clear();
            self.bytes.clear();
        }
    }

    fn insert(&mut self, key: Key, ids: T::Lanes) {
        let group = &mut self.slots[key.group as usize..][..PROBES];
        let place = group.iter().position(|slot| slot.key == 0).unwrap_or_else(|| {
            self.victim = (self.victim + 1) % PROBES;
            self.victim
        });
        group[place] = Slot { key: key.packed, ids };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(word: &[u8]) -> Key {
        Key::new(word, 0, word.len())
    }

    fn found<T: Id>(cache: &WordCache<T>, word: &[u8]) -> Option<Vec<T>> {
        let mut ids = Vec::new();
        cache.append(key(word), || word, &mut ids).then_some(ids)
    }

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

    fn what_is_found_is_what_was_kept<T: Id + PartialEq + std::fmt::Debug>() {
        let mut cache = WordCache::<T>::new();
        let (mut hits, count) = (0, 900_000);
        for number in (0..count).chain((0..count).rev()) {
            let ids: Vec<T> = (0..=number % 10).map(|index| T::new((number + index) % 65_536)).collect();
            for word in [&number.to_le_bytes()[..], format!("a_long_identifier_{number}").as_bytes()] {
                if let Some(kept) = found(&cache, word) {
                    assert_eq!(kept, ids);
                    hits += 1;
                } else {
                    cache.keep(key(word), word, &ids);
                    assert_eq!(found(&cache, word).as_ref(), Some(&ids));
                }
            }
        }
        assert!(0 < hits && hits < 2 * count, "{hits}");
        assert!(cache.tokens.len() <= MAX_STORED_TOKENS && cache.bytes.len() <= MAX_STORED_BYTES);
    }

    #[test]
    fn what_is_found_is_what_was_kept_though_the_cache_is_full() {
        what_is_found_is_what_was_kept::<u16>();
        what_is_found_is_what_was_kept::<u32>();
    }

    #[test]
    fn a_word_is_compared_even_if_its_key_is_found() {
        let mut cache = WordCache::<u16>::new();
        cache.keep(key(b"a_long_identifier"), b"a_long_identifier", &[7]);
        let place = cache.bytes.len() - 1;
        cache.bytes[place] = b'X';
        assert_eq!(found(&cache, b"a_long_identifier"), None);
        cache.keep(key(&[b'a'; 300]), &[b'a'; 300], &[1]);
        assert_eq!(found(&cache, &[b'a'; 300]), None);
    }
}
