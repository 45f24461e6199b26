//! Encoding of many documents into one Arrow list array, with threads.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::types::{ArrowPrimitiveType, UInt16Type, UInt32Type};
use arrow_array::{ArrayRef, ListArray, PrimitiveArray};
use arrow_buffer::{ArrowNativeType, OffsetBuffer, ScalarBuffer};
use arrow_schema::Field;

use super::Markers;
use super::encoder::{Encoder, Worker};
use crate::memory::use_large_pages;
use crate::pieces::{on_threads, pieces};
use crate::{Error, Result, Stop};

/// A token id as it is stored.
pub(super) trait Id: ArrowNativeType {
    /// The Arrow type of the ids.
    type Arrow: ArrowPrimitiveType<Native = Self>;
    /// As many as there are in 16 bytes.
    type Lanes: AsRef<[Self]> + AsMut<[Self]> + Copy + Default + Send;
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
    /// Reads as many ids as there are lanes from their bytes in memory, if there are so many.
    fn lanes(bytes: &[u8]) -> Option<Self::Lanes>;
}

impl Id for u16 {
    type Arrow = UInt16Type;
    type Lanes = [Self; 8];

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
    fn lanes(bytes: &[u8]) -> Option<Self::Lanes> {
        let (lanes, _) = bytes.first_chunk::<16>()?.as_chunks();
        Some(std::array::from_fn(|at| Self::from_ne_bytes(lanes[at])))
    }
}

impl Id for u32 {
    type Arrow = UInt32Type;
    type Lanes = [Self; 4];

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

    #[inline]
    fn lanes(bytes: &[u8]) -> Option<Self::Lanes> {
        let (lanes, _) = bytes.first_chunk::<16>()?.as_chunks();
        Some(std::array::from_fn(|at| Self::from_ne_bytes(lanes[at])))
    }
}

/// Workers at rest, with their caches.
pub(super) struct Workers<T: Id>(Mutex<Vec<Worker<T>>>);

impl<T: Id> Default for Workers<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Id> Workers<T> {
    /// Lends a worker to `call`.
    pub(super) fn with<R>(&self, call: impl FnOnce(&mut Worker<T>) -> R) -> R {
        let resting = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut worker = resting.unwrap_or_default();
        let result = call(&mut worker);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(worker);
        result
    }
}

/// The ids of some documents, one after another, and the number of each.
pub(super) struct Piece<T> {
    pub(super) ids: Vec<T>,
    pub(super) ends: Vec<usize>,
}

impl<T> Piece<T> {
    /// Makes room for the ids of so many bytes of so many documents.
    pub(super) fn with_capacity(bytes: usize, documents: usize) -> Self {
        let mut ids = Vec::with_capacity(bytes / 3);
        use_large_pages(&mut ids);
        Self { ids, ends: Vec::with_capacity(documents) }
    }
}

/// Encodes one document.
pub(super) fn encode<T: Id>(encoder: &Encoder, workers: &Workers<T>, document: &[u8], stop: &Stop) -> Result<ArrayRef> {
    let piece = encode_piece(encoder, workers, &[document], Markers::default(), stop)?;
    Ok(Arc::new(PrimitiveArray::<T::Arrow>::new(piece.ids.into(), None)))
}

/// Encodes documents, in order, each between the markers, with up to `threads` threads.
pub(super) fn encode_batch<T: Id>(
    encoder: &Encoder,
    workers: &Workers<T>,
    documents: &[&[u8]],
    markers: Markers,
    threads: usize,
    stop: &Stop,
) -> Result<ListArray> {
    let ranges = pieces(documents.iter().map(|document| document.len()), threads);
    let encode = |range: Range<usize>| encode_piece(encoder, workers, &documents[range], markers, stop);
    list_array(on_threads(threads, ranges, encode)?)
}

/// Counts the ids of each document, with up to `threads` threads.
pub(super) fn count_batch<T: Id>(
    encoder: &Encoder,
    workers: &Workers<T>,
    documents: &[&[u8]],
    threads: usize,
    stop: &Stop,
) -> Result<Vec<u64>> {
    let count_range = |range: Range<usize>| {
        workers.with(|worker| {
            let mut ids = Vec::new();
            let count = |document: &&[u8]| {
                ids.clear();
                encoder.encode(worker, document, stop, &mut ids)?;
                Ok(ids.len() as u64)
            };
            documents[range].iter().map(count).collect::<Result<Vec<_>>>()
        })
    };
    let ranges = pieces(documents.iter().map(|document| document.len()), threads);
    Ok(on_threads(threads, ranges, count_range)?.concat())
}

fn encode_piece<T: Id>(
    encoder: &Encoder,
    workers: &Workers<T>,
    documents: &[&[u8]],
    markers: Markers,
    stop: &Stop,
) -> Result<Piece<T>> {
    let bytes: usize = documents.iter().map(|document| document.len()).sum();
    let mut piece = Piece::with_capacity(bytes, documents.len());
    workers.with(|worker| {
        for document in documents {
            piece.ids.extend(markers.bos.map(T::new));
            encoder.encode(worker, document, stop, &mut piece.ids)?;
            piece.ids.extend(markers.eos.map(T::new));
            piece.ends.push(piece.ids.len());
        }
        Ok(piece)
    })
}

pub(super) fn list_array<T: Id>(mut pieces: Vec<Piece<T>>) -> Result<ListArray> {
    let total = pieces.iter().map(|piece| piece.ids.len()).sum();
    let mut offsets = vec![0_i32];
    let mut before = 0;
    for piece in &pieces {
        for end in &piece.ends {
            offsets.push(i32::try_from(before + end).map_err(|_| {
                Error::invalid(format!(
                    "the batch has {total} tokens, more than a list array holds: pass fewer documents at once"
                ))
            })?);
        }
        before += piece.ids.len();
    }
    let ids = match pieces.as_mut_slice() {
        [only] => std::mem::take(&mut only.ids),
        several => several.iter().fold(Vec::with_capacity(total), |mut ids, piece| {
            ids.extend_from_slice(&piece.ids);
            ids
        }),
    };
    let values = PrimitiveArray::<T::Arrow>::new(ids.into(), None);
    let field = Field::new("item", T::Arrow::DATA_TYPE, true);
    let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
    Ok(ListArray::try_new(Arc::new(field), offsets, Arc::new(values), None)?)
}
