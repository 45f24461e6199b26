//! Words as numbers: what they are looked up by.

/// Words up to this length are their own key.
pub(crate) const MAX_SHORT_BYTES: usize = 15;

/// What a word is looked up by beyond the near table.
#[derive(Clone, Copy, Default)]
pub(crate) struct Key {
    /// The word, if it is short.
    pub(crate) packed: Packed,
    /// A hash of the whole word.
    pub(crate) hash: u64,
}

/// A short word with its length as a number, or the same number for all others.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Packed(u128);

/// As many low bytes as the index, none for the length of long words.
const KEPT: [u128; MAX_SHORT_BYTES + 2] = {
    let mut masks = [0; MAX_SHORT_BYTES + 2];
    let mut length = 0;
    while length <= MAX_SHORT_BYTES {
        masks[length] = (1 << (8 * length)) - 1;
        length += 1;
    }
    masks
};

impl Packed {
    const LONG: Self = Self((MAX_SHORT_BYTES as u128 + 1) << 120);

    /// Packs the word `text[start..end]`, which is not empty.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "for each word")]
    pub(crate) fn new(text: &[u8], start: usize, end: usize) -> Self {
        let length = (end - start).min(MAX_SHORT_BYTES + 1);
        let word = match text[start..].first_chunk::<16>() {
            Some(chunk) => u128::from_le_bytes(*chunk) & KEPT[length],
            None => pack_last(&text[start..end]),
        };
        Self(word | (length as u128) << 120)
    }

    /// The number that stands for the word.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "no instruction")]
    pub(crate) fn number(self) -> u128 {
        self.0
    }

    /// A hash of all of it.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "a few instructions")]
    pub(crate) fn hash(self) -> u64 {
        mix(self.0 as u64, (self.0 >> 64) as u64)
    }

    pub(crate) fn is_long(self) -> bool {
        self == Self::LONG
    }
}

/// Packs a word at the very end of a text.
#[inline(never)]
fn pack_last(word: &[u8]) -> u128 {
    if word.len() > MAX_SHORT_BYTES {
        return 0;
    }
    word.iter().rev().fold(0, |packed, &byte| packed << 8 | u128::from(byte))
}

/// Mixes two numbers.
#[inline(always)]
#[allow(clippy::inline_always, reason = "a few instructions")]
fn mix(low: u64, high: u64) -> u64 {
    let product = u128::from(low ^ 0x9E37_79B9_7F4A_7C15) * u128::from(high ^ 0xD6E8_FEB8_6659_FD93);
    product as u64 ^ (product >> 64) as u64
}

/// A hash of a word of 16 bytes or more.
fn long_hash(word: &[u8]) -> u64 {
    let mix_in = |hash: u64, chunk: &[u8; 16]| {
        let number = u128::from_le_bytes(*chunk);
        mix(number as u64 ^ hash, (number >> 64) as u64)
    };
    let hash = word.as_chunks::<16>().0.iter().fold(word.len() as u64, mix_in);
    word.last_chunk().map_or(hash, |last| mix_in(hash, last))
}

impl Key {
    /// The key of a word whose packed form is `packed`.
    #[inline]
    pub(crate) fn new(packed: Packed, word: &[u8]) -> Self {
        Self { packed, hash: if packed.is_long() { long_hash(word) } else { packed.hash() } }
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
                let key = Packed::new(text, start, end);
                assert_eq!(key, Packed::new(&text[start..end], 0, end - start));
                assert!(key != Packed::default() && !key.is_long());
                keys.push((key.number(), &text[start..end]));
            }
        }
        keys.sort_unstable();
        assert!(keys.windows(2).all(|two| (two[0].0 == two[1].0) == (two[0].1 == two[1].1)));
        for (start, end) in [(0, 16), (0, text.len()), (text.len() - 16, text.len())] {
            assert!(Packed::new(text, start, end).is_long());
        }
    }
}
