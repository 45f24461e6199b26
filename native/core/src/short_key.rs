//! Short words as numbers: what they are looked up by.
//!
//! Nearly all words of source text are shorter than 16 bytes. Such a word is its own key, so that a table that keeps
//! keys and values side by side costs one cache miss per lookup, and comparing two words takes one comparison of
//! numbers.

/// The most bytes of a word that is its own key.
pub(crate) const MAX_SHORT_BYTES: usize = 15;

/// The bytes of a key in memory.
pub(crate) const KEY_BYTES: usize = 16;

/// A word of up to 15 bytes: its bytes from the lowest on, zeros behind them, and its length plus one in the highest
/// byte.
///
/// Longer words have the mark of [`Self::LONG`] there. They all have the same key, unless it is made from a hash. Zero
/// is not a word's key.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct ShortKey(u128);

/// The masks of as many low bytes as the index says; of no byte for longer words.
const MASKS: [u128; MAX_SHORT_BYTES + 2] = {
    let mut masks = [0; MAX_SHORT_BYTES + 2];
    let mut length = 0;
    while length <= MAX_SHORT_BYTES {
        masks[length] = (1 << (8 * length)) - 1;
        length += 1;
    }
    masks
};

/// Bits below the highest byte.
const LENGTH_SHIFT: u32 = 120;

impl ShortKey {
    /// The key of longer words.
    const LONG: Self = Self((MAX_SHORT_BYTES as u128 + 2) << LENGTH_SHIFT);

    /// The key of the word `text[start..end]`.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "for each word")]
    pub(crate) fn new(text: &[u8], start: usize, end: usize) -> Self {
        let length = (end - start).min(MAX_SHORT_BYTES + 1);
        let word = match text[start..].first_chunk::<KEY_BYTES>() {
            Some(chunk) => u128::from_le_bytes(*chunk) & MASKS[length],
            None => pack_last(&text[start..end]),
        };
        Self(word | (length as u128 + 1) << LENGTH_SHIFT)
    }

    /// The key of a longer word with this hash.
    #[inline]
    pub(crate) fn of_hash(hash: u64) -> Self {
        Self(Self::LONG.0 | u128::from(hash))
    }

    /// The same key of a longer word, which also says where the word is kept: a number below 2^56.
    #[inline]
    pub(crate) fn with_place(self, place: usize) -> Self {
        Self(Self::LONG.0 | (place as u128) << u64::BITS | u128::from(self.low()))
    }

    /// Where a longer word is kept.
    #[inline]
    pub(crate) fn place(self) -> usize {
        ((self.0 ^ Self::LONG.0) >> u64::BITS) as usize
    }

    /// Whether it is the key of a longer word.
    #[inline]
    pub(crate) fn is_long(self) -> bool {
        self.0 >> LENGTH_SHIFT == Self::LONG.0 >> LENGTH_SHIFT
    }

    /// Whether it is not a key.
    #[inline]
    pub(crate) fn is_none(self) -> bool {
        self.0 == 0
    }

    /// The first 8 bytes of the word, or its hash.
    #[inline]
    pub(crate) fn low(self) -> u64 {
        self.0 as u64
    }

    /// A hash whose every bit depends on all of the key.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "a few instructions")]
    pub(crate) fn hash(self) -> u64 {
        mix(self.low(), (self.0 >> u64::BITS) as u64)
    }

    /// The bytes of a short word, in `buffer`.
    pub(crate) fn bytes(self, buffer: &mut [u8; KEY_BYTES]) -> &[u8] {
        *buffer = self.0.to_le_bytes();
        let length = buffer[MAX_SHORT_BYTES].saturating_sub(1);
        &buffer[..usize::from(length).min(MAX_SHORT_BYTES)]
    }
}

/// A key that need not lie at a multiple of 16 bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct StoredKey([u64; 2]);

impl From<ShortKey> for StoredKey {
    #[inline]
    fn from(key: ShortKey) -> Self {
        Self([key.low(), (key.0 >> u64::BITS) as u64])
    }
}

