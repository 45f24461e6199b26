//! Counting words alone gives what the splitter gives, in an order of its own.

use std::collections::BTreeMap;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;

use super::super::WordCounter;
use super::{Documents, batch, twin};
use crate::pattern::Pattern;

fn count(counter: &mut WordCounter, documents: Documents, rows_per_batch: usize) -> Vec<(Vec<u8>, u64)> {
    for rows in documents.chunks(rows_per_batch) {
        counter.add(&batch(rows)).unwrap();
    }
    let mut rows = Vec::new();
    for batch in counter.finish().unwrap() {
        let batch = batch.unwrap();
        assert!(batch.num_rows() > 0);
        let counts = batch.column(1).as_primitive::<UInt64Type>().values();
        rows.extend(
            batch.column(0).as_binary::<i32>().iter().flatten().map(<[u8]>::to_vec).zip(counts.iter().copied()),
        );
    }
    rows
}

/// Documents with so many words that they are put in order in several ranges.
fn documents() -> Vec<(String, Vec<u8>)> {
    let mut documents = twin::documents(5, 2000);
    for (at, (_, text)) in documents.iter_mut().enumerate() {
        text.extend((0..150).flat_map(|word| format!(" w{}\n", at * word % 170_003 * word).into_bytes()));
        text.extend(format!("a line that is too long for its slot, number {}\n", at % 700).repeat(3).into_bytes());
    }
    documents
}

#[test]
fn words_and_lines_are_those_of_the_splitter_for_any_threads_and_batches() {
    let owned = documents();
    let documents: Vec<_> = owned.iter().map(|(project, text)| (project.as_str(), text.as_slice())).collect();
    for pattern in Pattern::ALL {
        let several_ranges = ["cpp-words-1", "cpp-lines-1"].contains(&pattern.name());
        let documents = if several_ranges { &documents[..] } else { &documents[..400] };
        let mut expected = BTreeMap::new();
        for (_, text) in documents {
            pattern.split(text, |word| *expected.entry(word.to_vec()).or_insert(0) += 1);
        }
        let in_order = count(&mut WordCounter::new(pattern.name(), 1).unwrap(), documents, documents.len());
        assert_eq!(in_order.len(), expected.len(), "every word stands once");
        assert_eq!(in_order.iter().cloned().collect::<BTreeMap<_, _>>(), expected);
        for (threads, rows) in [(1, 1), (2, 100), (5, documents.len() - 1)] {
            let mut counter = WordCounter::new(pattern.name(), threads).unwrap();
            let found = count(&mut counter, documents, rows);
            assert!(found == in_order, "{} on {threads} threads, {rows} rows a batch", pattern.name());
            assert_eq!(count(&mut counter, &[], 1), [], "it starts anew");
        }
    }
}

#[test]
fn what_cannot_be_counted_is_refused() {
    let error = WordCounter::new("cpp-words", 1).err().unwrap().to_string();
    assert!(error.contains("cpp-words-1") && error.contains("cpp-lines-1"), "{error}");
    let error = WordCounter::new("cpp-words-1", 0).err().unwrap().to_string();
    assert!(error.starts_with("threads is 0"), "{error}");
}
