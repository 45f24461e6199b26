//! What a scan is given: the documents of a batch, and threads.

use arrow_array::RecordBatch;

use crate::documents::{binaries, strings};
use crate::pools::thread_pool;
use crate::{Error, Result};

/// The longest document that can be counted; larger ones could overflow the counters of a document.
const MAX_DOCUMENT_BYTES: usize = u32::MAX as usize;

/// Project and content of each row; an error if a document is longer than 4 GiB.
pub(super) fn countable(documents: &RecordBatch) -> Result<Vec<(&str, &[u8])>> {
    let projects = strings(documents, "project")?;
    Ok(projects.into_iter().zip(contents(documents)?).collect())
}

/// The content of each row; an error if a document is longer than 4 GiB.
pub(super) fn contents(documents: &RecordBatch) -> Result<Vec<&[u8]>> {
    let contents = binaries(documents, "content")?;
    if let Some((row, content)) = contents.iter().enumerate().find(|(_, content)| content.len() > MAX_DOCUMENT_BYTES) {
        return Err(Error::invalid(format!(
            "row {row}: a document of {} bytes; at most {MAX_DOCUMENT_BYTES} are possible, filter larger ones out",
            content.len()
        )));
    }
    Ok(contents)
}

/// Threads of their own for a scan; a pool has a bound, so ask it how many there are.
pub(super) fn scan_threads(threads: usize) -> Result<rayon::ThreadPool> {
    if threads == 0 {
        return Err(Error::invalid("threads is 0; a scan needs at least 1"));
    }
    thread_pool(threads)
}
