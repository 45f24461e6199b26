//! From token ids back to bytes.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{UInt16Type, UInt32Type};
use arrow_array::{Array, ArrayRef, BinaryArray, LargeBinaryArray, RecordBatch, StringArray, UInt64Array};
use arrow_buffer::{Buffer, OffsetBuffer};
use arrow_schema::DataType;

use crate::arrays::{integers, lists};
use crate::digest::sha256_hex;
use crate::encode::load::Vocabulary;
use crate::encode::markers::Markers;
use crate::pieces::{on_threads, pieces};
use crate::{Error, Result, Stop};

/// How many ids are decoded between two looks at whether to stop.
const IDS_AT_ONCE: usize = 1 << 16;

/// Appends the bytes of `ids` to `out`.
pub(crate) fn decode_into<T: Copy + Into<u32>>(
    vocabulary: &Vocabulary,
    ids: &[T],
    skip_control: bool,
    stop: &Stop,
    out: &mut Vec<u8>,
) -> Result<()> {
    let before = out.len();
    out.resize(before + length(vocabulary, ids, skip_control, stop)?, 0);
    fill(vocabulary, ids, &mut out[before..])
}

/// Calls a method of [`Decode`] with the ids of lists, as they are stored where that is the usual way.
macro_rules! with_ids {
    ($lists:ident, $decode:ident.$method:ident) => {
        match $lists.values.data_type() {
            DataType::UInt16 if $lists.values.null_count() == 0 => {
                $decode.$method($lists.values.as_primitive::<UInt16Type>().values())
            }
            DataType::UInt32 if $lists.values.null_count() == 0 => {
                $decode.$method($lists.values.as_primitive::<UInt32Type>().values())
            }
            _ => $decode.$method(&integers(&$lists.values, "ids")?),
        }
    };
}

/// Decodes every list of `array`, without its markers, on up to `threads` threads.
pub(crate) fn decode_batch(
    vocabulary: &Vocabulary,
    array: &dyn Array,
    markers: Markers,
    skip_control: bool,
    threads: usize,
    stop: &Stop,
) -> Result<ArrayRef> {
    let lists = lists(array, "ids")?;
    let decode = Decode { vocabulary, offsets: &lists.offsets, markers, skip_control, threads, stop };
    with_ids!(lists, decode.rows)
}

/// Gives length and SHA-256 of what every list of `array` decodes to, without its markers, on up to `threads` threads.
pub(crate) fn digest_batch(
    vocabulary: &Vocabulary,
    array: &dyn Array,
    markers: Markers,
    threads: usize,
    stop: &Stop,
) -> Result<RecordBatch> {
    let lists = lists(array, "ids")?;
    let decode = Decode { vocabulary, offsets: &lists.offsets, markers, skip_control: false, threads, stop };
    let (lengths, digests): (Vec<u64>, Vec<String>) = with_ids!(lists, decode.digests)?.into_iter().unzip();
    let columns: [(_, ArrayRef); 2] =
        [("num_bytes", Arc::new(UInt64Array::from(lengths))), ("sha256", Arc::new(StringArray::from(digests)))];
    Ok(RecordBatch::try_from_iter(columns)?)
}

/// What decoding lists needs besides the ids.
struct Decode<'a> {
    vocabulary: &'a Vocabulary,
    offsets: &'a [usize],
    markers: Markers,
    skip_control: bool,
    threads: usize,
    stop: &'a Stop,
}

