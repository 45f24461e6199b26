//! Tests of reading lines.

use arrow_array::cast::AsArray;
use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch};

use super::{Keys, Lines, read_lines};
use crate::Result;

const KEYS: Keys<'static> =
    Keys { content: b"content", path: b"path", project: Some(b"repo"), license: Some(b"license") };

fn read(line: &str) -> Result<Lines> {
    read_lines(line.as_bytes(), 0, &KEYS, usize::MAX)
}

fn labels(rows: &RecordBatch) -> [Option<String>; 3] {
    ["path", "project", "license"].map(|name| {
        let column = rows.column_by_name(name)?.as_string::<i32>();
        column.is_valid(0).then(|| column.value(0).to_string())
    })
}

#[test]
fn a_line_gives_the_texts_under_the_keys() -> Result<()> {
    let some = |text: &str| Some(text.to_string());
    let cases = [
        (r#"{"content": "a", "path": "p", "repo": "r", "license": "MIT"}"#, "a", [some("p"), some("r"), some("MIT")]),
        (r#"{"conten\u0074": "\u540d\ud83d\ude00\n"}"#, "\u{540d}\u{1f600}\n", [None, None, None]),
        (r#"{"content": "a", "content": "b", "path": "p", "path": 7}"#, "b", [None, None, None]),
        (r#"{"content": "", "repo": null, "license": null, "path": ""}"#, "", [None, None, None]),
        (r#" {"x": [1, -2.5e9, true, {"content": 3}], "content": "\u007f"} "#, "\u{7f}", [None, None, None]),
    ];
    for (line, content, expected) in cases {
        let found = read(line)?;
        assert!(found.rows.column(3).as_boolean().value(0), "{line}");
        assert_eq!(found.rows.column(4).as_binary::<i64>().value(0), content.as_bytes(), "{line}");
        assert_eq!(labels(&found.rows), expected, "{line}");
    }
    Ok(())
}

#[test]
fn a_line_that_is_not_surely_the_same_in_python_is_not_read() -> Result<()> {
    let long = format!(r#"{{"content": "a", "n": {}}}"#, "9".repeat(640));
    let deep = format!(r#"{{"content": "a", "n": {}{}}}"#, "[".repeat(200), "]".repeat(200));
    let cases = [
        "{",
        "[]",
        "7",
        "{}",
        "nothing",
        &long,
        &deep,
        r#"{"content": 7}"#,
        r#"{"content": null}"#,
        r#"{"content": "a", "content": []}"#,
        r#"{"content": "\ud800"}"#,
        r#"{"content": "a", "\udc00": 1}"#,
        r#"{"content": "a", "n": NaN}"#,
        r#"{"content": "a", "n": 01}"#,
        r#"{"content": "a"} x"#,
        r#"{"content": "a",}"#,
        r#"{"content": "a", "license": ["MIT"]}"#,
        "{\"content\": \"\t\"}",
        "\u{feff}{\"content\": \"a\"}",
    ];
    for line in cases {
        let found = read(line)?;
        assert!(!found.rows.column(3).as_boolean().value(0), "{line}");
        assert_eq!(found.rows.column(4).as_binary::<i64>().value(0), b"", "{line}");
    }
    let found = read_lines(b"{\"content\": \"\xff\"}", 0, &KEYS, 1)?;
    assert!(!found.rows.column(3).as_boolean().value(0));
    Ok(())
}

#[test]
fn lines_are_where_they_are_and_blank_ones_count_but_have_no_row() -> Result<()> {
    let data = b"?\n\n{\"content\": \"a\"}\r\n \t\x0b\x0c\r\n[]";
    let found = read_lines(data, 2, &KEYS, usize::MAX)?;
    assert_eq!((found.lines, found.end), (4, data.len()));
    assert_eq!(found.rows.column(0).as_primitive::<UInt32Type>().values(), &[1, 3]);
    assert_eq!(found.rows.column(1).as_primitive::<UInt64Type>().values(), &[3, 27]);
    assert_eq!(found.rows.column(2).as_primitive::<UInt64Type>().values(), &[21, 29]);
    let first = read_lines(data, 0, &KEYS, 1)?;
    assert_eq!((first.lines, first.end, first.rows.num_rows()), (1, 2, 1));
    let past = read_lines(data, data.len(), &KEYS, 1)?;
    assert_eq!((past.lines, past.end, past.rows.num_rows()), (0, data.len(), 0));
    Ok(())
}

#[test]
fn keys_that_are_the_same_have_the_same_text() -> Result<()> {
    let keys = Keys { path: b"content", ..KEYS };
    let found = read_lines(br#"{"content": "a.h"}"#, 0, &keys, 1)?;
    assert_eq!(labels(&found.rows)[0].as_deref(), Some("a.h"));
    Ok(())
}
