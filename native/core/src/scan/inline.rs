//! Short keys held as integers, and two tables of them: an exact one, and a small cache in front of it.
//!
//! Nearly all words of source text are shorter than 16 bytes, and few of them make up most of the text. A large hash
//! table therefore costs a cache miss or two for each word; a direct-mapped cache that stays in the second-level cache
//! takes most lookups away from it, and a table that keeps keys and values side by side costs one miss for the others.

/// The longest key that [`Inline`] holds.
pub(super) const INLINE_BYTES: usize = 16;

/// A key of up to 16 bytes: its first and last 8 bytes, which may overlap, and its length plus one; all zero is no key.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Inline {
    low: u64,
    high: u64,
    size: u32,
}

impl Inline {
    /// The key of `bytes`, unless they are too many.
    #[inline]
    pub(super) fn new(bytes: &[u8]) -> Option<Self> {
        let (low, high) = match (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
            _ if bytes.len() > INLINE_BYTES => return None,
            (Some(&first), Some(&last)) => (u64::from_le_bytes(first), u64::from_le_bytes(last)),
            _ => (short(bytes), 0),
        };
        Some(Self { low, high, size: bytes.len() as u32 + 1 })
    }

    /// A hash of the key whose every bit depends on all of it.
    #[inline]
    pub(super) fn hash(self) -> u64 {
        let low = fold(self.low ^ 0x2d35_8dcc_aa6c_78a5, 0x9e37_79b9_7f4a_7c15 ^ (u64::from(self.size) << 8));
        low ^ fold(self.high ^ 0x8bb8_4b93_962e_acc9, 0xe703_7ed1_a0b4_28db)
    }

    /// The bytes of the key, in `buffer`.
    pub(super) fn bytes(self, buffer: &mut [u8; INLINE_BYTES]) -> &[u8] {
        let length = self.size.saturating_sub(1) as usize;
        buffer[..8].copy_from_slice(&self.low.to_le_bytes());
        if length > 8 {
            buffer[length - 8..length].copy_from_slice(&self.high.to_le_bytes());
        }
        &buffer[..length]
    }

    fn is_none(self) -> bool {
        self.size == 0
    }
}

/// The halves of the product of two numbers, mixed, as wyhash does it (<https://github.com/wangyi-fudan/wyhash>).
#[inline]
fn fold(left: u64, right: u64) -> u64 {
    let product = u128::from(left) * u128::from(right);
    (product as u64) ^ ((product >> 64) as u64)
}

/// Up to 7 bytes as the little-endian number that they spell.
#[inline]
fn short(bytes: &[u8]) -> u64 {
    if let (Some(&first), Some(&last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        let shift = 8 * (bytes.len() - 4);
        return u64::from(u32::from_le_bytes(first)) | (u64::from(u32::from_le_bytes(last)) << shift);
    }
    bytes.iter().rev().fold(0, |number, &byte| (number << 8) | u64::from(byte))
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

    /// How many keys there are.
    pub(super) fn len(&self) -> usize {
        self.used
    }

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

    /// Something that depends on the memory where `key` belongs: asking for many of them lets their cache misses overlap.
    #[inline]
    pub(super) fn touch(&self, key: Inline) -> u64 {
        self.slots[key.hash() as usize & (self.slots.len() - 1)].key.low
    }

    /// Every key with its value, in no particular order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Slot<V>> {
        self.slots.iter().filter(|slot| !slot.key.is_none())
    }
}

/// A direct-mapped cache of `SLOTS` slots; who uses it decides what to put in.
pub(super) struct Cache<V, const SLOTS: usize>(Vec<Slot<V>>);

impl<V: Copy + Default, const SLOTS: usize> Cache<V, SLOTS> {
    pub(super) fn new() -> Self {
        Self(vec![Slot::default(); SLOTS])
    }

    /// The only slot where `key` may stand.
    #[inline]
    pub(super) fn slot(&mut self, key: Inline) -> &mut Slot<V> {
        &mut self.0[(key.hash() >> 40) as usize % SLOTS]
    }

    /// Takes out every slot.
    pub(super) fn take(&mut self) -> Vec<Slot<V>> {
        std::mem::replace(&mut self.0, vec![Slot::default(); SLOTS])
    }
}
