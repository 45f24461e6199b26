//! Words come back with the sums of their counts, however they were cut into runs.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{UInt16Type, UInt64Type};
use arrow_array::{ArrayRef, BinaryArray, RecordBatch, RecordBatchIterator, RecordBatchReader, UInt64Array};

use super::head::{partition, prefix};
use super::{SortedWords, Spill, WordReader, Words, merge};

type Table = Vec<(Vec<u8>, u64)>;
type Runs = Vec<Box<dyn RecordBatchReader + Send>>;

impl Words for Table {
    fn len(&self) -> usize {
        Vec::len(self)
    }

    fn for_each(&self, mut each: impl FnMut(&[u8], u64)) {
        for (word, count) in self {
            each(word, *count);
        }
    }
}

/// Pseudo-random numbers (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % bound
    }

    /// A word of few letters, so that words recur and begin alike; now and then a long one.
    fn word(&mut self) -> Vec<u8> {
        let length = if self.below(20) == 0 { 200 + self.below(3) } else { self.below(12) };
        (0..length).map(|_| [0, b'a', b'b', 0xff][self.below(4)]).collect()
    }

    fn table(&mut self, words: usize) -> Table {
        (0..self.below(words)).map(|_| (self.word(), 1 + (self.below(1 << 40) as u64))).collect()
    }
}

fn sum<'a>(tables: impl IntoIterator<Item = &'a Table>) -> BTreeMap<Vec<u8>, u64> {
    let mut sums = BTreeMap::new();
    for (word, count) in tables.into_iter().flatten() {
        *sums.entry(word.clone()).or_insert(0) += count;
    }
    sums
}

fn rows(reader: WordReader) -> Vec<(u16, Vec<u8>, u64)> {
    let mut rows = Vec::new();
    for batch in reader {
        let batch = batch.unwrap();
        let words = batch.column_by_name("word").unwrap().as_binary::<i32>();
        let counts = batch.column_by_name("count").unwrap().as_primitive::<UInt64Type>();
        let partitions = batch.column_by_name("partition").map(AsArray::as_primitive::<UInt16Type>);
        assert!(batch.num_rows() > 0 && batch.get_array_memory_size() < 9 << 20);
        assert!(partitions.is_none_or(|column| column.value(0) == column.value(batch.num_rows() - 1)));
        let row =
            |row| (partitions.map_or(0, |column| column.value(row)), words.value(row).to_vec(), counts.value(row));
        rows.extend((0..batch.num_rows()).map(row));
    }
    rows
}

fn run(rows: &[(Vec<u8>, u64)], rows_per_batch: usize) -> Box<dyn RecordBatchReader + Send> {
    let batch = |rows: &[(Vec<u8>, u64)]| {
        let words: ArrayRef = Arc::new(BinaryArray::from_iter_values(rows.iter().map(|row| &row.0)));
        let counts: ArrayRef = Arc::new(UInt64Array::from_iter_values(rows.iter().map(|row| row.1)));
        RecordBatch::try_from_iter([("word", words), ("count", counts)]).unwrap()
    };
    let schema = batch(&[]).schema();
    let batches: Vec<_> = rows.chunks(rows_per_batch).map(|rows| Ok(batch(rows))).collect();
    Box::new(RecordBatchIterator::new(batches, schema))
}

#[test]
fn what_was_written_out_and_what_was_not_add_up() {
    let mut random = Random(5);
    let folder = std::env::temp_dir();
    for runs in [0, 1, 2, 3, 31, 32, 33, 70, 1030] {
        let partitions = [1, 2, 7, 300][random.below(4)];
        let tables: Vec<_> = (0..2 * (runs + 1)).map(|_| random.table(60)).collect();
        let expected: Vec<_> = sum(&tables).into_iter().collect();
        let mut expected: Vec<_> =
            expected.into_iter().map(|(word, count)| (partition(&word, partitions) as u16, word, count)).collect();
        expected.sort();
        let mut pairs = tables.chunks(2).map(|pair| SortedWords::new(pair.to_vec(), partitions));
        let rest = pairs.next().unwrap();
        let mut spill = Spill::new(Some(folder.clone()));
        pairs.for_each(|sorted| spill.write(sorted).unwrap());
        assert_eq!(rows(spill.finish(rest).unwrap()), expected, "{runs} runs, {partitions} partitions");
        let empty = SortedWords::new(Vec::<Table>::new(), partitions);
        assert_eq!(rows(spill.finish(empty).unwrap()), [], "it starts anew");
    }
}

