//! Digests of rows, from Arrow columns.

use std::ops::Range;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{UInt16Type, UInt64Type};
use arrow_buffer::ScalarBuffer;
use arrow_schema::DataType;
use sha2::{Digest, Sha256};

use super::DigestSum;
use crate::arrays::{byte_slices, integers, lists};
use crate::pieces::{on_threads, pieces};
use crate::{Error, Result};

/// The columns that say which document a row is.
pub struct Rows<'a> {
    /// SHA-256 of the document, 64 lower-case hexadecimal digits; a string array.
    pub doc_id: &'a dyn Array,
    /// A string array.
    pub project: &'a dyn Array,
    /// A string array.
    pub path: &'a dyn Array,
}

/// The columns that a row of the dataset has besides.
pub struct DatasetRows<'a> {
    /// The document's length; a u64 array.
    pub num_bytes: &'a dyn Array,
    /// A list array of u16 or u32.
    pub token_ids: &'a dyn Array,
    /// A list array of u16.
    pub platform_ids: &'a dyn Array,
}

/// Returns the sum of the row digests of a corpus: document, project and path; with up to `threads` threads.
///
/// # Errors
/// `Invalid`, naming the column and the row, for a wrong type, a null, unequal lengths, or a `doc_id` that is none.
pub fn corpus_digest_sum(rows: &Rows<'_>, threads: usize) -> Result<DigestSum> {
    sum_rows(rows, threads, |_| 0, |_, _| Ok(()))
}

/// Returns the sum of the row digests of a dataset, with up to `threads` threads.
///
/// # Errors
/// As [`corpus_digest_sum`].
pub fn dataset_digest_sum(rows: &Rows<'_>, dataset: &DatasetRows<'_>, threads: usize) -> Result<DigestSum> {
    let num_bytes = dataset.num_bytes;
    if *num_bytes.data_type() != DataType::UInt64 || num_bytes.null_count() > 0 {
        return Err(Error::invalid(format!(
            "num_bytes must be a uint64 array without nulls, not {}",
            num_bytes.data_type()
        )));
    }
    let tokens = IdLists::new(dataset.token_ids, "token_ids")?;
    let platforms = IdLists::new(dataset.platform_ids, "platform_ids")?;
    for (name, length) in
        [("num_bytes", num_bytes.len()), ("token_ids", tokens.len()), ("platform_ids", platforms.len())]
    {
        same_length(name, length, rows.doc_id.len())?;
    }
    let more = |row: usize, parts: &mut Vec<u8>| {
        parts.extend_from_slice(&num_bytes.as_primitive::<UInt64Type>().value(row).to_le_bytes());
        parts.extend_from_slice(&(tokens.length(row) as u32).to_le_bytes());
        tokens.append(row, parts);
        parts.extend_from_slice(&(platforms.length(row) as u32).to_le_bytes());
        for id in platforms.row(row) {
            let id = u16::try_from(id)
                .map_err(|_| Error::invalid(format!("platform_ids: {id} in row {row} is no 16-bit number")))?;
            parts.extend_from_slice(&id.to_le_bytes());
        }
        Ok(())
    };
    sum_rows(rows, threads, |row| tokens.length(row), more)
}

/// A list column of ids.
struct IdLists {
    offsets: Vec<usize>,
    ids: TokenIds,
}

/// Ids as they are stored, where that is the usual way.
enum TokenIds {
    Narrow(ScalarBuffer<u16>),
    Wide(Vec<u32>),
}

impl IdLists {
    fn new(array: &dyn Array, what: &str) -> Result<Self> {
        let lists = lists(array, what)?;
        let ids = match lists.values.as_primitive_opt::<UInt16Type>() {
            Some(narrow) if narrow.null_count() == 0 => TokenIds::Narrow(narrow.values().clone()),
            _ => TokenIds::Wide(integers(&lists.values, what)?),
        };
        Ok(Self { ids, offsets: lists.offsets })
    }

    fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    fn range(&self, row: usize) -> Range<usize> {
        self.offsets[row]..self.offsets[row + 1]
    }

    fn length(&self, row: usize) -> usize {
        self.range(row).len()
    }

    fn row(&self, row: usize) -> impl Iterator<Item = u32> {
        self.range(row).map(|index| match &self.ids {
            TokenIds::Narrow(ids) => u32::from(ids[index]),
            TokenIds::Wide(ids) => ids[index],
        })
    }

    /// Appends the ids of a row, as 32-bit numbers.
    fn append(&self, row: usize, parts: &mut Vec<u8>) {
        let (before, range) = (parts.len(), self.range(row));
        parts.resize(before + range.len() * size_of::<u32>(), 0);
        let (places, _) = parts[before..].as_chunks_mut();
        match &self.ids {
            TokenIds::Narrow(ids) => put(places, ids[range].iter().map(|&id| u32::from(id))),
            TokenIds::Wide(ids) => put(places, ids[range].iter().copied()),
        }
    }
}

fn put(places: &mut [[u8; 4]], ids: impl Iterator<Item = u32>) {
    for (place, id) in places.iter_mut().zip(ids) {
        *place = id.to_le_bytes();
    }
}

/// Sums the digests of rows, of about `size` each; `more` appends what a row has after its names.
fn sum_rows(
    rows: &Rows<'_>,
    threads: usize,
    size: impl Fn(usize) -> usize,
    more: impl Fn(usize, &mut Vec<u8>) -> Result<()> + Sync,
) -> Result<DigestSum> {
    let doc_ids = byte_slices(rows.doc_id, "doc_id")?;
    let names = [("project", byte_slices(rows.project, "project")?), ("path", byte_slices(rows.path, "path")?)];
    for (what, column) in &names {
        same_length(what, column.len(), doc_ids.len())?;
    }
    let sum_piece = |piece: Range<usize>| {
        let (mut sum, mut parts) = (DigestSum::default(), Vec::new());
        for row in piece {
            parts.clear();
            parts.extend_from_slice(&from_hex(doc_ids[row]).ok_or_else(|| {
                Error::invalid(format!(
                    "doc_id {:?} in row {row} is not 64 lower-case hexadecimal digits",
                    String::from_utf8_lossy(doc_ids[row])
                ))
            })?);
            for (_, column) in &names {
                parts.extend_from_slice(&(column[row].len() as u32).to_le_bytes());
                parts.extend_from_slice(column[row]);
            }
            more(row, &mut parts)?;
            sum.add(Sha256::digest(&parts).into());
        }
        Ok(sum)
    };
    let sums = on_threads(threads, pieces((0..doc_ids.len()).map(&size), threads), sum_piece)?;
    Ok(sums.into_iter().fold(DigestSum::default(), |mut total, sum| {
        total.add(sum.to_bytes());
        total
    }))
}

fn same_length(what: &str, length: usize, expected: usize) -> Result<()> {
    if length == expected {
        return Ok(());
    }
    Err(Error::invalid(format!("{what} has {length} rows, doc_id has {expected}")))
}

fn from_hex(digits: &[u8]) -> Option<[u8; 32]> {
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let digits: &[u8; 64] = digits.try_into().ok()?;
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = value(pair[0])? << 4 | value(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::from_hex;

    #[test]
    fn hexadecimal_digits_are_64_and_lower_case() {
        let digits = "0123456789abcdef".repeat(4);
        assert_eq!(from_hex(digits.as_bytes()).map(|bytes| bytes[7]), Some(0xEF));
        for wrong in [digits.to_uppercase(), digits[1..].into(), format!("{digits}0"), digits.replace('f', "g")] {
            assert_eq!(from_hex(wrong.as_bytes()), None);
        }
    }
}
