//! Encoding of lines, whose words are joined to superwords.

mod cache;
mod encoder;
mod joiner;
mod joints;
mod pair_memo;
mod segmenter;
mod superwords;

pub(crate) use encoder::{LineEncoder, LineMemory};
pub(crate) use segmenter::{LineMerges, LineSegmenter, SuperwordMerges};
pub(crate) use superwords::Superwords;
