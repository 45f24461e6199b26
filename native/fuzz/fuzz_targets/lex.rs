//! Any bytes are cut without a gap: by the lexer, and by every pattern into the text itself.

#![no_main]

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use cppmill_core::lexer::token_table;
use cppmill_core::pattern::Pattern;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let tokens = token_table(data).expect("any bytes have tokens");
    let column = |name| tokens.column_by_name(name).expect("a column").as_primitive::<UInt64Type>().values().to_vec();
    let (starts, ends) = (column("start"), column("end"));
    assert!(starts.iter().zip(&ends).all(|(start, end)| start < end));
    assert!(starts.iter().skip(1).eq(ends.iter().take(ends.len().saturating_sub(1))));
    assert_eq!(starts.first().copied().unwrap_or(0), 0);
    assert_eq!(ends.last().copied().unwrap_or(0), data.len() as u64);
    for pattern in Pattern::ALL {
        let mut joined = Vec::new();
        pattern.split(data, |word| {
            assert!(!word.is_empty());
            joined.extend_from_slice(word);
        });
        assert_eq!(joined, data);
    }
});
