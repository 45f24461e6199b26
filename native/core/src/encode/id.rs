//! Token ids as they are stored: 16 bits where the vocabulary is small enough, else 32.

use arrow_array::types::{ArrowPrimitiveType, UInt16Type, UInt32Type};
use arrow_buffer::{ArrowNativeType, ToByteSlice};

/// A token id as it is stored.
pub(crate) trait Id: ArrowNativeType {
    /// The Arrow type of the ids.
    type Arrow: ArrowPrimitiveType<Native = Self>;
    /// As many as there are in 16 bytes.
    type Lanes: AsRef<[Self]> + AsMut<[Self]> + Copy + Default + Send;
    /// Bytes of an id in a key.
    const KEY_BYTES: usize;
    /// Stores an id that is known to fit.
    fn new(id: u32) -> Self;
    /// The id as a number.
    fn id(self) -> u32;
    /// Reads a 32-bit number from the first lanes.
    fn number(lanes: &[Self]) -> u32;
    /// Writes a 32-bit number to the first lanes.
    fn put_number(number: u32, lanes: &mut [Self]);
    /// Reads an id from its bytes in memory, of which there are as many as it has.
    fn from_bytes(bytes: &[u8]) -> Self;
    /// Appends [`Self::KEY_BYTES`] bytes for each id.
    fn put_key(ids: &[Self], key: &mut Vec<u8>);
    /// The id of so many bytes of a key.
    fn from_key(key: &[u8]) -> u32;
    /// Reads as many ids as there are lanes from their bytes in memory, if there are so many.
    fn lanes(bytes: &[u8]) -> Option<Self::Lanes>;
}

impl Id for u16 {
    type Arrow = UInt16Type;
    type Lanes = [Self; 8];
    const KEY_BYTES: usize = 2;

    #[inline]
    fn new(id: u32) -> Self {
        id as Self
    }

    #[inline]
    fn id(self) -> u32 {
        u32::from(self)
    }

    fn number(lanes: &[Self]) -> u32 {
        u32::from(lanes[0]) | u32::from(lanes[1]) << 16
    }

    fn put_number(number: u32, lanes: &mut [Self]) {
        (lanes[0], lanes[1]) = (number as Self, (number >> 16) as Self);
    }

    #[inline]
    fn from_bytes(bytes: &[u8]) -> Self {
        bytes.try_into().map_or(0, Self::from_ne_bytes)
    }

    #[inline]
    fn put_key(ids: &[Self], key: &mut Vec<u8>) {
        key.extend_from_slice(ids.to_byte_slice());
    }

    #[inline]
    fn from_key(key: &[u8]) -> u32 {
        Self::from_bytes(key).id()
    }

    #[inline]
    fn lanes(bytes: &[u8]) -> Option<Self::Lanes> {
        let (lanes, _) = bytes.first_chunk::<16>()?.as_chunks();
        Some(std::array::from_fn(|at| Self::from_ne_bytes(lanes[at])))
    }
}

impl Id for u32 {
    type Arrow = UInt32Type;
    type Lanes = [Self; 4];
    // An id is below 2^21.
    const KEY_BYTES: usize = 3;

    #[inline]
    fn new(id: u32) -> Self {
        id
    }

    #[inline]
    fn id(self) -> u32 {
        self
    }

    fn number(lanes: &[Self]) -> u32 {
        lanes[0]
    }

    fn put_number(number: u32, lanes: &mut [Self]) {
        lanes[0] = number;
    }

    #[inline]
    fn from_bytes(bytes: &[u8]) -> Self {
        bytes.try_into().map_or(0, Self::from_ne_bytes)
    }

    fn put_key(ids: &[Self], key: &mut Vec<u8>) {
        for id in ids {
            key.extend_from_slice(&id.to_le_bytes()[..Self::KEY_BYTES]);
        }
    }

    fn from_key(key: &[u8]) -> u32 {
        key.iter().rev().fold(0, |id, &byte| id << u8::BITS | Self::from(byte))
    }

    #[inline]
    fn lanes(bytes: &[u8]) -> Option<Self::Lanes> {
        let (lanes, _) = bytes.first_chunk::<16>()?.as_chunks();
        Some(std::array::from_fn(|at| Self::from_ne_bytes(lanes[at])))
    }
}
