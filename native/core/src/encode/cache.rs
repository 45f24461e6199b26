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
/// In place of a number of ids: they stand in the store, as those of a long word always do.
const STORED: u16 = u16::MAX;

#[derive(Clone, Copy)]
#[repr(align(32))]
struct Slot {
    key: u128,
    /// The ids, and behind them, in the last 16 bits, their number. Or, if they are stored: the place of the first, their
    /// number, and for a long word the place of its bytes, 32 bits each, and `STORED`.
    ids: u128,
}

const EMPTY: Slot = Slot { key: 0, ids: 0 };

/// The tokens of words already met; one a worker, kept between calls.
pub(super) struct WordCache<T> {
    slots: Vec<Slot>,
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

    fn is_long(self) -> bool {
        self.packed >> 120 == 0xFF
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
        slots.resize(SLOTS, EMPTY);
        Self { slots, tokens: Vec::new(), bytes: Vec::new(), victim: 0 }
    }

    /// Asks for the memory where a word belongs.
    #[inline]
    pub(super) fn prefetch(&self, key: Key) {
        prefetch(&self.slots[key.group as usize]);
    }

    /// Appends the tokens of `word`, whose key is `key`, to `out`, if they are known.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "a call for each word")]
    pub(super) fn append<'a>(&self, key: Key, word: impl Fn() -> &'a [u8], out: &mut Vec<T>) -> bool {
        let group = key.group as usize;
        let Some(slot) = self.slots[group..group + PROBES].iter().find(|slot| slot.key == key.packed) else {
            return false;
        };
        let count = (slot.ids >> 112) as u16;
        if count == STORED {
            return self.append_stored(slot.ids, key, word(), out);
        }
        let length = out.len() + usize::from(count);
        out.extend_from_slice(T::unpack(slot.ids).as_ref());
        out.truncate(length);
        true
    }

    #[inline(never)]
    fn append_stored(&self, ids: u128, key: Key, word: &[u8], out: &mut Vec<T>) -> bool {
        let (first, count, place) = (ids as u32 as usize, (ids >> 32) as u32 as usize, (ids >> 64) as u32 as usize);
        if key.is_long() && self.bytes.get(place..place + word.len()) != Some(word) {
            return false;
        }
        out.extend_from_slice(&self.tokens[first..first + count]);
        true
    }

    /// Keeps the tokens of `word`, whose key is `key`.
    pub(super) fn keep(&mut self, key: Key, word: &[u8], tokens: &[T]) {
        if word.len() > MAX_LONG_BYTES {
            return;
        }
        let stored_bytes = if key.is_long() { word.len() } else { 0 };
        let is_inline = !key.is_long() && tokens.len() <= T::PACKED;
        self.make_room(if is_inline { 0 } else { tokens.len() }, stored_bytes);
        let ids = if is_inline {
            T::pack(tokens) | (tokens.len() as u128) << 112
        } else {
            let places = [self.tokens.len(), tokens.len(), self.bytes.len()];
            self.tokens.extend_from_slice(tokens);
            self.bytes.extend_from_slice(&word[..stored_bytes]);
            places.iter().rev().fold(u128::from(STORED) << 16, |ids, &place| ids << 32 | place as u128)
        };
        self.insert(key, ids);
    }

    fn make_room(&mut self, tokens: usize, bytes: usize) {
        if self.tokens.len() + tokens > MAX_STORED_TOKENS || self.bytes.len() + bytes > MAX_STORED_BYTES {
            self.slots.fill(EMPTY);
            self.tokens.clear();
            self.bytes.clear();
        }
    }

    fn insert(&mut self, key: Key, ids: u128) {
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
