//! Listing folders, and reading many small files at once: their bytes, SHA-256 and what the filters ask of every
//! document.
//!
//! A file is opened without following a link or waiting on a pipe, read once, and digested while it is in the cache.
//! Files are spread over threads, more of them than there are cores where the disk is what is waited for. What cannot
//! be read is a row with the error's number; no file fails the batch.

mod batch;
mod contents;
mod inodes;
mod list;
mod read;
#[cfg(test)]
mod tests;

pub use batch::{Files, read_files};
pub use contents::digest_contents;
pub use list::{Entry, EntryKind, Listed, list_folders};
