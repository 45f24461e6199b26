//! Merged words as Arrow batches.

use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, RecordBatch, RecordBatchReader, UInt16Array, UInt64Array};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};

use super::merge::Merge;
use crate::{Error, ErrorKind, Result};

/// The most bytes of a batch; a word that is longer has one to itself.
const BATCH_BYTES: usize = 8 << 20;

/// Words with counts, in batches of at most 8 MiB: partition (u16) where there are partitions, word (binary), count
/// (u64). A batch holds words of one partition; partitions come in order, words sorted bytewise, each once.
pub struct WordReader {
    merge: Merge,
    schema: SchemaRef,
    failed: bool,
}

impl WordReader {
    /// Words without their partition.
    pub(super) fn words(merge: Merge) -> Self {
        let fields = [("word", DataType::Binary), ("count", DataType::UInt64)];
        let schema = Schema::new(fields.map(|(name, kind)| Field::new(name, kind, false)).to_vec());
        Self { merge, schema: Arc::new(schema), failed: false }
    }

    /// Words with their partition.
    pub(super) fn partitioned(merge: Merge) -> Self {
        let reader = Self::words(merge);
        let partition = Arc::new(Field::new("partition", DataType::UInt16, false));
        let fields = std::iter::once(partition).chain(reader.schema.fields().iter().cloned());
        Self { schema: Arc::new(Schema::new(fields.collect::<Vec<_>>())), ..reader }
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let Some(partition) = self.merge.partition() else { return Ok(None) };
        let (mut offsets, mut values, mut counts) = (vec![0_i32], Vec::new(), Vec::new());
        while self.merge.partition() == Some(partition) {
            let bytes = values.len() + self.merge.word().len() + (counts.len() + 1) * (4 + 8 + 2);
            if bytes > BATCH_BYTES && !counts.is_empty() {
                break;
            }
            values.extend_from_slice(self.merge.word());
            offsets.push(i32::try_from(values.len()).map_err(|_| too_long(values.len()))?);
            counts.push(self.merge.count());
            self.merge.advance()?;
        }
        let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
        let words = BinaryArray::try_new(offsets, Buffer::from_vec(values), None)?;
        let mut columns: Vec<ArrayRef> = vec![Arc::new(words)];
        if self.schema.fields().len() > 2 {
            columns.insert(0, Arc::new(UInt16Array::from_value(partition as u16, counts.len())));
        }
        columns.push(Arc::new(UInt64Array::from(counts)));
        Ok(Some(RecordBatch::try_new(Arc::clone(&self.schema), columns)?))
    }
}

fn too_long(bytes: usize) -> Error {
    Error::invalid(format!("a word of {bytes} bytes; at most 2 GiB are possible: filter such documents out"))
}

impl Iterator for WordReader {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let batch = self.next_batch();
        self.failed = batch.is_err();
        batch.map_err(arrow_error).transpose()
    }
}

impl RecordBatchReader for WordReader {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

fn arrow_error(error: Error) -> ArrowError {
    match error.kind() {
        ErrorKind::Io => ArrowError::IoError(error.to_string(), std::io::Error::other(error)),
        _ => ArrowError::ExternalError(Box::new(error)),
    }
}
