//! Reading one file.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, IoSliceMut, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;

use sha2::{Digest, Sha256};

/// Pieces in which a file is read whose bytes are not kept.
pub(super) const PIECE_BYTES: usize = 256 << 10;

/// The longest byte-order mark.
const MARK_BYTES: usize = 4;

/// What was found in one file.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Its size; of a file that is too large what is known of it.
    pub num_bytes: u64,
    /// SHA-256 of its bytes; `None` if it was not read, or not to its end.
    pub digest: Option<[u8; 32]>,
    pub has_nul: bool,
    /// Whether it begins with the byte-order mark of UTF-16 or UTF-32, and has a NUL byte as such text does.
    pub is_wide: bool,
    /// The number of the error of the operating system, 0 for none.
    pub error: i32,
    /// Its bytes, if they are kept and did not fit where they were expected.
    pub content: Vec<u8>,
}

impl From<io::Error> for Found {
    fn from(error: io::Error) -> Self {
        Self { error: error.raw_os_error().unwrap_or(libc::EINVAL), ..Self::default() }
    }
}

/// Reads a file whose bytes are not kept, in pieces through `buffer`.
pub(super) fn digest_file(path: &[u8], max_bytes: u64, buffer: &mut Vec<u8>) -> Found {
    let mut digest = Digesting::default();
    let mut read = || -> io::Result<u64> {
        let (mut file, size) = open(path)?;
        if size > max_bytes {
            return Ok(size);
        }
        buffer.resize(PIECE_BYTES, 0);
        loop {
            let wanted = max_bytes.saturating_add(1).saturating_sub(digest.num_bytes).min(PIECE_BYTES as u64) as usize;
            let num_bytes = read_some(&mut file, &mut buffer[..wanted])?;
            digest.add(&buffer[..num_bytes]);
            // A short read that ends at the size is the end of a file that nobody writes.
            if num_bytes == 0 || num_bytes < wanted && digest.num_bytes == size {
                return Ok(digest.num_bytes);
            }
        }
    };
    match read() {
        Ok(num_bytes) if num_bytes > max_bytes => Found { num_bytes, ..Found::default() },
        Ok(_) => digest.finish(),
        Err(error) => error.into(),
    }
}

/// Reads a file into `place`, which has its expected size; a file of another size is returned as `content`.
pub(super) fn read_file(path: &[u8], max_bytes: u64, place: &mut [u8]) -> Found {
    let mut digest = Digesting::default();
    let mut content = Vec::new();
    let mut read = || -> io::Result<u64> {
        let (mut file, size) = open(path)?;
        if size > max_bytes {
            return Ok(size);
        }
        if size == place.len() as u64 && size > 0 && read_whole(&mut file, place, &mut content)? {
            digest.add(place);
            return Ok(size);
        }
        file.take(max_bytes.saturating_add(1).saturating_sub(content.len() as u64)).read_to_end(&mut content)?;
        digest.add(&content);
        Ok(content.len() as u64)
    };
    match read() {
        Ok(num_bytes) if num_bytes > max_bytes => Found { num_bytes, ..Found::default() },
        Ok(_) => Found { content, ..digest.finish() },
        Err(error) => error.into(),
    }
}

/// Opens a regular file and returns it with its size.
fn open(path: &[u8]) -> io::Result<(File, u64)> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(OsStr::from_bytes(path))?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::from_raw_os_error(libc::ENOENT));
    }
    Ok((file, metadata.len()))
}

/// Fills `place` with the bytes of a file and returns whether they are all; else what was read is in `content`.
fn read_whole(file: &mut File, place: &mut [u8], content: &mut Vec<u8>) -> io::Result<bool> {
    let mut more = [0];
    let num_bytes = loop {
        match file.read_vectored(&mut [IoSliceMut::new(place), IoSliceMut::new(&mut more)]) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            result => break result?,
        }
    };
    if num_bytes == place.len() {
        return Ok(true);
    }
    content.extend_from_slice(&place[..num_bytes.min(place.len())]);
    content.extend_from_slice(&more[..num_bytes.saturating_sub(place.len())]);
    Ok(false)
}

fn read_some(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match file.read(buffer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// The digest of bytes that come in pieces.
#[derive(Default)]
struct Digesting {
    sha256: Sha256,
    num_bytes: u64,
    has_nul: bool,
    begin: Vec<u8>,
}

impl Digesting {
    fn add(&mut self, bytes: &[u8]) {
        self.sha256.update(bytes);
        self.num_bytes += bytes.len() as u64;
        self.has_nul = self.has_nul || memchr::memchr(0, bytes).is_some();
        self.begin.extend_from_slice(&bytes[..bytes.len().min(MARK_BYTES - self.begin.len())]);
    }

    fn finish(self) -> Found {
        let (num_bytes, has_nul) = (self.num_bytes, self.has_nul);
        // The mark of UTF-32 in little-endian order begins with that of UTF-16.
        let has_mark =
            [b"\xff\xfe".as_slice(), b"\xfe\xff", b"\0\0\xfe\xff"].iter().any(|mark| self.begin.starts_with(mark));
        Found {
            num_bytes,
            has_nul,
            is_wide: has_mark && has_nul,
            digest: Some(self.sha256.finalize().into()),
            ..Found::default()
        }
    }
}

/// What is found in bytes that are in memory.
pub(super) fn digest_bytes(bytes: &[u8]) -> Found {
    let mut digest = Digesting::default();
    digest.add(bytes);
    digest.finish()
}
