//! From token ids back to bytes.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BinaryArray, LargeBinaryArray};
use arrow_buffer::{Buffer, OffsetBuffer};

use super::input::{integers, lists};
use super::vocabulary::Vocabulary;
use crate::{Error, Result, Stop};

/// After so many ids it is seen whether to stop.
const IDS_AT_ONCE: usize = 1 << 16;

/// Appends the bytes of `ids` to `out`.
pub(super) fn decode_into(
    vocabulary: &Vocabulary,
    ids: &[u32],
    skip_control: bool,
    stop: &Stop,
    out: &mut Vec<u8>,
) -> Result<()> {
    for (place, &id) in ids.iter().enumerate() {
        if place % IDS_AT_ONCE == 0 {
            stop.check()?;
        }
        let bytes = vocabulary.bytes(id).map_err(|error| Error::invalid(format!("{error} (at {place})")))?;
        if bytes.is_empty() && !skip_control {
            let name = vocabulary.name(id).unwrap_or_default();
            return Err(Error::invalid(format!(
                "token id {id} at {place} is {name:?}, which stands for no text: pass skip_control=True to leave such ids out"
            )));
        }
        out.extend_from_slice(bytes);
    }
    Ok(())
}

/// Decodes every list of `array`.
pub(super) fn decode_batch(
    vocabulary: &Vocabulary,
    array: &dyn Array,
    skip_control: bool,
    stop: &Stop,
) -> Result<ArrayRef> {
    let lists = lists(array, "ids")?;
    let ids = integers(&lists.values, "ids")?;
    let mut bytes = Vec::with_capacity(ids.len() * 4);
    let mut lengths = Vec::with_capacity(array.len());
    for (row, range) in lists.offsets.windows(2).enumerate() {
        let before = bytes.len();
        decode_into(vocabulary, &ids[range[0]..range[1]], skip_control, stop, &mut bytes)
            .map_err(|error| Error::invalid(format!("row {row}: {error}")))?;
        lengths.push(bytes.len() - before);
    }
    if i32::try_from(bytes.len()).is_ok() {
        let offsets = OffsetBuffer::<i32>::from_lengths(lengths);
        return Ok(Arc::new(BinaryArray::try_new(offsets, Buffer::from(bytes), None)?));
    }
    let offsets = OffsetBuffer::<i64>::from_lengths(lengths);
    Ok(Arc::new(LargeBinaryArray::try_new(offsets, Buffer::from(bytes), None)?))
}
