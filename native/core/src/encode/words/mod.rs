//! Encoding of words: each is looked up in a cache, and merged if it is not there.

mod cache;
mod encoder;
mod key;
mod shared;

pub(crate) use cache::WordCache;
pub(crate) use encoder::{Colleagues, PendingWords, WordEncoder, WordSpan};
pub(crate) use shared::{Room, SharedWords};
