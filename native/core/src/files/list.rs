//! Listing folders: their entries, with size and time of the files, many folders at a time.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirEntry};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;

use rayon::prelude::*;

use super::inodes::keeps_inodes;
use crate::pools::thread_pool;
use crate::{Result, Stop};

const NANOSECONDS: i64 = 1_000_000_000;

/// What an entry of a folder is; a link is never followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntryKind {
    /// A regular file.
    File = 0,
    /// A folder.
    Folder = 1,
    /// A symbolic link, wherever it leads.
    Link = 2,
    /// A pipe, socket or device.
    Other = 3,
}

/// An entry of a folder.
#[derive(Debug)]
pub struct Entry {
    /// Its name, any bytes.
    pub name: OsString,
    /// What it is.
    pub kind: EntryKind,
    /// Size of a file.
    pub num_bytes: u64,
    /// Time of modification of a file, in nanoseconds.
    pub modified_ns: i64,
    /// When the system last noted a change to a file, its name or permissions, in nanoseconds; no program can set it.
    pub changed_ns: i64,
    /// The number of a file, 0 where files may be numbered anew.
    pub inode: u64,
    /// The number of the error that looking at it gave, 0 for none.
    pub error: i32,
}

/// The entries of a folder, or the number of the error that listing it gave.
pub type Listed = std::result::Result<Vec<Entry>, i32>;

/// Lists folders, on `threads` threads, and returns for each its entries, in no order.
///
/// # Errors
/// `Io` if the threads cannot be started; `Stopped` if `stop` is set.
pub fn list_folders(root: &[u8], folders: &[OsString], threads: usize, stop: &Stop) -> Result<Vec<Listed>> {
    let list = |folder: &OsString| {
        stop.check()?;
        let path = [root, b"/", folder.as_bytes()].concat();
        Ok(entries(OsStr::from_bytes(&path)).map_err(|error| number(&error)))
    };
    if folders.len() == 1 || threads <= 1 {
        return folders.iter().map(list).collect();
    }
    thread_pool(threads.min(folders.len()))?.install(|| folders.par_iter().map(list).collect())
}

fn entries(folder: &OsStr) -> io::Result<Vec<Entry>> {
    let keeps_inodes = keeps_inodes(folder);
    fs::read_dir(folder)?.map(|entry| entry.map(|entry| look_at(&entry, keeps_inodes))).collect()
}

/// Returns an entry with what is known of it; only of a file the operating system is asked for more.
fn look_at(entry: &DirEntry, keeps_inodes: bool) -> Entry {
    let plain =
        |kind| Entry { name: entry.file_name(), kind, num_bytes: 0, modified_ns: 0, changed_ns: 0, inode: 0, error: 0 };
    let found = entry.file_type().and_then(|kind| match kind {
        kind if kind.is_symlink() => Ok(plain(EntryKind::Link)),
        kind if kind.is_dir() => Ok(plain(EntryKind::Folder)),
        kind if !kind.is_file() => Ok(plain(EntryKind::Other)),
        _ => entry.metadata().map(|status| Entry {
            num_bytes: status.len(),
            modified_ns: status.mtime() * NANOSECONDS + status.mtime_nsec(),
            changed_ns: status.ctime() * NANOSECONDS + status.ctime_nsec(),
            inode: if keeps_inodes { status.ino() } else { 0 },
            ..plain(EntryKind::File)
        }),
    });
    found.unwrap_or_else(|error| Entry { error: number(&error), ..plain(EntryKind::File) })
}

fn number(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EINVAL)
}
