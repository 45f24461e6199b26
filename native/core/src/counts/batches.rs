//! A sorted run that comes as Arrow batches.

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, BinaryArray, RecordBatch, RecordBatchReader, UInt64Array};
use arrow_schema::DataType;

use super::head::{Head, prefix};
use crate::{Error, ErrorKind, Result};

/// A reader of batches with the columns word (binary) and count (u64), sorted by word.
pub(super) struct Batches {
    /// For messages.
    number: usize,
    reader: Box<dyn RecordBatchReader + Send>,
    words: BinaryArray,
    counts: UInt64Array,
    row: usize,
    /// The last word of the batch before.
    before: Option<Vec<u8>>,
}

impl Batches {
    /// Reads a run; the first word is current.
    pub(super) fn new(number: usize, reader: Box<dyn RecordBatchReader + Send>) -> Result<Self> {
        let schema = reader.schema();
        for (name, wanted) in [("word", DataType::Binary), ("count", DataType::UInt64)] {
            let found = schema.field_with_name(name).map(|field| field.data_type().clone()).ok();
            if found.as_ref() != Some(&wanted) {
                let found = found.map_or("missing".to_owned(), |found| found.to_string());
                return Err(Error::invalid(format!("run {number}: column {name:?} is {found}; give {wanted}")));
            }
        }
        let (words, counts) = (BinaryArray::new_null(0), UInt64Array::new_null(0));
        let mut batches = Self { number, reader, words, counts, row: 0, before: None };
        batches.read_batch()?;
        Ok(batches)
    }

    pub(super) fn head(&self) -> Head {
        if self.row < self.words.len() { Head::new(0, prefix(self.word())) } else { Head::END }
    }

    pub(super) fn word(&self) -> &[u8] {
        if self.row < self.words.len() { self.words.value(self.row) } else { &[] }
    }

    pub(super) fn count(&self) -> u64 {
        self.counts.value(self.row)
    }

    pub(super) fn advance(&mut self) -> Result<()> {
        self.row += 1;
        if self.row >= self.words.len() {
            return self.read_batch();
        }
        self.check_order(self.words.value(self.row - 1))
    }

    /// Reads on until there is a row, or no batch.
    fn read_batch(&mut self) -> Result<()> {
        if let Some(last) = self.words.len().checked_sub(1) {
            self.before = Some(self.words.value(last).to_vec());
        }
        self.row = 0;
        loop {
            let Some(batch) = self.reader.next() else {
                self.words = BinaryArray::new_null(0);
                return Ok(());
            };
            let batch = batch.map_err(|error| Error::new(ErrorKind::Io, format!("run {}: {error}", self.number)))?;
            (self.words, self.counts) = self.columns(&batch)?;
            if !self.words.is_empty() {
                return self.before.as_ref().map_or(Ok(()), |before| self.check_order(before));
            }
        }
    }

    fn columns(&self, batch: &RecordBatch) -> Result<(BinaryArray, UInt64Array)> {
        let words = batch.column_by_name("word").and_then(|column| column.as_binary_opt::<i32>());
        let counts = batch.column_by_name("count").and_then(|column| column.as_primitive_opt::<UInt64Type>());
        match (words, counts) {
            (Some(words), Some(counts)) if words.null_count() + counts.null_count() == 0 => {
                Ok((words.clone(), counts.clone()))
            }
            _ => Err(Error::new(ErrorKind::Corrupt, format!("run {}: a null, or not its schema's types", self.number))),
        }
    }

    #[inline]
    fn check_order(&self, before: &[u8]) -> Result<()> {
        let word = self.words.value(self.row);
        if before < word {
            return Ok(());
        }
        let (number, before, word) = (self.number, before.escape_ascii(), word.escape_ascii());
        let message = format!("run {number}: \"{word}\" comes after \"{before}\"; a run is sorted and has a word once");
        Err(Error::new(ErrorKind::Corrupt, message))
    }
}
