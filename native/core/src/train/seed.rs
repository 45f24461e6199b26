//! A seed, and what makes a text an identifier.

use crate::{Error, Result};

/// A string that must become one token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seed {
    pub(super) token: Vec<u8>,
    pub(super) atomic: bool,
}

impl Seed {
    pub(super) fn new(token: Vec<u8>, atomic: bool) -> Result<Self> {
        let shown = token.escape_ascii();
        match token.first() {
            None => Err(Error::invalid("a seed is empty: a token has at least one byte")),
            Some(first) if atomic && (first.is_ascii_digit() || !is_identifier_run(&token)) => {
                Err(Error::invalid(format!("seed \"{shown}\" is atomic but no identifier: it can be pinned only")))
            }
            Some(_) => Ok(Self { token, atomic }),
        }
    }
}

/// Whether a byte counts as part of an identifier: `[A-Za-z0-9_]`. Bytes from 0x80 up do not.
pub(super) fn is_identifier_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Whether all of `text` is identifier bytes.
pub(super) fn is_identifier_run(text: &[u8]) -> bool {
    text.iter().copied().all(is_identifier_byte)
}
