//! Rows as JSON text, byte for byte as the standard library of Python writes a list of their values.

use std::fmt::Write;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;

use crate::{Error, Result};

/// Returns the rows of a batch of string and u64 columns, one after the other: `["a/b.cpp", 12, null]["c.cpp", 3, ""]`.
/// What is not printable ASCII is escaped.
///
/// # Errors
/// `Invalid`, naming the column, for one of another type.
pub fn json_rows(rows: &RecordBatch) -> Result<String> {
    let fields = rows.schema_ref().fields();
    for field in fields {
        if !matches!(field.data_type(), DataType::Utf8 | DataType::UInt64) {
            return Err(Error::invalid(format!(
                "column {:?} is {}; give string or uint64",
                field.name(),
                field.data_type()
            )));
        }
    }
    let mut text = String::with_capacity(128 * rows.num_rows());
    for row in 0..rows.num_rows() {
        for (place, column) in rows.columns().iter().enumerate() {
            text.push_str(if place == 0 { "[" } else { ", " });
            if column.is_null(row) {
                text.push_str("null");
            } else if let Some(strings) = column.as_string_opt::<i32>() {
                push_string(&mut text, strings.value(row));
            } else {
                let _cannot_fail = write!(text, "{}", column.as_primitive::<UInt64Type>().value(row));
            }
        }
        text.push(']');
    }
    Ok(text)
}

fn push_string(text: &mut String, value: &str) {
    text.push('"');
    for character in value.chars() {
        match character {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\x0C' => text.push_str("\\f"),
            '\x08' => text.push_str("\\b"),
            ' '..='~' => text.push(character),
            _ => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    let _cannot_fail = write!(text, "\\u{unit:04x}");
                }
            }
        }
    }
    text.push('"');
}
