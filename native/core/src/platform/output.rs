//! The columns that a detector writes.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::builder::{ListBuilder, StringBuilder, UInt16Builder};
use arrow_schema::{DataType, Field, Schema};

use super::Platforms;
use crate::Result;

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
