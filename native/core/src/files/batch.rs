//! Reading a batch of files on many threads.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, ArrayRef, Int32Array, LargeBinaryArray, RecordBatch, UInt64Array};
use arrow_buffer::{Buffer, OffsetBuffer};
use arrow_schema::{DataType, Field, Schema};
use rayon::prelude::*;

use super::contents::columns;
use super::read::{Found, digest_file, read_file};
use crate::arrays::byte_slices;
use crate::pools::thread_pool;
use crate::{Error, Result, Stop};

/// Files below a folder.
pub struct Files<'a> {
    /// The folder.
    pub root: &'a [u8],
    /// Their paths below it, any bytes; a binary array.
    pub paths: &'a dyn Array,
    /// Their sizes when they were listed; a u64 array. They say how much memory is made ready, nothing else.
    pub num_bytes: &'a dyn Array,
    /// Larger files are not read.
    pub max_bytes: u64,
}

/// Reads files on up to `threads` threads and returns a row for each, in order.
///
/// The columns are `num_bytes` (u64), `doc_id` (string: the SHA-256, empty for what was not read), `has_nul` (bool),
/// `is_wide` (bool: text of UTF-16 or UTF-32 by its byte-order mark) and `error` (i32: the operating system's number, 0
/// for none; a file that is no regular one any more does not exist). With `keep` there is `content` (large binary) too.
/// A file that is too large has no digest and no error.
///
/// # Errors
/// `Invalid` for columns of other types, with nulls or of unequal lengths, or, with `keep`, sizes beyond the memory;
/// `Io` if the threads cannot be started; `Stopped` if `stop` is set.
pub fn read_files(files: &Files<'_>, keep: bool, threads: usize, stop: &Stop) -> Result<RecordBatch> {
    let paths = full_paths(files)?;
    let sizes = listed_sizes(files, paths.len())?;
    if keep {
        check_memory(&sizes)?;
    }
    let pool = thread_pool(threads.clamp(1, paths.len().max(1)))?;
    let (found, content) = pool
        .install(|| if keep { keep_all(files, &paths, &sizes, stop) } else { (digest_all(files, &paths, stop), None) });
    stop.check()?;
    batch(&found, content)
}

fn full_paths(files: &Files<'_>) -> Result<Vec<Vec<u8>>> {
    let below = byte_slices(files.paths, "paths")?;
    Ok(below.into_iter().map(|path| [files.root, b"/", path].concat()).collect())
}

/// The sizes of files as they were listed, 0 for those that are too large.
fn listed_sizes(files: &Files<'_>, rows: usize) -> Result<Vec<usize>> {
    let sizes = files.num_bytes;
    if *sizes.data_type() != DataType::UInt64 || sizes.null_count() > 0 || sizes.len() != rows {
        return Err(Error::invalid(format!(
            "num_bytes must be a uint64 array of {rows} rows without nulls, not {} of {} rows",
            sizes.data_type(),
            sizes.len()
        )));
    }
    let sizes = sizes.as_primitive::<UInt64Type>().values().iter();
    Ok(sizes.map(|&size| if size > files.max_bytes { 0 } else { size as usize }).collect())
}

fn check_memory(sizes: &[usize]) -> Result<()> {
    let total = sizes.iter().try_fold(0_usize, |total, &size| total.checked_add(size));
    let is_there = total.is_some_and(|total| Vec::<u8>::new().try_reserve_exact(total).is_ok());
    if is_there { Ok(()) } else { Err(Error::invalid("num_bytes adds up to more memory than there is")) }
}

fn digest_all(files: &Files<'_>, paths: &[Vec<u8>], stop: &Stop) -> Vec<Found> {
    let digest = |buffer: &mut Vec<u8>, path: &Vec<u8>| {
        if stop.is_set() { Found::default() } else { digest_file(path, files.max_bytes, buffer) }
    };
    paths.par_iter().map_init(Vec::new, digest).collect()
}

/// Reads files into one buffer, each at the place that its listed size leaves for it.
fn keep_all(
    files: &Files<'_>,
    paths: &[Vec<u8>],
    sizes: &[usize],
    stop: &Stop,
) -> (Vec<Found>, Option<LargeBinaryArray>) {
    let mut buffer = vec![0; sizes.iter().sum()];
    let mut rest = buffer.as_mut_slice();
    let mut places = Vec::with_capacity(sizes.len());
    for &size in sizes {
        let (place, more) = rest.split_at_mut(size);
        places.push(place);
        rest = more;
    }
    let read = |(path, place): (&Vec<u8>, &mut [u8])| {
        if stop.is_set() { Found::default() } else { read_file(path, files.max_bytes, place) }
    };
    let found: Vec<Found> = paths.par_iter().zip(places).map(read).collect();
    let lengths = found.iter().map(|row| if row.digest.is_some() { row.num_bytes as usize } else { 0 });
    let is_in_place = |(row, (&size, length)): (&Found, (&usize, usize))| row.content.is_empty() && size == length;
    if !found.iter().zip(sizes.iter().zip(lengths.clone())).all(is_in_place) {
        buffer = moved(&found, sizes, &buffer);
    }
    let offsets = OffsetBuffer::from_lengths(lengths);
    (found, Some(LargeBinaryArray::new(offsets, Buffer::from_vec(buffer), None)))
}

/// Returns the bytes of files one after the other, some of which are not in their places.
fn moved(found: &[Found], sizes: &[usize], buffer: &[u8]) -> Vec<u8> {
    let (mut all, mut start) = (Vec::with_capacity(buffer.len()), 0);
    for (row, size) in found.iter().zip(sizes) {
        let place = &buffer[start..start + size];
        start += size;
        if row.digest.is_some() {
            let is_in_place = row.content.is_empty() && row.num_bytes > 0;
            all.extend_from_slice(if is_in_place { place } else { &row.content });
        }
    }
    all
}

fn batch(found: &[Found], content: Option<LargeBinaryArray>) -> Result<RecordBatch> {
    let num_bytes = found.iter().map(|row| row.num_bytes).collect::<UInt64Array>();
    let errors = found.iter().map(|row| row.error).collect::<Int32Array>();
    let mut all: Vec<(Field, ArrayRef)> = vec![(Field::new("num_bytes", DataType::UInt64, false), Arc::new(num_bytes))];
    all.extend(columns(found));
    all.push((Field::new("error", DataType::Int32, false), Arc::new(errors)));
    if let Some(content) = content {
        all.push((Field::new("content", DataType::LargeBinary, false), Arc::new(content)));
    }
    let (fields, arrays): (Vec<_>, Vec<_>) = all.into_iter().unzip();
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?)
}
