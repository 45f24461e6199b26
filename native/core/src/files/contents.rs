//! What is found in documents that are in memory, and the columns of all findings.

use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch};
use arrow_schema::{Field, Schema};

use super::read::{Found, digest_bytes};
use crate::Result;
use crate::arrays::byte_slices;
use crate::digest::to_hex;
use crate::pieces::{on_threads, pieces};

/// Returns a row for each document of a binary array: `doc_id` (string, its SHA-256), `has_nul` (bool) and
/// `is_wide` (bool: a byte-order mark of UTF-16 or UTF-32, and a NUL byte); with up to `threads` threads.
///
/// # Errors
/// `Invalid` if the array has another type or a null; `Io` if the threads cannot be started.
pub fn digest_contents(contents: &dyn Array, threads: usize) -> Result<RecordBatch> {
    let contents = byte_slices(contents, "content")?;
    let cut = pieces(contents.iter().map(|content| content.len()), threads);
    let digest = |rows: std::ops::Range<usize>| Ok(contents[rows].iter().map(|bytes| digest_bytes(bytes)).collect());
    let found: Vec<Found> = on_threads(threads, cut, digest)?.into_iter().flat_map(|rows: Vec<_>| rows).collect();
    let (fields, columns): (Vec<_>, Vec<_>) = columns(&found).into_iter().unzip();
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}

/// Returns the columns that say what the bytes are; the digest of what was not read is empty.
pub(super) fn columns(found: &[Found]) -> Vec<(Field, ArrayRef)> {
    let mut digests = StringBuilder::with_capacity(found.len(), 64 * found.len());
    for row in found {
        digests.append_value(row.digest.map(|digest| to_hex(&digest)).unwrap_or_default());
    }
    let has_nul = found.iter().map(|row| Some(row.has_nul)).collect::<BooleanArray>();
    let is_wide = found.iter().map(|row| Some(row.is_wide)).collect::<BooleanArray>();
    let columns: [(&str, ArrayRef); 3] =
        [("doc_id", Arc::new(digests.finish())), ("has_nul", Arc::new(has_nul)), ("is_wide", Arc::new(is_wide))];
    columns.into_iter().map(|(name, column)| (Field::new(name, column.data_type().clone(), false), column)).collect()
}
