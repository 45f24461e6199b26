//! Digests of bytes, and of sets of rows.
//!
//! A row's digest is the SHA-256 of its parts, all little-endian: `doc_id` (32 bytes), `project` and `path` (each its
//! length as u32, then UTF-8), and for a row of the dataset `num_bytes` (u64), the number of token ids (u32), the ids
//! (u32 each), the number of platform ids (u32), the platform ids (u16 each). A set's digest is the sum of its rows',
//! read as big-endian numbers, modulo 2^256: it does not depend on order, and the digests of parts add up to that of
//! the whole.

mod json_rows;
mod rows;
mod sum;

pub use json_rows::json_rows;
pub use rows::{DatasetRows, Rows, corpus_digest_sum, dataset_digest_sum};
pub use sum::DigestSum;

use sha2::{Digest, Sha256};

/// Returns the SHA-256 of `bytes` in lower-case hexadecimal digits.
pub fn sha256_hex(bytes: &[u8]) -> String {
    to_hex(&Sha256::digest(bytes))
}

/// Returns bytes in lower-case hexadecimal digits.
pub(crate) fn to_hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from(b"0123456789abcdef"[usize::from(nibble)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}
