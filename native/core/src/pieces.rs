//! Work on many rows, in pieces of about the same size that threads take one after another.

use std::ops::Range;

use rayon::prelude::*;

use crate::Result;
use crate::pools::{MAX_THREADS, thread_pool};

/// Pieces of work that each thread gets, so that uneven rows even out.
const PIECES_PER_THREAD: usize = 8;
/// Smaller pieces cost more to hand out than they gain.
const MIN_PIECE: usize = 64 << 10;

/// Cuts rows of these sizes into runs of about the same size; one run for one thread.
pub(crate) fn pieces(sizes: impl ExactSizeIterator<Item = usize> + Clone, threads: usize) -> Vec<Range<usize>> {
    let (rows, total) = (sizes.len(), sizes.clone().sum::<usize>());
    let threads = threads.min(MAX_THREADS);
    let target = if threads <= 1 { usize::MAX } else { (total / (threads * PIECES_PER_THREAD)).max(MIN_PIECE) };
    let (mut ranges, mut start, mut size) = (Vec::new(), 0, 0);
    for (row, length) in sizes.enumerate() {
        size += length;
        if size >= target {
            ranges.push(start..row + 1);
            (start, size) = (row + 1, 0);
        }
    }
    if start < rows {
        ranges.push(start..rows);
    }
    ranges
}

/// Calls `run` with each piece, on up to `threads` threads, and returns the results in order.
///
/// # Errors
/// Of the errors of `run` the first one's in order; `Io` if the threads cannot be started.
pub(crate) fn on_threads<P: Send, R: Send>(
    threads: usize,
    pieces: Vec<P>,
    run: impl Fn(P) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    if threads <= 1 || pieces.len() <= 1 {
        return pieces.into_iter().map(&run).collect();
    }
    let pool = thread_pool(threads.min(pieces.len()))?;
    let results: Vec<Result<R>> = pool.install(|| pieces.into_par_iter().map(&run).collect());
    results.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    #[test]
    fn pieces_cover_all_rows_in_order_and_none_is_larger_than_it_must_be() {
        let sizes = [0, 300_000, 10, 10, 100_000, 0];
        assert_eq!(pieces(sizes.iter().copied(), 1).first(), Some(&(0..6)));
        assert_eq!(pieces(sizes.iter().copied(), 2), [0..2, 2..5, 5..6]);
        assert!(pieces(std::iter::empty(), 4).is_empty());
        assert_eq!(pieces(sizes.iter().copied(), usize::MAX), pieces(sizes.iter().copied(), MAX_THREADS));
    }

    #[test]
    fn results_are_in_order_and_the_first_error_is_told() {
        let run = |piece: usize| if piece % 10 == 7 { Err(Error::invalid(format!("{piece}"))) } else { Ok(piece) };
        for threads in [1, 3] {
            assert_eq!(on_threads(threads, vec![3, 2, 1], run).ok(), Some(vec![3, 2, 1]));
            let error = on_threads(threads, (0..100).collect(), run).err().map(|error| error.to_string());
            assert_eq!(error.as_deref(), Some("7"));
        }
    }
}
