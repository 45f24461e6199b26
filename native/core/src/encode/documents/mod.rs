//! Encoding whole documents, files and parts on several threads, and finding the ids that later text cannot change.

mod batch;
mod encoder;
mod files;
mod parts;
mod stable_prefix;
mod workers;

pub(crate) use batch::{count_batch, encode, encode_batch};
pub(crate) use encoder::Encoder;
pub(crate) use files::encode_files;
pub use parts::Part;
pub(crate) use parts::encode_parts;
pub(crate) use stable_prefix::{StablePrefixFinder, TokenPrefixes};
pub(crate) use workers::Workers;
