//! The columns that a detector reads and writes.

use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder, UInt16Builder};
use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};

use super::Platforms;
use crate::{Error, Result};

/// Path and content of each row.
pub(super) fn documents(batch: &RecordBatch) -> Result<Vec<(&str, &[u8])>> {
    let paths = column(batch, "path")?;
    let paths: Vec<&str> = match paths.data_type() {
        DataType::Utf8 => paths.as_string::<i32>().iter().flatten().collect(),
        DataType::LargeUtf8 => paths.as_string::<i64>().iter().flatten().collect(),
        other => return Err(wrong_type("path", other, "string or large_string")),
    };
    let contents = column(batch, "content")?;
    let contents: Vec<&[u8]> = match contents.data_type() {
        DataType::Binary => contents.as_binary::<i32>().iter().flatten().collect(),
        DataType::LargeBinary => contents.as_binary::<i64>().iter().flatten().collect(),
        other => return Err(wrong_type("content", other, "binary or large_binary")),
    };
    Ok(paths.into_iter().zip(contents).collect())
}

fn column<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a dyn Array> {
    let column = batch.column_by_name(name).ok_or_else(|| {
        let names: Vec<_> = batch.schema_ref().fields().iter().map(|field| field.name().as_str()).collect();
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

/// One row a document: `platform_ids`, `platform_info`.
pub(super) fn platforms(found: &[Platforms]) -> Result<RecordBatch> {
    let item = Field::new("item", DataType::UInt16, false);
    let mut ids = ListBuilder::new(UInt16Builder::new()).with_field(item.clone());
    let mut info = StringBuilder::new();
    for document in found {
        ids.values().append_slice(&document.ids);
        ids.append(true);
        info.append_value(&document.info);
    }
    let schema = Schema::new(vec![
        Field::new("platform_ids", DataType::List(Arc::new(item)), false),
        Field::new("platform_info", DataType::Utf8, false),
    ]);
    Ok(RecordBatch::try_new(Arc::new(schema), vec![Arc::new(ids.finish()), Arc::new(info.finish())])?)
}
