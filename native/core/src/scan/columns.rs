//! The columns of a batch of documents, whatever their offset width.

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;

use crate::{Error, Result};

/// The longest document that can be counted; larger ones could overflow the counters of a document.
const MAX_DOCUMENT_BYTES: usize = u32::MAX as usize;

/// The documents of a batch: project and content of each row.
///
/// # Errors
///
/// If a column is missing, has another type, or holds a null, or a document is longer than 4 GiB.
pub(super) fn documents(batch: &RecordBatch) -> Result<Vec<(&str, &[u8])>> {
    let projects = strings(column(batch, "project")?)?;
    let contents = bytes(column(batch, "content")?)?;
    if let Some(row) = contents.iter().position(|content| content.len() > MAX_DOCUMENT_BYTES) {
        let bytes = contents[row].len();
        return Err(Error::invalid(format!(
            "row {row}: a document of {bytes} bytes; at most {MAX_DOCUMENT_BYTES} are possible, filter larger ones out"
        )));
    }
    Ok(projects.into_iter().zip(contents).collect())
}

fn column<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a dyn Array> {
    let column = batch.column_by_name(name).ok_or_else(|| {
        let names: Vec<_> = batch.schema_ref().fields().iter().map(|field| field.name().as_str()).collect();
        Error::invalid(format!("documents have no column {name:?}; their columns are {}", names.join(", ")))
    })?;
    if column.null_count() > 0 {
        let row = (0..column.len()).find(|&row| column.is_null(row)).unwrap_or_default();
        return Err(Error::invalid(format!("row {row}: column {name:?} is null; every document has one")));
    }
    Ok(column.as_ref())
}

fn strings(column: &dyn Array) -> Result<Vec<&str>> {
    match column.data_type() {
        DataType::Utf8 => Ok(column.as_string::<i32>().iter().flatten().collect()),
        DataType::LargeUtf8 => Ok(column.as_string::<i64>().iter().flatten().collect()),
        DataType::Utf8View => Ok(column.as_string_view().iter().flatten().collect()),
        other => Err(Error::invalid(format!("column \"project\" is {other}; give string or large_string"))),
    }
}

fn bytes(column: &dyn Array) -> Result<Vec<&[u8]>> {
    match column.data_type() {
        DataType::Binary => Ok(column.as_binary::<i32>().iter().flatten().collect()),
        DataType::LargeBinary => Ok(column.as_binary::<i64>().iter().flatten().collect()),
        DataType::BinaryView => Ok(column.as_binary_view().iter().flatten().collect()),
        other => Err(Error::invalid(format!("column \"content\" is {other}; give binary or large_binary"))),
    }
}
