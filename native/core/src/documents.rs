//! The columns of a batch of documents, whatever their offset width.

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;

use crate::{Error, Result};

/// The values of a string column.
///
/// # Errors
///
/// If there is no such column, or it has another type or a null.
pub(crate) fn strings<'a>(documents: &'a RecordBatch, name: &str) -> Result<Vec<&'a str>> {
    let column = column(documents, name)?;
    match column.data_type() {
        DataType::Utf8 => Ok(column.as_string::<i32>().iter().flatten().collect()),
        DataType::LargeUtf8 => Ok(column.as_string::<i64>().iter().flatten().collect()),
        DataType::Utf8View => Ok(column.as_string_view().iter().flatten().collect()),
        other => Err(wrong_type(name, other, "string or large_string")),
    }
}

/// The values of a binary column.
///
/// # Errors
///
/// As [`strings`].
pub(crate) fn binaries<'a>(documents: &'a RecordBatch, name: &str) -> Result<Vec<&'a [u8]>> {
    let column = column(documents, name)?;
    match column.data_type() {
        DataType::Binary => Ok(column.as_binary::<i32>().iter().flatten().collect()),
        DataType::LargeBinary => Ok(column.as_binary::<i64>().iter().flatten().collect()),
        DataType::BinaryView => Ok(column.as_binary_view().iter().flatten().collect()),
        other => Err(wrong_type(name, other, "binary or large_binary")),
    }
}

fn column<'a>(documents: &'a RecordBatch, name: &str) -> Result<&'a dyn Array> {
    let column = documents.column_by_name(name).ok_or_else(|| {
        let names: Vec<_> = documents.schema_ref().fields().iter().map(|field| field.name().as_str()).collect();
        Error::invalid(format!("documents have no column {name:?}; their columns are {}", names.join(", ")))
    })?;
    if let Some(row) = (0..column.len()).find(|&row| column.is_null(row)) {
        return Err(Error::invalid(format!("row {row}: column {name:?} is null; every document has one")));
    }
    Ok(column.as_ref())
}

fn wrong_type(name: &str, found: &DataType, wanted: &str) -> Error {
    Error::invalid(format!("column {name:?} is {found}; give {wanted}"))
}
