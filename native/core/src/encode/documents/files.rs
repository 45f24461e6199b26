//! Encoding of files: the threads that encode them read them.

use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};

use arrow_array::ListArray;

use super::batch::{DocumentIds, list_array};
use super::encoder::{Encoder, Worker};
use super::workers::Workers;
use crate::encode::id::Id;
use crate::pieces::{on_threads, pieces};
use crate::{Error, ErrorKind, Result, Stop};

/// Room for a file that is kept for the next one.
const MAX_KEPT_BYTES: usize = 16 << 20;

/// Encodes files, in order, with up to `threads` threads, each of which has one file in memory.
pub(crate) fn encode_files<T: Id>(
    encoder: &Encoder,
    workers: &Workers<T>,
    paths: &[PathBuf],
    threads: usize,
    stop: &Stop,
) -> Result<ListArray> {
    let lengths = paths.iter().map(|path| length_of(path)).collect::<Result<Vec<_>>>()?;
    let encode_range = |range: Range<usize>| {
        let bytes: usize = lengths[range.clone()].iter().sum();
        let mut piece = DocumentIds::with_capacity(bytes, range.len());
        let mut content = Vec::new();
        workers.with(|worker: &mut Worker<T>| {
            for path in &paths[range] {
                read(path, &mut content)?;
                encoder.encode(worker, &content, stop, &mut piece.ids).map_err(|error| named(path, &error))?;
                piece.ends.push(piece.ids.len());
            }
            Ok(piece)
        })
    };
    list_array(on_threads(threads, pieces(lengths.iter().copied(), threads), encode_range)?, threads)
}

fn length_of(path: &Path) -> Result<usize> {
    let found = path.metadata().map_err(|error| Error::of_file(path, &error))?;
    if !found.is_file() {
        let what = if found.is_dir() { "a folder" } else { "no regular file" };
        return Err(Error::new(ErrorKind::Io, format!("{}: is {what}: give the paths of files", path.display())));
    }
    let length = u32::try_from(found.len());
    length.map(|length| length as usize).map_err(|_| {
        Error::invalid(format!("{}: a file of {} bytes is too long: the limit is 4 GiB", path.display(), found.len()))
    })
}

/// Reads a file, but of one that grows no more than shows that it is too long.
fn read(path: &Path, content: &mut Vec<u8>) -> Result<()> {
    content.clear();
    content.shrink_to(MAX_KEPT_BYTES);
    let read = File::open(path).and_then(|file| file.take(1 << 32).read_to_end(content));
    read.map(drop).map_err(|error| Error::of_file(path, &error))
}

fn named(path: &Path, error: &Error) -> Error {
    Error::new(error.kind(), format!("{}: {error}", path.display()))
}
