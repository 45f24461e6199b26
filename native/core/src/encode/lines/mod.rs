//! Encoding of lines, whose words are joined to superwords.

mod cache;
mod encoder;
mod joiner;
mod pair_memo;
mod superwords;

pub(crate) use encoder::{LineEncoder, LineMemory};
pub(crate) use superwords::Superwords;
