//! Short keys held as integers, and an exact table of them.
//!
//! Nearly all words of source text are shorter than 16 bytes, so that a table that keeps keys and values side by side costs
//! one cache miss a lookup.

/// The longest key that [`Inline`] holds.
pub(super) const INLINE_BYTES: usize = 16;

/// In place of the length of a key: it is a hash.
const HASHED: u32 = u32::MAX;

/// A key of up to 16 bytes: its first and its last 8 bytes, zeros after its end, and its length plus one; all zero is no
/// key. Or the hash of a longer one.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Inline {
    pub(super) low: u64,
    pub(super) high: u64,
    pub(super) size: u32,
}

impl Inline {
    /// The key of `bytes`, unless they are too many.
    #[inline]
    pub(super) fn new(bytes: &[u8]) -> Option<Self> {
        if bytes.len() > INLINE_BYTES {
            return None;
        }
        let mut padded = [0; INLINE_BYTES];
        padded[..bytes.len()].copy_from_slice(bytes);
        Some(Self::masked(u128::from_le_bytes(padded), bytes.len()))
    }

    /// The key of `source[start..end]`, at most 16 bytes.
    #[inline]
    pub(super) fn within(source: &[u8], start: usize, end: usize) -> Self {
        match source[start..].first_chunk::<INLINE_BYTES>() {
            Some(&chunk) => Self::masked(u128::from_le_bytes(chunk), end - start),
            None => Self::new(&source[start..end]).unwrap_or_default(),
        }
    }

    #[inline]
    fn masked(bytes: u128, length: usize) -> Self {
        let kept = bytes & MASKS[length];
        Self { low: kept as u64, high: (kept >> 64) as u64, size: length as u32 + 1 }
    }

    /// A key that stands for a longer one by its hash.
    #[inline]
    pub(super) fn hashed(hash: u64) -> Self {
        Self { low: hash, high: 0, size: HASHED }
    }

    /// Whether it stands for a longer key.
    #[inline]
    pub(super) fn is_hash(self) -> bool {
        self.size == HASHED
    }

    /// A hash of the key whose every bit depends on all of it.
    #[inline]
    pub(super) fn hash(self) -> u64 {
        let low = fold(self.low ^ 0x2d35_8dcc_aa6c_78a5, 0x9e37_79b9_7f4a_7c15 ^ (u64::from(self.size) << 8));
        low ^ fold(self.high ^ 0x8bb8_4b93_962e_acc9, 0xe703_7ed1_a0b4_28db)
    }

    /// The bytes of the key, in `buffer`.
    pub(super) fn bytes(self, buffer: &mut [u8; INLINE_BYTES]) -> &[u8] {
        buffer[..8].copy_from_slice(&self.low.to_le_bytes());
        buffer[8..].copy_from_slice(&self.high.to_le_bytes());
        &buffer[..self.size.saturating_sub(1) as usize]
    }

    #[inline]
    pub(super) fn is_none(self) -> bool {
        self.size == 0
    }
}

/// As many low bytes as the index.
const MASKS: [u128; INLINE_BYTES + 1] = {
    let mut masks = [u128::MAX; INLINE_BYTES + 1];
    let mut length = 0;
    while length < INLINE_BYTES {
        masks[length] = (1 << (8 * length)) - 1;
        length += 1;
    }
    masks
};

/// The halves of the product of two numbers, mixed, as wyhash does it (<https://github.com/wangyi-fudan/wyhash>).
#[inline]
fn fold(left: u64, right: u64) -> u64 {
    let product = u128::from(left) * u128::from(right);
    (product as u64) ^ ((product >> 64) as u64)
}

/// A key and its value.
#[derive(Clone, Copy, Default)]
pub(super) struct Slot<V> {
    pub(super) key: Inline,
    pub(super) value: V,
}

/// A map from [`Inline`] keys to `V`, by linear probing.
pub(super) struct InlineTable<V> {
    slots: Vec<Slot<V>>,
    used: usize,
}

impl<V: Copy + Default> InlineTable<V> {
    pub(super) fn new() -> Self {
        Self { slots: vec![Slot::default(); 64], used: 0 }
    }

    /// The memory of the table.
    pub(super) fn memory_bytes(&self) -> usize {
        self.slots.len() * size_of::<Slot<V>>()
    }

    /// The value of `key`, the default if it is new.
    #[inline]
    pub(super) fn entry(&mut self, key: Inline) -> &mut V {
        let mut at = self.find(key);
        if self.slots[at].key.is_none() {
            at = self.insert(key, at);
        }
        &mut self.slots[at].value
    }

    /// Where `key` stands, or the free slot that it can have.
    #[inline]
    fn find(&self, key: Inline) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = key.hash() as usize & mask;
        while self.slots[at].key != key && !self.slots[at].key.is_none() {
            at = (at + 1) & mask;
        }
        at
    }

    #[cold]
    fn insert(&mut self, key: Inline, mut at: usize) -> usize {
        if (self.used + 1) * 3 > self.slots.len() * 2 {
            self.grow();
            at = self.find(key);
        }
        self.used += 1;
        self.slots[at].key = key;
        at
    }

    fn grow(&mut self) {
        let larger = vec![Slot::default(); self.slots.len() * 2];
        for slot in std::mem::replace(&mut self.slots, larger) {
            if !slot.key.is_none() {
                let at = self.find(slot.key);
                self.slots[at] = slot;
            }
        }
    }

    /// Every key with its value, in no particular order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Slot<V>> {
        self.slots.iter().filter(|slot| !slot.key.is_none())
    }
}