#[test]
fn words_that_begin_alike_are_sorted_to_their_ends() {
    let mut random = Random(13);
    let beginnings: Vec<_> = [0, 5, 8, 16, 300, 1000].map(|length| vec![b'x'; length]).into();
    let mut word = || {
        let mut word = beginnings[random.below(beginnings.len())].clone();
        word.extend((0..random.below(20)).map(|_| [0, b'x', 0xff][random.below(3)]));
        word
    };
    let table: Table = (0..20_000).map(|_| (word(), 1)).collect();
    let expected: Vec<_> = sum([&table]).into_iter().map(|(word, count)| (0, word, count)).collect();
    let halves: Vec<Table> = table.chunks(10_001).map(<[_]>::to_vec).collect();
    let sorted = SortedWords::new(halves, 1);
    assert!(rows(Spill::new(None).finish(sorted).unwrap()) == expected);
}

#[test]
fn partitions_are_those_of_zlib() {
    let partitions = [&b""[..], b"int", b"\xff\x00"].map(|word| partition(word, 1 << 16));
    assert_eq!(partitions, [0, 0xdab1, 0xef8d]);
}

#[test]
fn prefixes_compare_as_the_words_do() {
    let mut random = Random(9);
    for _ in 0..10_000 {
        let (left, right) = (random.word(), random.word());
        if prefix(&left) != prefix(&right) {
            assert_eq!(prefix(&left).cmp(&prefix(&right)), left.cmp(&right), "{left:?} {right:?}");
        }
    }
}

#[test]
fn runs_of_batches_are_merged_whatever_their_number_and_cut() {
    let mut random = Random(3);
    for number in 0..40 {
        let tables: Vec<_> = (0..number).map(|_| random.table(100)).collect();
        let runs: Runs = tables
            .iter()
            .map(|table| run(&sum([table]).into_iter().collect::<Vec<_>>(), 1 + random.below(30)))
            .collect();
        let expected: Vec<_> = sum(&tables).into_iter().map(|(word, count)| (0, word, count)).collect();
        assert_eq!(rows(merge(runs).unwrap()), expected, "{number} runs");
    }
}

#[test]
fn batches_are_bounded_and_a_longer_word_has_one_to_itself() {
    let long = vec![b'x'; 9 << 20];
    let mut table: Table = (0..700_000_u64).map(|number| (number.to_be_bytes().to_vec(), 1)).collect();
    table.push((long.clone(), 1));
    let batches: Vec<_> = merge(vec![run(&table, table.len())]).unwrap().map(Result::unwrap).collect();
    let row_counts: Vec<_> = batches.iter().map(RecordBatch::num_rows).collect();
    assert_eq!(row_counts.iter().sum::<usize>(), table.len());
    assert_eq!((row_counts.len(), row_counts.last()), (3, Some(&1)));
}

#[test]
fn a_run_that_is_not_sorted_is_refused_by_its_number_and_word() {
    let rows = |words: &[&str]| words.iter().map(|word| (word.as_bytes().to_vec(), 1)).collect::<Vec<_>>();
    for (words, rows_per_batch) in
        [(["a", "c", "b"], 9), (["a", "c", "b"], 2), (["a", "b", "b"], 9), (["a", "b", "b"], 1)]
    {
        let mut reader = merge(vec![run(&rows(&["z"]), 1), run(&rows(&words), rows_per_batch)]).unwrap();
        let error = reader.next().unwrap().unwrap_err().to_string();
        assert!(error.contains(r#"run 1: "b" comes after "#), "{error}");
        assert!(reader.next().is_none());
    }
}

#[test]
fn a_run_of_other_columns_is_refused() {
    let texts: ArrayRef = Arc::new(UInt64Array::from(vec![1]));
    let batch = RecordBatch::try_from_iter([("word", texts)]).unwrap();
    let reader = RecordBatchIterator::new([Ok(batch.clone())], batch.schema());
    let error = merge(vec![Box::new(reader)]).err().unwrap().to_string();
    assert_eq!(error, "run 0: column \"word\" is UInt64; give Binary");
}
