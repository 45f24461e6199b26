//! Texts as sequences of tokens: words, or the lines from which superwords are learned.
//!
//! All texts are held in little memory ([`Held`]). For each round of merging, they are cut where nothing can be merged
//! ([`Cuts`]), equal parts become one, and only these are laid out ([`Texts`]). After the round every part is replaced
//! by what the merges made of it.

mod chunk;
mod collector;
mod cuts;
mod held;
mod laid_out;
mod pool;
mod rounds;

pub(super) use collector::Collector;
pub(super) use cuts::Cuts;
pub(super) use held::Held;
pub(super) use laid_out::{GONE, Texts};
pub(super) use rounds::{lay_out, replace_parts};
