//! What words are put in order by before their bytes are compared.

/// What the current word of a run is compared by first: its partition and its first bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Head {
    pub(super) partition: u32,
    prefix: u64,
}

impl Head {
    /// After the last word.
    pub(super) const END: Self = Self { partition: u32::MAX, prefix: 0 };

    pub(super) fn new(partition: u32, prefix: u64) -> Self {
        Self { partition, prefix }
    }
}

/// The partition of a word.
pub(crate) fn partition(word: &[u8], partitions: u32) -> u32 {
    if partitions > 1 { crc32fast::hash(word) % partitions } else { 0 }
}

/// The first 8 bytes of a word as a big-endian number, zeros after its end: most comparisons need no more.
pub(super) fn prefix(word: &[u8]) -> u64 {
    match word.first_chunk::<8>() {
        Some(&first) => u64::from_be_bytes(first),
        None => word.iter().enumerate().fold(0, |prefix, (at, &byte)| prefix | u64::from(byte) << (56 - 8 * at)),
    }
}

/// Bytes of a word in its key.
pub(super) const KEY_TEXT: usize = 15;

/// What is in the last byte of a key whose word goes on.
const GOES_ON: u8 = u8::MAX;

/// The first bytes of a word as a big-endian number, zeros after its end, and in the last byte one more than its
/// length, or 255 if it is longer. Keys compare as the words do, but for longer ones that begin alike.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OrderKey(u128);

impl OrderKey {
    pub(super) fn new(word: &[u8]) -> Self {
        let mut bytes = [0; KEY_TEXT + 1];
        let length = word.len().min(KEY_TEXT);
        bytes[..length].copy_from_slice(&word[..length]);
        bytes[KEY_TEXT] = if word.len() > KEY_TEXT { GOES_ON } else { length as u8 + 1 };
        Self(u128::from_be_bytes(bytes))
    }

    /// Whether it is not the whole word.
    pub(super) fn goes_on(self) -> bool {
        self.0 as u8 == GOES_ON
    }

    /// The prefix of the word.
    pub(super) fn prefix(self) -> u64 {
        (self.0 >> u64::BITS) as u64
    }

    /// The whole word, in `buffer`, unless it goes on.
    pub(super) fn word(self, buffer: &mut [u8; KEY_TEXT + 1]) -> usize {
        *buffer = self.0.to_be_bytes();
        usize::from(buffer[KEY_TEXT]).saturating_sub(1).min(KEY_TEXT)
    }
}
