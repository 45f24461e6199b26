//! The class of each byte of a text, as bit masks of 64 bytes each.
//!
//! A search for the next byte of a class then skips 64 at a time, and counting them is counting bits. x86-64 processors
//! with AVX2 make a block's masks in a few instructions; all others use a table of 256 bytes. Both give the same masks.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod block;
mod classes;
mod fallback;
#[cfg(target_arch = "x86_64")]
pub(crate) mod vectors;

pub(crate) use block::{BYTES, Block};
pub(crate) use classes::{Classes, Starts};
