//! Encoding of many documents into one Arrow list array, with threads.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::types::{ArrowPrimitiveType, UInt16Type, UInt32Type};
use arrow_array::{ArrayRef, ListArray, PrimitiveArray};
use arrow_buffer::{ArrowNativeType, OffsetBuffer, ScalarBuffer};
use arrow_schema::Field;
use rayon::prelude::*;

use super::encoder::{Encoder, Worker};
use crate::memory::use_large_pages;
use crate::{Error, Result};

/// Pieces of work that each thread gets, so that uneven documents even out.
const PIECES_PER_THREAD: usize = 8;
/// Smaller pieces cost more to hand out than they gain.
const MIN_PIECE_BYTES: usize = 64 << 10;

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
    fn with<R>(&self, call: impl FnOnce(&mut Worker<T>) -> R) -> R {
        let resting = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut worker = resting.unwrap_or_default();
        let result = call(&mut worker);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(worker);
        result
    }
}

/// The ids of some documents, one after another, and the number of each.
struct Piece<T> {
    ids: Vec<T>,
    ends: Vec<usize>,
}

/// Encodes one document.
pub(super) fn encode<T: Id>(encoder: &Encoder, workers: &Workers<T>, document: &[u8]) -> Result<ArrayRef> {
    let piece = encode_piece::<T>(encoder, workers, &[document])?;
    Ok(Arc::new(PrimitiveArray::<T::Arrow>::new(piece.ids.into(), None)))
}

/// Encodes documents, in order, with up to `threads` threads.
pub(super) fn encode_batch<T: Id>(
    encoder: &Encoder,
    workers: &Workers<T>,
    documents: &[&[u8]],
    threads: usize,
) -> Result<ListArray> {
    let ranges = piece_ranges(documents, threads);
    if threads <= 1 || ranges.len() <= 1 {
        return list_array(vec![encode_piece::<T>(encoder, workers, documents)?]);
    }
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads.min(ranges.len()))
        .build()
        .map_err(|error| Error::invalid(format!("cannot start {threads} threads: {error}")))?;
    let encode_range = |range: Range<usize>| encode_piece::<T>(encoder, workers, &documents[range]);
    list_array(pool.install(|| ranges.into_par_iter().map(encode_range).collect::<Result<Vec<_>>>())?)
}

fn encode_piece<T: Id>(encoder: &Encoder, workers: &Workers<T>, documents: &[&[u8]]) -> Result<Piece<T>> {
    let bytes: usize = documents.iter().map(|document| document.len()).sum();
    let mut piece = Piece { ids: Vec::with_capacity(bytes / 3), ends: Vec::with_capacity(documents.len()) };
    use_large_pages(&mut piece.ids);
    workers.with(|worker| {
        for document in documents {
            encoder.encode(worker, document, &mut piece.ids)?;
            piece.ends.push(piece.ids.len());
        }
        Ok(piece)
    })
}

/// Cuts the documents into runs of about the same number of bytes.
fn piece_ranges(documents: &[&[u8]], threads: usize) -> Vec<Range<usize>> {
    let total: usize = documents.iter().map(|document| document.len()).sum();
    let target = (total / (threads.max(1) * PIECES_PER_THREAD)).max(MIN_PIECE_BYTES);
    let (mut ranges, mut start, mut bytes) = (Vec::new(), 0, 0);
    for (index, document) in documents.iter().enumerate() {
        bytes += document.len();
        if bytes >= target {
            ranges.push(start..index + 1);
            (start, bytes) = (index + 1, 0);
        }
    }
    if start < documents.len() {
        ranges.push(start..documents.len());
    }
    ranges
}

fn list_array<T: Id>(mut pieces: Vec<Piece<T>>) -> Result<ListArray> {
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
