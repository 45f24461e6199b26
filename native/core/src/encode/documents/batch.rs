//! Encoding of many documents into one Arrow list array, with threads.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::types::ArrowPrimitiveType;
use arrow_array::{ArrayRef, ListArray, PrimitiveArray};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::Field;

use super::encoder::Encoder;
use super::workers::Workers;
use crate::encode::id::Id;
use crate::encode::markers::Markers;
use crate::memory::{use_large_pages, zeros};
use crate::pieces::{on_threads, pieces};
use crate::{Error, Result, Stop};

/// The ids of some documents, one after another, and the number of each.
pub(crate) struct DocumentIds<T> {
    pub(crate) ids: Vec<T>,
    pub(crate) ends: Vec<usize>,
}

impl<T> DocumentIds<T> {
    /// Makes room for the ids of so many bytes of so many documents.
    pub(crate) fn with_capacity(bytes: usize, documents: usize) -> Self {
        let mut ids = Vec::with_capacity(bytes / 3);
        use_large_pages(&mut ids);
        Self { ids, ends: Vec::with_capacity(documents) }
    }
}

/// Encodes one document.
pub(crate) fn encode<T: Id>(encoder: &Encoder, workers: &Workers<T>, document: &[u8], stop: &Stop) -> Result<ArrayRef> {
    let piece = encode_piece(encoder, workers, &[document], Markers::default(), stop)?;
    Ok(Arc::new(PrimitiveArray::<T::Arrow>::new(piece.ids.into(), None)))
}

/// Encodes documents, in order, each between the markers, with up to `threads` threads.
pub(crate) fn encode_batch<T: Id>(
    encoder: &Encoder,
    workers: &Workers<T>,
    documents: &[&[u8]],
    markers: Markers,
    threads: usize,
    stop: &Stop,
) -> Result<ListArray> {
    let ranges = pieces(documents.iter().map(|document| document.len()), threads);
    let encode = |range: Range<usize>| encode_piece(encoder, workers, &documents[range], markers, stop);
    list_array(on_threads(threads, ranges, encode)?, threads)
}

/// Counts the ids of each document, with up to `threads` threads.
pub(crate) fn count_batch<T: Id>(
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
) -> Result<DocumentIds<T>> {
    let bytes: usize = documents.iter().map(|document| document.len()).sum();
    let mut piece = DocumentIds::with_capacity(bytes, documents.len());
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

/// Joins pieces into one list array, with up to `threads` threads.
pub(crate) fn list_array<T: Id>(mut pieces: Vec<DocumentIds<T>>, threads: usize) -> Result<ListArray> {
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
        several => join(several, total, threads)?,
    };
    let values = PrimitiveArray::<T::Arrow>::new(ids.into(), None);
    let field = Field::new("item", T::Arrow::DATA_TYPE, true);
    let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
    Ok(ListArray::try_new(Arc::new(field), offsets, Arc::new(values), None)?)
}

/// The ids of all pieces, `total` of them. Copying, and clearing the memory for it, takes as long as a tenth of
/// encoding.
fn join<T: Id>(pieces: &[DocumentIds<T>], total: usize, threads: usize) -> Result<Vec<T>> {
    let mut ids = zeros(total);
    let (mut rest, mut parts) = (ids.as_mut_slice(), Vec::with_capacity(pieces.len()));
    for piece in pieces {
        let (part, behind) = rest.split_at_mut(piece.ids.len());
        parts.push((part, &piece.ids));
        rest = behind;
    }
    let copy = |(part, ids): (&mut [T], &Vec<T>)| {
        part.copy_from_slice(ids);
        Ok(())
    };
    on_threads(threads, parts, copy)?;
    Ok(ids)
}