impl From<StoredKey> for ShortKey {
    #[inline]
    fn from(StoredKey([low, high]): StoredKey) -> Self {
        Self(u128::from(high) << u64::BITS | u128::from(low))
    }
}

/// Two keys side by side, as a line of a near table has them.
#[derive(Clone, Copy, Default)]
pub(crate) struct KeyPair([u128; 2]);

impl KeyPair {
    /// Which of them is `key`, and whether one is; without a branch.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "for each word")]
    pub(crate) fn find(&self, key: ShortKey) -> (usize, bool) {
        let [first, second] = self.0.map(|known| known == key.0);
        (usize::from(second), first | second)
    }

    /// Puts a key first, and the first one in the place of the second.
    #[inline]
    pub(crate) fn push(&mut self, key: ShortKey) {
        self.0 = [key.0, self.0[0]];
    }

    /// The first or the second key.
    #[inline]
    pub(crate) fn get(&self, at: usize) -> ShortKey {
        ShortKey(self.0[at])
    }

    /// Replaces the first or the second key.
    #[inline]
    pub(crate) fn put(&mut self, at: usize, key: ShortKey) {
        self.0[at] = key.0;
    }
}

/// Packs a word at the very end of a text: its first and its last bytes, which may overlap.
#[inline(never)]
fn pack_last(word: &[u8]) -> u128 {
    let length = word.len();
    match (word.first_chunk(), word.last_chunk(), word.first_chunk(), word.last_chunk()) {
        _ if length > MAX_SHORT_BYTES => 0,
        (Some(&first), Some(&last), ..) => {
            let last = u128::from(u64::from_le_bytes(last)) << u64::BITS >> (8 * (KEY_BYTES - length));
            u128::from(u64::from_le_bytes(first)) | last
        }
        (.., Some(&first), Some(&last)) => {
            let last = u64::from(u32::from_le_bytes(last)) << u32::BITS >> (8 * (size_of::<u64>() - length));
            u128::from(u64::from(u32::from_le_bytes(first)) | last)
        }
        _ => word.iter().rev().fold(0, |packed, &byte| packed << 8 | u128::from(byte)),
    }
}

/// Mixes two numbers: the halves of a product, as wyhash does it (<https://github.com/wangyi-fudan/wyhash>).
#[inline(always)]
#[allow(clippy::inline_always, reason = "a few instructions")]
pub(crate) fn mix(low: u64, high: u64) -> u64 {
    let product = u128::from(low ^ 0x9E37_79B9_7F4A_7C15) * u128::from(high ^ 0xD6E8_FEB8_6659_FD93);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_is_one_to_one_and_does_not_depend_on_what_follows() {
        let text = b"\0\0a\0bcdefghijklmnopqrstuvwxyz";
        let mut keys = Vec::new();
        for start in 0..text.len() {
            for end in start..=text.len().min(start + MAX_SHORT_BYTES) {
                let key = ShortKey::new(text, start, end);
                assert_eq!(key, ShortKey::new(&text[start..end], 0, end - start));
                assert!(!key.is_none() && !key.is_long());
                assert_eq!(key.bytes(&mut [0; KEY_BYTES]), &text[start..end]);
                keys.push((key.0, &text[start..end]));
            }
        }
        keys.sort_unstable();
        assert!(keys.windows(2).all(|two| (two[0].0 == two[1].0) == (two[0].1 == two[1].1)));
        for (start, end) in [(0, 16), (0, text.len()), (text.len() - 16, text.len())] {
            assert!(ShortKey::new(text, start, end).is_long());
        }
    }

    #[test]
    fn a_key_of_a_hash_keeps_the_place_of_its_word() {
        for (hash, place) in [(0, 0), (u64::MAX, 7), (5, (1 << 56) - 1)] {
            let key = ShortKey::of_hash(hash).with_place(place);
            assert_eq!((key.low(), key.place()), (hash, place));
            assert!(key.is_long() && ShortKey::of_hash(hash).is_long());
        }
    }
}
