//! Lines of JSONL: the texts under a few keys, as columns.
//!
//! A line is read only if it is sure that the JSON parser of Python's standard library takes it, and says the same of
//! it. Every other line is left to that parser: what is wrong with it, and values beyond what is sure.

mod line;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use arrow_array::builder::{LargeBinaryBuilder, StringBuilder};
use arrow_array::{ArrayRef, BooleanArray, RecordBatch, UInt32Array, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use memchr::memchr;

use crate::Result;
pub use line::Keys;
use line::{LineReader, Value};

/// Lines, and how far they reach.
#[derive(Debug)]
pub struct Lines {
    /// A row for each line that is not blank.
    pub rows: RecordBatch,
    /// How many lines there were, blank ones among them.
    pub lines: usize,
    /// The place behind the last one.
    pub end: usize,
}

/// Reads up to `max_lines` lines of `data` from the place `start`; the last one needs no line feed.
///
/// The columns are `line` (u32, the first is 0), `start` and `end` (u64: where it is in `data`, with its line feed),
/// `is_read` (bool), `content` (large binary, empty for what is not read), `path`, `project` and `license` (string or
/// null).
///
/// # Errors
/// `Invalid` if the columns cannot be made.
pub fn read_lines(data: &[u8], start: usize, keys: &Keys<'_>, max_lines: usize) -> Result<Lines> {
    let (mut columns, mut reader) = (Columns::default(), LineReader::new(keys));
    let (mut lines, mut end) = (0, start.min(data.len()));
    while lines < max_lines && end < data.len() {
        let first = end;
        end = memchr(b'\n', &data[first..]).map_or(data.len(), |length| first + length + 1);
        let line = &data[first..end];
        if !line.iter().all(|&byte| is_blank(byte)) {
            let is_read = reader.read(line);
            columns.push(lines as u32, first, end, is_read.then_some(&reader.values));
        }
        lines += 1;
    }
    Ok(Lines { rows: columns.finish()?, lines, end })
}

/// Whether Python strips a byte from the end of bytes.
fn is_blank(byte: u8) -> bool {
    byte == b' ' || (b'\t'..=b'\r').contains(&byte)
}

#[derive(Default)]
struct Columns {
    line: Vec<u32>,
    start: Vec<u64>,
    end: Vec<u64>,
    is_read: Vec<bool>,
    content: LargeBinaryBuilder,
    labels: [StringBuilder; 3],
}

impl Columns {
    /// Adds a line with the values that were read, in the order of `Keys`.
    fn push(&mut self, line: u32, start: usize, end: usize, values: Option<&[Value; 4]>) {
        self.line.push(line);
        self.start.push(start as u64);
        self.end.push(end as u64);
        self.is_read.push(values.is_some());
        self.content.append_value(values.and_then(|values| values[0].text()).unwrap_or_default());
        for (place, label) in self.labels.iter_mut().enumerate() {
            label.append_option(values.and_then(|values| values[place + 1].text()).filter(|text| !text.is_empty()));
        }
    }

    fn finish(mut self) -> Result<RecordBatch> {
        let [path, project, license] = &mut self.labels;
        let columns: [(&str, ArrayRef, bool); 8] = [
            ("line", Arc::new(UInt32Array::from(self.line)), false),
            ("start", Arc::new(UInt64Array::from(self.start)), false),
            ("end", Arc::new(UInt64Array::from(self.end)), false),
            ("is_read", Arc::new(BooleanArray::from(self.is_read)), false),
            ("content", Arc::new(self.content.finish()), false),
            ("path", Arc::new(path.finish()), true),
            ("project", Arc::new(project.finish()), true),
            ("license", Arc::new(license.finish()), true),
        ];
        let fields: Vec<Field> = columns
            .iter()
            .map(|(name, column, nullable)| {
                let kind: &DataType = column.data_type();
                Field::new(*name, kind.clone(), *nullable)
            })
            .collect();
        let arrays = columns.into_iter().map(|(_, column, _)| column).collect();
        Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?)
    }
}
