//! The native core of cppmill: scanning, vocabulary training and encoding of C++ text.
//!
//! It knows neither Python nor Beam: slices and Arrow arrays in, Arrow arrays out.

mod arrays;
mod blocks;
pub mod counts;
pub mod digest;
mod documents;
pub mod encode;
mod error;
pub mod files;
pub mod jsonl;
pub mod lexer;
mod memory;
pub mod pattern;
mod pieces;
pub mod platform;
mod pools;
pub mod scan;
mod short_key;
mod stop;
pub mod train;

pub use error::{Error, ErrorKind, RefusedFile, Result};
pub use stop::Stop;

/// The version of the native core; part of every unit key.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
