//! A sorted run on disk.
//!
//! A record is three numbers (how many bytes the word shares with the one before, how many follow, the count; each in
//! groups of 7 bits, lowest first) and the bytes that follow. Where partitions end is kept in memory.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Seek, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use super::merge::{Head, Merge};
use super::prefix;
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
        let mut reader = RunReader { file, left: words, partition: 0, word: Vec::new(), count: 0 };
        reader.advance()?;
        Ok(reader)
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

/// A run that is read word by word.
pub(super) struct RunReader {
    file: BufReader<File>,
    /// The words of each partition that are not current yet and were not.
    left: Vec<u64>,
    partition: usize,
    word: Vec<u8>,
    count: u64,
}

impl RunReader {
    pub(super) fn head(&self) -> Head {
        if self.partition < self.left.len() { Head::new(self.partition as u32, prefix(&self.word)) } else { Head::END }
    }

    pub(super) fn word(&self) -> &[u8] {
        &self.word
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn advance(&mut self) -> Result<()> {
        while self.left.get(self.partition) == Some(&0) {
            self.partition += 1;
        }
        let Some(left) = self.left.get_mut(self.partition) else { return Ok(()) };
        *left -= 1;
        self.read_record()
            .map_err(|error| Error::new(ErrorKind::Io, format!("cannot read counts that were written out: {error}")))
    }

    fn read_record(&mut self) -> std::io::Result<()> {
        let shared = read_number(&mut self.file)? as usize;
        let length = read_number(&mut self.file)? as usize;
        self.count = read_number(&mut self.file)?;
        self.word.resize(shared + length, 0);
        self.file.read_exact(&mut self.word[shared..])
    }
}

#[inline]
fn read_number(file: &mut BufReader<File>) -> std::io::Result<u64> {
    let (mut number, mut shift) = (0, 0);
    loop {
        let Some(&byte) = file.fill_buf()?.first() else { return Err(std::io::ErrorKind::UnexpectedEof.into()) };
        file.consume(1);
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(number);
        }
        shift += 7;
    }
}
