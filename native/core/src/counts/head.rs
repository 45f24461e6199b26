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
