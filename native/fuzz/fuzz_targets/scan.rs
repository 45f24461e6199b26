//! Words and lines that a scan counts are those into which the patterns cut the text, and other threads, other batches
//! and a memory that is too small change nothing in what it counts.

#![no_main]

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{ArrayRef, BinaryArray, RecordBatch, StringArray};
use cppmill_core::counts::WordReader;
use cppmill_core::pattern::Pattern;
use cppmill_core::scan::{Budget, Counts, Scanner};
use libfuzzer_sys::fuzz_target;

const PATTERNS: [(&str, &str); 2] = [("cpp-words-1", "cpp-lines-1"), ("cpp-words-2", "cpp-lines-2")];
const FOUND: &str = r#""candidates": [
    {"term": "SELECT", "category": "sql", "match": "sql_string"}, {"term": "CHECK", "category": "test", "match": "ident"},
    {"term": "read", "category": "begin", "match": "prefix"}, {"term": "$match", "category": "mongo", "match": "dollar"},
    {"term": "std::read", "category": "chain", "match": "qualified"}],
  "morphemes": [{"morpheme": "re", "position": "prefix"}, {"morpheme": "read", "position": "component"}],
  "families": true"#;

type Totals = BTreeMap<Vec<u8>, u64>;

fn batch(documents: &[&[u8]]) -> RecordBatch {
    let projects: ArrayRef = Arc::new(StringArray::from_iter_values(documents.iter().map(|_| "p")));
    let contents: ArrayRef = Arc::new(BinaryArray::from_iter_values(documents));
    RecordBatch::try_from_iter([("project", projects), ("content", contents)]).expect("two columns")
}

fn counts(config: &str, documents: &[&[u8]], threads: usize, memory_bytes: usize) -> Counts {
    let budget = Budget { memory_bytes, spill_dir: Some(std::env::temp_dir()) };
    let mut scanner = Scanner::new(config, threads, budget).expect("a configuration");
    for part in documents.chunks(2) {
        scanner.add(&batch(part)).expect("documents");
    }
    scanner.finish().expect("counts")
}

fn totals(words: WordReader) -> Totals {
    let mut found = Totals::new();
    for batch in words {
        let batch = batch.expect("words");
        let texts = batch.column_by_name("word").expect("a column").as_binary::<i32>();
        let numbers = batch.column_by_name("count").expect("a column").as_primitive::<UInt64Type>();
        for (text, number) in texts.iter().zip(numbers.values()) {
            *found.entry(text.expect("a word").to_vec()).or_default() += number;
        }
    }
    found
}

fn split(pattern: &str, documents: &[&[u8]]) -> Totals {
    let pattern = Pattern::ALL.into_iter().find(|it| it.name() == pattern).expect("a pattern");
    let mut found = Totals::new();
    for document in documents {
        pattern.split(document, |word| *found.entry(word.to_vec()).or_default() += 1);
    }
    found
}

fuzz_target!(|data: &[u8]| {
    let (left, right) = data.split_at(data.len() / 2);
    let documents = [data, left, right];
    for (words, lines) in PATTERNS {
        let config = format!(r#"{{"pattern": "{words}", "unit_pattern": "{lines}", {FOUND}}}"#);
        let plenty = counts(&config, &documents, 1, 1 << 30);
        let little = counts(&config, &documents, 2, 1 << 12);
        for (one, other) in [
            (&plenty.terms, &little.terms),
            (&plenty.morphemes, &little.morphemes),
            (&plenty.namespaces, &little.namespaces),
            (&plenty.statistics, &little.statistics),
        ] {
            assert_eq!(one, other);
        }
        assert_eq!(plenty.families, little.families);
        let expected = split(words, &documents);
        assert_eq!(totals(plenty.words), expected);
        assert_eq!(totals(little.words), expected);
        assert_eq!(plenty.lines.map(totals), Some(split(lines, &documents)));
        assert_eq!(little.lines.map(totals), Some(split(lines, &documents)));
    }
});
