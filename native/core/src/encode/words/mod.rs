//! Encoding of words: each is looked up in a cache, and merged if it is not there.

mod cache;
mod encoder;
mod key;

pub(crate) use cache::WordCache;
pub(crate) use encoder::{PendingWords, WordEncoder, WordSpan};
