//! Reads Arrow columns: texts, ids and lists.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef};
use arrow_buffer::ArrowNativeType;
use arrow_schema::DataType;

use crate::{Error, Result};

/// Returns the values of a binary or string array; `what` names it in errors.
///
/// # Errors
/// `Invalid` if the array has another type, or a null (with its row).
pub fn byte_slices<'a>(array: &'a dyn Array, what: &str) -> Result<Vec<&'a [u8]>> {
    no_nulls(array, what)?;
    let slices = match array.data_type() {
        DataType::Binary => array.as_binary::<i32>().iter().flatten().collect(),
        DataType::LargeBinary => array.as_binary::<i64>().iter().flatten().collect(),
        DataType::BinaryView => array.as_binary_view().iter().flatten().collect(),
        DataType::Utf8 => array.as_string::<i32>().iter().flatten().map(str::as_bytes).collect(),
        DataType::LargeUtf8 => array.as_string::<i64>().iter().flatten().map(str::as_bytes).collect(),
        DataType::Utf8View => array.as_string_view().iter().flatten().map(str::as_bytes).collect(),
        other => return Err(Error::invalid(format!("{what} must be a binary or string array, not {other}"))),
    };
    Ok(slices)
}

/// Returns the values of an integer array as u32; `what` names it in errors.
///
/// # Errors
/// `Invalid` if the array has another type, a null, or a value outside u32 (with its row).
pub fn integers(array: &dyn Array, what: &str) -> Result<Vec<u32>> {
    no_nulls(array, what)?;
    match array.data_type() {
        DataType::UInt8 => narrow::<UInt8Type>(array, what),
        DataType::UInt16 => narrow::<UInt16Type>(array, what),
        DataType::UInt32 => narrow::<UInt32Type>(array, what),
        DataType::UInt64 => narrow::<UInt64Type>(array, what),
        DataType::Int32 => narrow::<Int32Type>(array, what),
        DataType::Int64 => narrow::<Int64Type>(array, what),
        DataType::Null if array.is_empty() => Ok(Vec::new()),
        other => Err(Error::invalid(format!("{what} must be an integer array, not {other}"))),
    }
}

fn narrow<T: ArrowPrimitiveType>(array: &dyn Array, what: &str) -> Result<Vec<u32>>
where
    T::Native: TryInto<u32>,
{
    let values = array.as_primitive::<T>().values().iter().enumerate();
    let narrowed = values.map(|(row, &value)| {
        value.try_into().map_err(|_| Error::invalid(format!("{what}: {value:?} at {row} is no 32-bit unsigned number")))
    });
    narrowed.collect()
}

/// A list array's offsets and the values that they point into.
pub(crate) struct Lists {
    pub(crate) offsets: Vec<usize>,
    pub(crate) values: ArrayRef,
}

/// Takes a list or large-list array apart; `what` names it in errors.
pub(crate) fn lists(array: &dyn Array, what: &str) -> Result<Lists> {
    no_nulls(array, what)?;
    let (offsets, values): (Vec<usize>, _) = match array.data_type() {
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            (list.offsets().iter().map(|offset| offset.as_usize()).collect(), Arc::clone(list.values()))
        }
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            (list.offsets().iter().map(|offset| offset.as_usize()).collect(), Arc::clone(list.values()))
        }
        other => return Err(Error::invalid(format!("{what} must be a list array, not {other}"))),
    };
    let (first, last) = (offsets.first().copied().unwrap_or(0), offsets.last().copied().unwrap_or(0));
    let offsets: Vec<_> = offsets.into_iter().map(|offset| offset - first).collect();
    // The one offset of no lists may be any number: it leads to no value.
    let values = if array.is_empty() { values.slice(0, 0) } else { values.slice(first, last - first) };
    Ok(Lists { offsets, values })
}

fn no_nulls(array: &dyn Array, what: &str) -> Result<()> {
    let first = (array.null_count() > 0).then(|| (0..array.len()).find(|&row| array.is_null(row)));
    match first.flatten() {
        Some(row) => Err(Error::invalid(format!("{what} has a null at row {row}: fill or drop it"))),
        None => Ok(()),
    }
}
