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
        Self { merge, schema: Arc::new(words_schema()), failed: false }
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
        let mut batch = WordBatch::default();
        while self.merge.partition() == Some(partition) && batch.has_room(self.merge.word()) {
            batch.push(self.merge.word(), self.merge.count())?;
            self.merge.advance()?;
        }
        let words = batch.finish()?;
        if self.schema.fields().len() == words.num_columns() {
            return Ok(Some(words));
        }
        let mut columns = words.columns().to_vec();
        columns.insert(0, Arc::new(UInt16Array::from_value(partition as u16, words.num_rows())));
        Ok(Some(RecordBatch::try_new(Arc::clone(&self.schema), columns)?))
    }
}

/// The columns of words with counts.
pub(crate) fn words_schema() -> Schema {
    let fields = [("word", DataType::Binary), ("count", DataType::UInt64)];
    Schema::new(fields.map(|(name, kind)| Field::new(name, kind, false)).to_vec())
}

/// A batch of words with counts that is being filled.
pub(crate) struct WordBatch {
    offsets: Vec<i32>,
    values: Vec<u8>,
    counts: Vec<u64>,
}

impl Default for WordBatch {
    fn default() -> Self {
        Self { offsets: vec![0], values: Vec::new(), counts: Vec::new() }
    }
}

impl WordBatch {
    pub(crate) fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Whether a word can be added: one always can.
    #[inline]
    pub(crate) fn has_room(&self, word: &[u8]) -> bool {
        let bytes = self.values.len() + word.len() + (self.counts.len() + 1) * (4 + 8 + 2);
        bytes <= BATCH_BYTES || self.is_empty()
    }

    /// Adds a word.
    ///
    /// # Errors
    ///
    /// If it is longer than 2 GiB.
    #[inline]
    pub(crate) fn push(&mut self, word: &[u8], count: u64) -> Result<()> {
        self.values.extend_from_slice(word);
        self.offsets.push(i32::try_from(self.values.len()).map_err(|_| too_long(self.values.len()))?);
        self.counts.push(count);
        Ok(())
    }

    /// The batch: word (binary), count (u64).
    pub(crate) fn finish(self) -> Result<RecordBatch> {
        let Self { offsets, values, counts } = self;
        let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
        let words = BinaryArray::try_new(offsets, Buffer::from_vec(values), None)?;
        let columns: [ArrayRef; 2] = [Arc::new(words), Arc::new(UInt64Array::from(counts))];
        Ok(RecordBatch::try_new(Arc::new(words_schema()), columns.into())?)
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