impl Decode<'_> {
    /// Measures all rows first, so that each piece is then written to its place.
    fn rows<T: Copy + Into<u32> + Sync>(&self, ids: &[T]) -> Result<ArrayRef> {
        let ranges = self.pieces();
        let measured = on_threads(self.threads, ranges.clone(), |rows| {
            rows.map(|row| self.in_row(row, ids, |text| length(self.vocabulary, text, self.skip_control, self.stop)))
                .collect::<Result<Vec<usize>>>()
        })?;
        let mut bytes = vec![0; measured.iter().flatten().sum()];
        let (mut work, mut rest) = (Vec::with_capacity(ranges.len()), bytes.as_mut_slice());
        for (rows, lengths) in ranges.into_iter().zip(&measured) {
            let (place, after) = rest.split_at_mut(lengths.iter().sum());
            work.push((rows, lengths, place));
            rest = after;
        }
        on_threads(self.threads, work, |(rows, lengths, mut place)| {
            for (row, &length) in rows.zip(lengths) {
                let (text, after) = place.split_at_mut(length);
                fill(self.vocabulary, &ids[self.text(row, ids)?], text)?;
                place = after;
            }
            Ok(())
        })?;
        binary(bytes, &measured.concat())
    }

    /// Decodes row by row into memory that is used again.
    fn digests<T: Copy + Into<u32> + Sync>(&self, ids: &[T]) -> Result<Vec<(u64, String)>> {
        let digested = on_threads(self.threads, self.pieces(), |rows| {
            let mut bytes = Vec::new();
            rows.map(|row| {
                bytes.clear();
                self.in_row(row, ids, |text| {
                    decode_into(self.vocabulary, text, self.skip_control, self.stop, &mut bytes)
                })?;
                Ok((bytes.len() as u64, sha256_hex(&bytes)))
            })
            .collect::<Result<Vec<_>>>()
        })?;
        Ok(digested.concat())
    }

    fn pieces(&self) -> Vec<Range<usize>> {
        pieces(self.offsets.windows(2).map(|ends| ends[1] - ends[0]), self.threads)
    }

    /// Calls `call` with the ids of a row's text; errors name the row.
    fn in_row<T: Copy + Into<u32>, R>(&self, row: usize, ids: &[T], call: impl FnOnce(&[T]) -> Result<R>) -> Result<R> {
        self.text(row, ids)
            .and_then(|text| call(&ids[text]))
            .map_err(|error| Error::new(error.kind(), format!("row {row}: {error}")))
    }

    /// Where the ids of a row's text are, between the markers.
    fn text<T: Copy + Into<u32>>(&self, row: usize, ids: &[T]) -> Result<Range<usize>> {
        let (start, end) = (self.offsets[row], self.offsets[row + 1]);
        let Markers { bos, eos } = self.markers;
        let text = start + usize::from(bos.is_some())..end - usize::from(eos.is_some() && end > start);
        if text.start > text.end || (eos.is_some() && text.end == end) {
            return Err(Error::invalid(format!("{} ids are fewer than its BOS and EOS", end - start)));
        }
        for (name, marker, place) in [("BOS", bos, start), ("EOS", eos, text.end)] {
            let Some(marker) = marker else { continue };
            let found = ids[place].into();
            if found != marker {
                return Err(Error::invalid(format!("it has id {found} where {name} ({marker}) must be")));
            }
        }
        Ok(text)
    }
}

/// The length of the bytes of `ids`.
fn length<T: Copy + Into<u32>>(vocabulary: &Vocabulary, ids: &[T], skip_control: bool, stop: &Stop) -> Result<usize> {
    let mut total = 0;
    for (place, &id) in ids.iter().enumerate() {
        if place % IDS_AT_ONCE == 0 {
            stop.check()?;
        }
        let id = id.into();
        let length = vocabulary.bytes(id).map_err(|error| Error::invalid(format!("{error} (at {place})")))?.len();
        if length == 0 && !skip_control {
            let name = vocabulary.name(id).unwrap_or_default();
            return Err(Error::invalid(format!(
                "token id {id} at {place} is {name:?}, which has no text: \
                 pass skip_control=True to leave such ids out"
            )));
        }
        total += length;
    }
    Ok(total)
}

/// Writes the bytes of `ids`, which [`length`] has measured, to `out`.
///
/// # Errors
/// `Invalid` if they are other ids by now: another thread may write to the memory of an Arrow array.
fn fill<T: Copy + Into<u32>>(vocabulary: &Vocabulary, ids: &[T], mut out: &mut [u8]) -> Result<()> {
    const AT_ONCE: usize = Vocabulary::SLACK;
    let changed = || Error::invalid("the ids changed while they were decoded: do not write to an array that is in use");
    for &id in ids {
        let token = vocabulary.place(id.into()).ok_or_else(changed)?;
        // Most tokens are short: copying a fixed number of bytes takes no call. What is too much is overwritten.
        match (vocabulary.slack(token.start), out.first_chunk_mut::<AT_ONCE>()) {
            (Some(from), Some(to)) if token.len() <= AT_ONCE => *to = *from,
            _ => out.get_mut(..token.len()).ok_or_else(changed)?.copy_from_slice(vocabulary.text(token.clone())),
        }
        out = &mut out[token.len()..];
    }
    if out.is_empty() { Ok(()) } else { Err(changed()) }
}

fn binary(bytes: Vec<u8>, lengths: &[usize]) -> Result<ArrayRef> {
    let lengths = lengths.iter().copied();
    if i32::try_from(bytes.len()).is_ok() {
        let offsets = OffsetBuffer::<i32>::from_lengths(lengths);
        return Ok(Arc::new(BinaryArray::try_new(offsets, Buffer::from(bytes), None)?));
    }
    let offsets = OffsetBuffer::<i64>::from_lengths(lengths);
    Ok(Arc::new(LargeBinaryArray::try_new(offsets, Buffer::from(bytes), None)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_are_others_than_those_that_were_measured_are_an_error() {
        let vocabulary = Vocabulary::of(&[b"a", b"bc", b"a long token, to be copied in a call"]);
        let (mut out, ids) = ([0; 80], [0, 1, 2, 1_u32]);
        let measured = length(&vocabulary, &ids, false, &Stop::default()).unwrap_or_default();
        assert!(fill(&vocabulary, &ids, &mut out[..measured]).is_ok());
        assert_eq!(&out[..measured], b"abca long token, to be copied in a callbc");
        for others in [[0, 1, 2, 0_u32], [0, 2, 2, 1], [2, 2, 2, 2], [0, 1, 2, 3]] {
            assert!(fill(&vocabulary, &others, &mut out[..measured]).is_err());
        }
    }
}
