//! Byte pair encoding of one word or line: the merge table, and four ways to merge that give the same tokens.

mod borders;
mod lanes;
mod merges;
mod pairs;
mod queue;
mod runs;
mod windows;

pub(crate) use lanes::{LANES, Lane, MAX_CELLS, join};
pub(crate) use merges::{Merges, Merging, Scratch};
pub(crate) use pairs::{MAX_IDS, MAX_MERGES, Merge, NONE, Pairs, entry_value, pack_entry, pack_pair, pair_hash};
pub(crate) use windows::Symbols;
