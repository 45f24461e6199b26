//! Whatever rules of platforms say, they are refused with an error, or they find the same platforms in any bytes
//! however they are asked: with another document before, and alone.
//!
//! The input is rules, a path and a document, with lines of four hyphens between them.

#![no_main]

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt16Type;
use arrow_array::{ArrayRef, BinaryArray, RecordBatch, StringArray};
use cppmill_core::platform::PlatformDetector;
use libfuzzer_sys::fuzz_target;

const BETWEEN: &[u8] = b"\n----\n";

/// What is before the next line of hyphens, and what is behind it.
fn cut(data: &[u8]) -> (&[u8], &[u8]) {
    let middle = data.windows(BETWEEN.len()).position(|window| window == BETWEEN);
    middle.map_or((data, b""), |at| (&data[..at], &data[at + BETWEEN.len()..]))
}

fuzz_target!(|data: &[u8]| {
    let (rules, rest) = cut(data);
    let (path, content) = cut(rest);
    let path = String::from_utf8_lossy(path);
    let Ok(detector) = PlatformDetector::new(&String::from_utf8_lossy(rules)) else { return };
    let alone = detector.detect_one(&path, content);
    assert!(alone.ids.is_sorted_by(|one, next| one < next));
    let half = &content[..content.len() / 2];
    let paths: ArrayRef = Arc::new(StringArray::from_iter_values([&*path, "", &*path]));
    let contents: ArrayRef = Arc::new(BinaryArray::from_iter_values([content, half, content]));
    let documents = RecordBatch::try_from_iter([("path", paths), ("content", contents)]).expect("two columns");
    let found = detector.detect(&documents, 1).expect("two columns of the right types");
    let ids = found.column_by_name("platform_ids").expect("a column").as_list::<i32>();
    let info = found.column_by_name("platform_info").expect("a column").as_string::<i32>();
    for row in [0, 2] {
        assert_eq!(ids.value(row).as_primitive::<UInt16Type>().values(), &alone.ids[..]);
        assert_eq!(info.value(row), alone.info);
    }
});
