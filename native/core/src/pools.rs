//! Pools of threads.

use crate::{Error, ErrorKind, Result};

/// The most threads of a pool: more than most machines have. Twice as many take seconds to start and to end.
pub(crate) const MAX_THREADS: usize = 512;

/// Starts a pool of so many threads, `MAX_THREADS` at most.
///
/// # Errors
/// `Io` if they cannot be started.
pub(crate) fn thread_pool(threads: usize) -> Result<rayon::ThreadPool> {
    let threads = threads.min(MAX_THREADS);
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .map_err(|error| Error::new(ErrorKind::Io, format!("cannot start {threads} threads: {error}")))
}
