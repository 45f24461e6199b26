//! Texts and seeds out of Arrow batches.

use arrow_array::cast::AsArray;
use arrow_array::types::{UInt16Type, UInt64Type};
use arrow_array::{Array, BinaryArray, LargeBinaryArray, RecordBatch};
use arrow_schema::DataType;

use super::seed::Seed;
use crate::{Error, Result};

/// The texts of a batch with their counts.
pub(super) struct Rows<'a> {
    texts: Binary<'a>,
    counts: &'a [u64],
    /// The group of each text; none if they are all of one.
    groups: Option<&'a [u16]>,
}

enum Binary<'a> {
    Small(&'a BinaryArray),
    Large(&'a LargeBinaryArray),
}

impl<'a> Rows<'a> {
    /// Reads the columns `word` and `count`, and `group` if there is one.
    pub(super) fn new(batch: &'a RecordBatch) -> Result<Self> {
        let counts = column(batch, "count")?;
        let Some(counts) = counts.as_primitive_opt::<UInt64Type>() else {
            return Err(Error::invalid(format!(
                "column `count` of the words is {}: uint64 is wanted",
                counts.data_type()
            )));
        };
        Ok(Self { texts: binary(batch, "word")?, counts: counts.values(), groups: groups(batch)? })
    }

    /// The number of rows.
    pub(super) fn len(&self) -> usize {
        self.counts.len()
    }

    /// Adds the bytes of all texts, each times its count, to those of earlier batches: no token or pair occurs as often.
    ///
    /// # Errors
    /// If 64 bits do not hold the sum.
    pub(super) fn add_bytes(&self, before: u64) -> Result<u64> {
        let mut rows = (0..self.len()).map(|row| self.get(row));
        let sum = rows.try_fold(before, |sum, (text, count, _)| count.checked_mul(text.len() as u64)?.checked_add(sum));
        sum.ok_or_else(|| Error::invalid("the texts, each times its count, have more bytes than 64-bit counts hold"))
    }

    /// Whether any text has a count above 0.
    pub(super) fn occur(&self) -> bool {
        self.counts.iter().any(|&count| count > 0)
    }

    /// The text, the count and the group of a row.
    #[inline]
    pub(super) fn get(&self, row: usize) -> (&'a [u8], u64, u16) {
        (self.texts.get(row), self.counts[row], self.groups.map_or(0, |groups| groups[row]))
    }
}

impl<'a> Binary<'a> {
    #[inline]
    fn get(&self, row: usize) -> &'a [u8] {
        match self {
            Self::Small(texts) => texts.value(row),
            Self::Large(texts) => texts.value(row),
        }
    }
}

/// Reads the seeds.
pub(super) fn seeds(batch: &RecordBatch) -> Result<Vec<Seed>> {
    let atomic = column(batch, "atomic")?;
    let Some(atomic) = atomic.as_boolean_opt() else {
        return Err(Error::invalid(format!("column `atomic` of the seeds is {}: bool is wanted", atomic.data_type())));
    };
    let tokens = binary(batch, "token")?;
    (0..batch.num_rows()).map(|row| Seed::new(tokens.get(row).to_vec(), atomic.value(row))).collect()
}

/// Reads merges: the columns `left` and `right`.
pub(super) fn merges(batch: &RecordBatch) -> Result<Vec<(&[u8], &[u8])>> {
    let (left, right) = (binary(batch, "left")?, binary(batch, "right")?);
    Ok((0..batch.num_rows()).map(|row| (left.get(row), right.get(row))).collect())
}

fn groups(batch: &RecordBatch) -> Result<Option<&[u16]>> {
    if batch.column_by_name("group").is_none() {
        return Ok(None);
    }
    let groups = column(batch, "group")?;
    let Some(groups) = groups.as_primitive_opt::<UInt16Type>() else {
        return Err(Error::invalid(format!("column `group` of the words is {}: uint16 is wanted", groups.data_type())));
    };
    Ok(Some(groups.values()))
}

fn column<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a dyn Array> {
    let Some(column) = batch.column_by_name(name) else {
        let names: Vec<&str> = batch.schema_ref().fields().iter().map(|field| field.name().as_str()).collect();
        return Err(Error::invalid(format!("no column `{name}` among {names:?}")));
    };
    match column.null_count() {
        0 => Ok(column.as_ref()),
        nulls => Err(Error::invalid(format!("column `{name}` has {nulls} nulls: none are allowed"))),
    }
}

fn binary<'a>(batch: &'a RecordBatch, name: &str) -> Result<Binary<'a>> {
    let column = column(batch, name)?;
    match column.data_type() {
        DataType::Binary => Ok(Binary::Small(column.as_binary())),
        DataType::LargeBinary => Ok(Binary::Large(column.as_binary())),
        other => Err(Error::invalid(format!("column `{name}` is {other}: binary or large_binary is wanted"))),
    }
}
