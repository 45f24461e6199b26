//! Words and seeds out of Arrow batches.

use std::hash::BuildHasher;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use foldhash::fast::FixedState;
use hashbrown::HashTable;

use super::{Seed, Word};
use crate::{Error, Result};

/// Reads the words of all batches, each once, with the sum of its counts. Words of count 0 are left out.
pub(super) fn words(batches: &[RecordBatch]) -> Result<Vec<Word<'_>>> {
    let mut words = Distinct { list: Vec::new(), indices: HashTable::new(), hasher: FixedState::default() };
    for batch in batches {
        let counts = column(batch, "count")?;
        let Some(counts) = counts.as_primitive_opt::<UInt64Type>() else {
            return Err(Error::invalid(format!(
                "column `count` of the words is {}: uint64 is wanted",
                counts.data_type()
            )));
        };
        for (bytes, &count) in binary(batch, "word")?.zip(counts.values()).filter(|(_, count)| **count > 0) {
            words.add(bytes, count)?;
        }
    }
    Ok(words.list)
}

/// Reads the seeds.
pub(super) fn seeds(batch: &RecordBatch) -> Result<Vec<Seed>> {
    let atomic = column(batch, "atomic")?;
    let Some(atomic) = atomic.as_boolean_opt() else {
        return Err(Error::invalid(format!("column `atomic` of the seeds is {}: bool is wanted", atomic.data_type())));
    };
    binary(batch, "token")?.zip(atomic.values()).map(|(token, atomic)| Seed::new(token.to_vec(), atomic)).collect()
}

struct Distinct<'a> {
    list: Vec<Word<'a>>,
    indices: HashTable<u32>,
    hasher: FixedState,
}

impl<'a> Distinct<'a> {
    fn add(&mut self, bytes: &'a [u8], count: u64) -> Result<()> {
        let Self { list: words, indices, hasher } = self;
        let hash = hasher.hash_one(bytes);
        if let Some(&index) = indices.find(hash, |&index| words[index as usize].bytes == bytes) {
            let sum = &mut words[index as usize].count;
            *sum = sum.checked_add(count).ok_or_else(|| {
                Error::invalid(format!("the counts of word \"{}\" add up to 2^64 or more", bytes.escape_ascii()))
            })?;
            return Ok(());
        }
        let index = u32::try_from(words.len()).map_err(|_| Error::invalid("2^32 or more distinct words"))?;
        words.push(Word { bytes, count });
        indices.insert_unique(hash, index, |&index| hasher.hash_one(words[index as usize].bytes));
        Ok(())
    }
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

fn binary<'a>(batch: &'a RecordBatch, name: &str) -> Result<Box<dyn Iterator<Item = &'a [u8]> + 'a>> {
    let column = column(batch, name)?;
    match column.data_type() {
        DataType::Binary => Ok(Box::new(column.as_binary::<i32>().iter().flatten())),
        DataType::LargeBinary => Ok(Box::new(column.as_binary::<i64>().iter().flatten())),
        other => Err(Error::invalid(format!("column `{name}` is {other}: binary or large_binary is wanted"))),
    }
}
