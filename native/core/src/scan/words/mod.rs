//! The words of documents with their counts: one table per thread, their sum, and a counter of nothing but words.

mod by_project;
mod counter;
mod near;
mod sums;
mod table;
mod totals;
mod uses;
mod waiting;

pub(super) use by_project::ProjectTotals;
pub use counter::WordCounter;
pub(super) use table::WordTable;
pub(super) use uses::{Naming, Use};
