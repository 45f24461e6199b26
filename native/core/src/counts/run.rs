//! A sorted run on disk.
//!
//! A record is three numbers (how many bytes the word shares with the one before, how many follow, the count; each in
//! groups of 7 bits, lowest first) and the bytes that follow. Where partitions end is kept in memory.

use std::fs::File;
use std::io::{BufReader, BufWriter, Seek, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use super::merge::Merge;
use super::run_reader::RunReader;
use crate::{Error, ErrorKind, Result};

const BUFFER_BYTES: usize = 1 << 16;

/// A run: a file that has no name any more, so that it goes when it is closed, however the process ends.
pub(super) struct Run {
    file: File,
    /// The words of each partition.
    words: Vec<u64>,
}

impl Run {
    /// Writes what is left of `merge` to a new file in `folder`.
    pub(super) fn write(mut merge: Merge, folder: &Path) -> Result<Self> {
        let written = |error: &std::io::Error| {
            let folder = folder.display();
            let advice = "free space there, name another spill_dir, or give more memory_bytes";
            Error::new(ErrorKind::Io, format!("cannot write counts to {folder}: {error}; {advice}"))
        };
        let mut file = BufWriter::with_capacity(BUFFER_BYTES, create(folder).map_err(|error| written(&error))?);
        let mut words: Vec<u64> = Vec::new();
        let mut before = Vec::new();
        while let Some(partition) = merge.partition() {
            let partition = partition as usize;
            words.resize(words.len().max(partition + 1), 0);
            words[partition] += 1;
            write_record(&mut file, &before, merge.word(), merge.count()).map_err(|error| written(&error))?;
            before.clear();
            before.extend_from_slice(merge.word());
            merge.advance()?;
        }
        let file = file.into_inner().map_err(|error| written(error.error()))?;
        Ok(Self { file, words })
    }

    /// Reads the run from its beginning; the first word is current.
    pub(super) fn read(self) -> Result<RunReader> {
        let Self { mut file, words } = self;
        file.rewind()?;
        let file = BufReader::with_capacity(BUFFER_BYTES, file);
        RunReader::new(file, words)
    }
}

/// Makes a file in `folder`, open for reading and writing, and takes its name away.
fn create(folder: &Path) -> std::io::Result<File> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    std::fs::create_dir_all(folder)?;
    loop {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("spill-{}-{number}", std::process::id()));
        match File::options().read(true).write(true).create_new(true).open(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
            Ok(file) => return std::fs::remove_file(&path).map(|()| file),
        }
    }
}

fn write_record(file: &mut impl Write, before: &[u8], word: &[u8], count: u64) -> std::io::Result<()> {
    let shared = before.iter().zip(word).take_while(|(left, right)| left == right).count();
    write_number(file, shared as u64)?;
    write_number(file, (word.len() - shared) as u64)?;
    write_number(file, count)?;
    file.write_all(&word[shared..])
}

fn write_number(file: &mut impl Write, mut number: u64) -> std::io::Result<()> {
    while number >= 0x80 {
        file.write_all(&[number as u8 | 0x80])?;
        number >>= 7;
    }
    file.write_all(&[number as u8])
}
