//! The scanner against tables, and against itself for other threads and batches.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod counter;
mod spilling;
mod twin;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{UInt16Type, UInt64Type};
use arrow_array::{ArrayRef, BinaryArray, LargeBinaryArray, LargeStringArray, RecordBatch, StringArray};

use super::{Budget, Scanner};
use crate::ErrorKind;
use crate::counts::WordReader;

const CONFIG: &str = r#"{"pattern": "cpp-words-1", "unit_pattern": "cpp-lines-1",
  "candidates": [
    {"term": "SELECT", "category": "sql", "match": "sql_string"},
    {"term": "CHECK", "category": "sql", "match": "sql_string"},
    {"term": "CHECK", "category": "test", "match": "ident"},
    {"term": "enum", "category": "proto", "match": "ident"},
    {"term": "include", "category": "proto", "match": "ident"},
    {"term": "cudaMalloc", "category": "cuda", "match": "ident"},
    {"term": "read", "category": "begin", "match": "prefix"},
    {"term": "READER_", "category": "begin", "match": "prefix"},
    {"term": "$match", "category": "mongo", "match": "dollar"},
    {"term": "std::read", "category": "chain", "match": "qualified"},
    {"term": "std::detail::x", "category": "chain", "match": "qualified"}],
  "morphemes": [
    {"morpheme": "re", "position": "prefix"},
    {"morpheme": "er", "position": "suffix"},
    {"morpheme": "read", "position": "cpp_stem"},
    {"morpheme": "read", "position": "component"},
    {"morpheme": "buffer", "position": "component"}],
  "families": true}"#;

type Documents<'a> = &'a [(&'a str, &'a [u8])];
/// Counts with the words and lines of all batches.
#[derive(Debug, PartialEq)]
struct Counts {
    words: BTreeMap<Vec<u8>, u64>,
    lines: BTreeMap<Vec<u8>, u64>,
    terms: RecordBatch,
    morphemes: RecordBatch,
    namespaces: RecordBatch,
    /// Hits, documents and names.
    families: BTreeMap<String, [u64; 3]>,
    statistics: RecordBatch,
}

type Table = BTreeMap<Vec<String>, (u64, u64)>;

