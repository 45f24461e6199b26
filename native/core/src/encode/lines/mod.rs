//! Encoding of lines, whose words are joined to superwords.

mod crossings;
mod encoder;
mod joiner;
mod joints;
mod open_lines;
mod pair_memo;
mod repairs;
mod segmenter;
mod segments;
mod superwords;

pub(crate) use encoder::{LineEncoder, LineMemory};
pub(crate) use segmenter::{LineMerges, LineSegmenter, SuperwordMerges};
pub(crate) use superwords::Superwords;
