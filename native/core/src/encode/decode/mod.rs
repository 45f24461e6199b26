//! From token ids back to bytes, and where the bytes of each token begin.

mod decoder;
mod offsets;

pub(crate) use decoder::{decode_batch, decode_into, digest_batch};
pub(crate) use offsets::byte_offsets;