fn batch(documents: Documents) -> RecordBatch {
    let projects = StringArray::from_iter_values(documents.iter().map(|it| it.0));
    let contents = BinaryArray::from_iter_values(documents.iter().map(|it| it.1));
    let columns = [("project", Arc::new(projects) as ArrayRef), ("content", Arc::new(contents))];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn scanner(threads: usize) -> Scanner {
    Scanner::new(CONFIG, threads, Budget::default()).unwrap()
}

fn scan(documents: Documents, threads: usize, rows_per_batch: usize) -> Counts {
    scan_with(scanner(threads), documents, rows_per_batch)
}

fn scan_with(mut scanner: Scanner, documents: Documents, rows_per_batch: usize) -> Counts {
    for rows in documents.chunks(rows_per_batch) {
        scanner.add(&batch(rows)).unwrap();
    }
    finish(&mut scanner)
}

/// Reads all words and lines, and checks that they are in order.
fn finish(scanner: &mut Scanner) -> Counts {
    let super::Counts { words, lines, terms, morphemes, namespaces, families, statistics } = scanner.finish().unwrap();
    let [words, lines] = [words, lines.unwrap()].map(read);
    let families = read_families(&families.unwrap());
    Counts { words, lines, terms, morphemes, namespaces, families, statistics }
}

fn read_families(batch: &RecordBatch) -> BTreeMap<String, [u64; 3]> {
    let number = |column: usize, row: usize| batch.column(column).as_primitive::<UInt64Type>().value(row);
    let names = batch.column(0).as_string::<i32>().iter().map(|name| name.unwrap().to_owned());
    let rows: Vec<_> = names.enumerate().map(|(row, name)| (name, [1, 2, 3].map(|at| number(at, row)))).collect();
    assert!(rows.is_sorted_by(|a, b| a.0 < b.0), "rows are sorted and distinct");
    rows.into_iter().collect()
}

fn read(reader: WordReader) -> BTreeMap<Vec<u8>, u64> {
    let mut rows = Vec::new();
    for batch in reader {
        let batch = batch.unwrap();
        let partitions = batch.column(0).as_primitive::<UInt16Type>().values();
        let counts = batch.column(2).as_primitive::<UInt64Type>().values();
        for ((partition, word), count) in partitions.iter().zip(batch.column(1).as_binary::<i32>()).zip(counts) {
            rows.push(((*partition, word.unwrap().to_vec()), *count));
        }
    }
    assert!(rows.is_sorted_by(|(a, _), (b, _)| a < b), "words are sorted by partition and distinct");
    rows.into_iter().map(|((_, word), count)| (word, count)).collect()
}

/// The rows of a result: its texts, then hits and documents. Checks that they are in order.
fn table(batch: &RecordBatch) -> Table {
    let numbers = |at: usize| batch.column(at).as_primitive::<UInt64Type>();
    let texts = batch.num_columns() - 2;
    let row = |row: usize| (0..texts).map(|at| batch.column(at).as_string::<i32>().value(row).to_owned()).collect();
    let rows: Vec<Vec<String>> = (0..batch.num_rows()).map(row).collect();
    assert!(rows.is_sorted_by(|a, b| a < b), "rows are sorted and distinct");
    let tallies = (0..rows.len()).map(|at| (numbers(texts).value(at), numbers(texts + 1).value(at)));
    rows.iter().cloned().zip(tallies).collect()
}

fn statistic(counts: &Counts, name: &str) -> u64 {
    let names = counts.statistics.column(0).as_string::<i32>();
    let at = names.iter().position(|it| it == Some(name)).unwrap_or_else(|| panic!("no statistic {name}"));
    counts.statistics.column(1).as_primitive::<UInt64Type>().value(at)
}

#[test]
fn counts_are_the_same_for_any_threads_and_batches() {
    let owned = twin::documents(42, 3000);
    let documents: Vec<_> = owned.iter().map(|(project, text)| (project.as_str(), text.as_slice())).collect();
    let expected = scan(&documents, 1, documents.len());
    for (threads, rows) in [(1, 1), (2, 1000), (2, 7), (3, 500), (8, 3000)] {
        assert_eq!(scan(&documents, threads, rows), expected, "{threads} threads, {rows} rows a batch");
    }
    let reversed: Vec<_> = documents.iter().rev().copied().collect();
    assert_eq!(scan(&reversed, 2, 11), expected, "the order of the documents");
}

#[test]
fn terms_count_by_their_mode_with_documents_and_projects() {
    let counts = scan(
        &[
            (
                "b",
                b"CHECK(x); CHECK(y); auto s = \"SELECT CHECK\"; enum E {};\n#include <enum>\n#define M cudaMalloc\n",
            ),
            ("a", b"// CHECK SELECT enum\n/* cudaMalloc */ 'CHECK' \"cudaMalloc enum\" SELECT PRECHECK CHECKED"),
            ("b", b"CHECK cuda\\\nMalloc {\"$match\", R\"($match)\", $match, \"$matches x$match\"}"),
            ("b", b"\"select\" \"\\nSELECT\" u8\"SELECT\" L\"SELECTED\""),
        ],
        1,
        9,
    );
    let row = |term: &str, category: &str, tally| (vec![term.to_owned(), category.to_owned(), "b".to_owned()], tally);
    let expected = Table::from([
        row("CHECK", "sql", (1, 1)),
        row("CHECK", "test", (3, 2)),
        row("SELECT", "sql", (3, 2)),
        row("cudaMalloc", "cuda", (2, 2)),
        row("enum", "proto", (1, 1)),
        row("$match", "mongo", (3, 1)),
    ]);
    assert_eq!(table(&counts.terms), expected);
}

#[test]
fn a_prefix_counts_where_an_identifier_begins_with_it() {
    let text: &[u8] =
        b"read(readBuffer, read_all, read2, reader, unread); READER_T READER_t READER_ READER // read \"read\"";
    let row = |term: &str, tally| (vec![term.to_owned(), "begin".to_owned(), "b".to_owned()], tally);
    let expected = Table::from([row("READER_", (3, 1)), row("read", (4, 1))]);
    assert_eq!(table(&scan(&[("b", text)], 1, 1).terms), expected);
}

#[test]
fn families_count_how_identifiers_begin_in_code() {
    let counts = scan(
        &[
            ("a", b"nngHttpSend(nngHttpGet, nngHttpGet, nngOpen); // nngComment\n\"nngString\""),
            ("b", b"#define x nngHttpGet\n#if 0\nnngDisabled\n#endif\nstatic_cast<nng>"),
        ],
        1,
        9,
    );
    let expected = [("nng", [5, 2, 3]), ("nngHttp", [4, 2, 2])];
    assert_eq!(counts.families, expected.map(|(name, numbers)| (name.to_owned(), numbers)).into());
    let mut scanner = Scanner::new(r#"{"pattern": "cpp-words-1"}"#, 1, Budget::default()).unwrap();
    assert!(scanner.finish().unwrap().families.is_none(), "only if they are asked for");
}

#[test]
fn namespaces_are_the_first_names_of_chains() {
    let table_of = [
        ("std::vector<std::string> x;", "std 2"),
        ("a::b::c + ::d::e", "a 1, d 1"),
        ("return ::a::b; x = ::a;", "a 1"),
        ("T<a::b>::c::d", "a 1"),
        ("std :: /* */ vector // \n :: x", "std 1"),
        ("a\n::b", "a 1"),
        ("#define X a\n::b::c", "b 1"),
        ("#define X a::b", "a 1"),
        ("a:\\\n:b", "a 1"),
        ("// a::b\n\"c::d\"", ""),
        ("x ? a : b::c", "b 1"),
        ("na\u{ef}ve::x", "na\u{ef}ve 1"),
    ];
    for (source, expected) in table_of {
        let counts = table(&scan(&[("p", source.as_bytes())], 1, 1).namespaces);
        let found: Vec<_> = counts.iter().map(|(row, tally)| format!("{} {}", row[0], tally.0)).collect();
        assert_eq!(found.join(", "), expected, "{source:?}");
    }
    let counts = table(&scan(&[("p", b"\xff::x")], 1, 1).namespaces);
    assert_eq!(counts.keys().next(), Some(&vec!["\\xff".to_owned(), "p".to_owned()]));
}

#[test]
fn statistics_count_bytes_by_class_lines_and_styles() {
    let source = b"\xef\xbb\xbf#include <a> // c\r\n\r\nint readAll;\n\t\"s\" /* d\n */\n  \tx;\r  y_;";
    let counts = scan(&[("p", source), ("p", b""), ("p", b"\xff")], 1, 9);
    let expected = [
        ("documents", 3),
        ("not_utf8_documents", 1),
        ("bytes", source.len() as u64 + 1),
        ("bytes.non_ascii", 4),
        ("bytes.comment", 12),
        ("bytes.preprocessor", 11),
        ("bytes.string", 3),
        ("bytes.code", 3 + 3 + 8 + 2 + 3 + 1),
        ("lines", 8),
        ("lines.blank", 1),
        ("line_endings.lf", 3),
        ("line_endings.crlf", 2),
        ("line_endings.cr", 1),
        ("indentation.tabs", 1),
        ("indentation.spaces", 2),
        ("indentation.mixed", 1),
        ("directives", 1),
        ("identifiers", 4),
        ("keywords", 1),
        ("keyword.int", 1),
        ("keyword.int.documents", 1),
        ("keyword.while", 0),
        ("style.camel_case", 1),
        ("style.trailing_underscore.documents", 1),
        ("style.single_word", 1),
        ("style.other", 1),
        ("comments.line", 1),
        ("comments.block", 1),
        ("literals.string", 1),
    ];
    for (name, value) in expected {
        assert_eq!(statistic(&counts, name), value, "{name}");
    }
    let names: Vec<_> = counts.statistics.column(0).as_string::<i32>().iter().flatten().collect();
    assert!(names.is_sorted_by(|a, b| a < b));
    let classes = ["code", "comment", "disabled", "preprocessor", "string", "whitespace"];
    let sum: u64 = classes.map(|class| statistic(&counts, &format!("bytes.{class}"))).iter().sum();
    assert_eq!(sum, statistic(&counts, "bytes"));
}

#[test]
fn the_name_behind_a_byte_order_mark_is_counted() {
    for source in ["\u{feff}std::read x;", "\u{feff} std::read x;", "std::read x;"] {
        let counts = scan(&[("p", source.as_bytes())], 1, 1);
        assert_eq!((statistic(&counts, "identifiers"), statistic(&counts, "namespaces")), (3, 1), "{source:?}");
    }
}

#[test]
fn finish_starts_anew() {
    let mut scanner = scanner(2);
    let empty = finish(&mut scanner);
    scanner.add(&batch(&[("p", b"std::read")])).unwrap();
    assert_ne!(finish(&mut scanner), empty);
    assert_eq!(finish(&mut scanner), empty);
}

#[test]
fn units_are_counted_only_where_there_is_a_pattern_for_them() {
    let mut scanner = Scanner::new(r#"{"pattern": "cpp-words-1"}"#, 1, Budget::default()).unwrap();
    scanner.add(&batch(&[("p", b"one\n")])).unwrap();
    assert!(scanner.finish().unwrap().lines.is_none());
    let counts = scan(&[("p", b"  a b;\n  a b;\n\n\tc"), ("p", b"c")], 1, 1).lines;
    let expected = [(&b"  a b;\n  "[..], 1), (b"a b;\n\n\t", 1), (b"c", 2)];
    assert_eq!(counts, expected.map(|(line, count)| (line.to_vec(), count)).into());
}

#[test]
fn words_of_any_length_are_counted_whole() {
    let long = vec![b'x'; 100_000];
    let source = [&long[..], b" ", &long, b" ", &long[..16], b" ", &long[..17], b" ", &long[..15]].concat();
    let counts = scan(&[("p", &source), ("p", &source)], 1, 1).words;
    let lengths: BTreeSet<_> = counts.iter().map(|(word, count)| (word.len(), *count)).collect();
    assert_eq!(lengths, BTreeSet::from([(16, 2), (17, 2), (18, 2), (100_000, 2), (100_001, 2)]));
}

#[test]
fn columns_may_have_large_offsets_and_no_nulls() {
    let projects: ArrayRef = Arc::new(LargeStringArray::from(vec!["p"]));
    let contents: ArrayRef = Arc::new(LargeBinaryArray::from(vec![&b"std::x"[..]]));
    let mut scanner = scanner(1);
    scanner.add(&RecordBatch::try_from_iter([("content", contents), ("project", projects.clone())]).unwrap()).unwrap();
    assert_eq!(finish(&mut scanner), scan(&[("p", b"std::x")], 1, 1));
    let nulls: ArrayRef = Arc::new(BinaryArray::from(vec![None]));
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["x"]));
    for (content, expected) in [(nulls, "row 0: column \"content\" is null"), (texts, "column \"content\" is Utf8")] {
        let batch = RecordBatch::try_from_iter([("content", content), ("project", projects.clone())]).unwrap();
        let error = scanner.add(&batch).unwrap_err();
        assert!(error.to_string().starts_with(expected), "{error}");
    }
    let error = scanner.add(&RecordBatch::try_from_iter([("project", projects)]).unwrap()).unwrap_err();
    assert_eq!(error.to_string(), "documents have no column \"content\"; their columns are project");
}

#[test]
fn a_configuration_that_can_find_nothing_is_refused() {
    let table = [
        (
            r#""candidates": [{"term": "a b", "category": "c", "match": "ident"}]"#,
            "candidate \"a b\" of category \"c\"",
        ),
        (r#""candidates": [{"term": "2x", "category": "c", "match": "prefix"}]"#, "candidate \"2x\""),
        (r#""candidates": [{"term": "match", "category": "c", "match": "dollar"}]"#, "candidate \"match\""),
        (r#""candidates": [{"term": "select", "category": "c", "match": "sql_string"}]"#, "candidate \"select\""),
        (r#""candidates": [{"term": "a..b", "category": "c", "match": "string"}]"#, "candidate \"a..b\""),
        (r#""candidates": [{"term": "a b", "category": "c", "match": "string"}]"#, "candidate \"a b\""),
        (r#""candidates": [{"term": "a", "category": "c", "match": "regex"}]"#, "scan configuration: unknown variant"),
        (r#""morphemes": [{"morpheme": "Re", "position": "prefix"}]"#, "morpheme \"Re\""),
        (
            r#""morphemes": [{"morpheme": "re", "position": "prefix"}, {"morpheme": "re", "position": "prefix"}]"#,
            "morpheme \"re\" is there twice",
        ),
        (r#""word_partitions": 0"#, "word_partitions is 0; give 1 to 65536"),
        (r#""patterns": 1"#, "scan configuration: unknown field"),
    ];
    for (json, expected) in table {
        let json = format!(r#"{{"pattern": "cpp-words-1", {json}}}"#);
        let error = Scanner::new(&json, 1, Budget::default()).err().unwrap();
        assert!(error.kind() == ErrorKind::Invalid && error.to_string().starts_with(expected), "{error}");
    }
    let error = |json, threads| Scanner::new(json, threads, Budget::default()).err();
    assert!(error(r#"{"pattern": "x"}"#, 1).unwrap().to_string().contains("cpp-words-1"));
    let lines_as_words = error(r#"{"pattern": "cpp-lines-1"}"#, 1).unwrap().to_string();
    assert!(lines_as_words.starts_with(r#"pattern "cpp-lines-1" cuts lines"#), "{lines_as_words}");
    let words_as_lines = error(r#"{"pattern": "cpp-words-1", "unit_pattern": "cpp-words-1"}"#, 1).unwrap().to_string();
    assert!(words_as_lines.starts_with(r#"unit_pattern "cpp-words-1" cuts no lines"#), "{words_as_lines}");
    assert!(words_as_lines.ends_with("cpp-lines-1"), "{words_as_lines}");
    assert!(error(CONFIG, 0).unwrap().to_string().starts_with("threads is 0"));
}
