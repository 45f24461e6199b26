//! Pools of threads.

use crate::{Error, ErrorKind, Result};

/// Starts a pool of so many threads.
///
/// # Errors
/// `Io` if they cannot be started.
pub(crate) fn thread_pool(threads: usize) -> Result<rayon::ThreadPool> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .map_err(|error| Error::new(ErrorKind::Io, format!("cannot start {threads} threads: {error}")))
}
