//! The tokens of a byte string as an Arrow table, for whoever looks at the lexer from outside.

use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, UInt64Builder};
use arrow_array::types::Int8Type;
use arrow_array::{ArrayRef, DictionaryArray, Int8Array, RecordBatch, StringArray};

use super::{Lexer, TokenKind};
use crate::Result;

/// The tokens of `source` in order: kind (dictionary of [`TokenKind::name`], always with every kind), start, end
/// (uint64, bytes) and `in_directive` (bool).
///
/// ```
/// let tokens = cppmill_core::lexer::token_table(b"int x;")?;
/// assert_eq!(tokens.num_rows(), 4);
/// # Ok::<(), cppmill_core::Error>(())
/// ```
///
/// # Errors
///
/// If Arrow refuses the table, which no input causes.
pub fn token_table(source: &[u8]) -> Result<RecordBatch> {
    let mut kinds = Vec::new();
    let (mut starts, mut ends, mut in_directive) = (UInt64Builder::new(), UInt64Builder::new(), BooleanBuilder::new());
    for token in Lexer::new(source) {
        kinds.push(token.kind as i8);
        starts.append_value(token.start as u64);
        ends.append_value(token.end as u64);
        in_directive.append_value(token.in_directive);
    }
    let names = StringArray::from_iter_values(TokenKind::ALL.map(TokenKind::name));
    let kinds = DictionaryArray::<Int8Type>::new(Int8Array::from(kinds), Arc::new(names));
    let columns: [(&str, ArrayRef); 4] = [
        ("kind", Arc::new(kinds)),
        ("start", Arc::new(starts.finish())),
        ("end", Arc::new(ends.finish())),
        ("in_directive", Arc::new(in_directive.finish())),
    ];
    Ok(RecordBatch::try_from_iter(columns)?)
}
