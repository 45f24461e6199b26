//! Reading a sorted run from disk; [`super::run`] writes it.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};

use super::head::{Head, prefix};
use crate::{Error, ErrorKind, Result};

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
    /// Reads from the beginning of `file`, which has so many words of each partition; the first word is current.
    pub(super) fn new(file: BufReader<File>, words: Vec<u64>) -> Result<Self> {
        let mut reader = Self { file, left: words, partition: 0, word: Vec::new(), count: 0 };
        reader.advance()?;
        Ok(reader)
    }

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
