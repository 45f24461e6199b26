//! Where the bytes of each token begin: the sums of the tokens' lengths, as decoding gives back the text.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Int64Array, LargeListArray, ListArray};
use arrow_buffer::{ArrowNativeType, OffsetBuffer};
use arrow_schema::{DataType, Field};

use crate::arrays::{integers, lists};
use crate::encode::load::Vocabulary;
use crate::{Error, Result};

/// The offsets of one array of ids, or of each list of a list array.
pub(crate) fn byte_offsets(vocabulary: &Vocabulary, array: &dyn Array) -> Result<ArrayRef> {
    if !matches!(array.data_type(), DataType::List(_) | DataType::LargeList(_)) {
        let ids = integers(array, "ids")?;
        let mut offsets = Vec::with_capacity(ids.len() + 1);
        append(vocabulary, &ids, &mut offsets)?;
        return Ok(Arc::new(Int64Array::from(offsets)));
    }
    let lists = lists(array, "ids")?;
    let ids = integers(&lists.values, "ids")?;
    let mut offsets = Vec::with_capacity(ids.len() + array.len());
    for (row, range) in lists.offsets.windows(2).enumerate() {
        append(vocabulary, &ids[range[0]..range[1]], &mut offsets)
            .map_err(|error| Error::invalid(format!("row {row}: {error}")))?;
    }
    let field = Arc::new(Field::new("item", DataType::Int64, true));
    let lengths = lists.offsets.windows(2).map(|range| range[1] - range[0] + 1);
    let is_large = i32::try_from(offsets.len()).is_err();
    let offsets = Arc::new(Int64Array::from(offsets));
    if is_large {
        return Ok(Arc::new(LargeListArray::try_new(field, OffsetBuffer::from_lengths(lengths), offsets, None)?));
    }
    Ok(Arc::new(ListArray::try_new(field, OffsetBuffer::from_lengths(lengths), offsets, None)?))
}

fn append(vocabulary: &Vocabulary, ids: &[u32], offsets: &mut Vec<i64>) -> Result<()> {
    let mut at = 0;
    offsets.push(0);
    for (place, &id) in ids.iter().enumerate() {
        let bytes = vocabulary.bytes(id).map_err(|error| Error::invalid(format!("{error} (at {place})")))?;
        at += bytes.len();
        offsets.push(i64::usize_as(at));
    }
    Ok(())
}
