//! Counting words alone: what a scan counts as words, without the lexer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader};
use rayon::ThreadPool;

use super::sums;
use super::totals::WordTotals;
use crate::Result;
use crate::counts::words_schema;
use crate::pattern::{Pattern, Starts};
use crate::scan::input::{contents, scan_threads};

/// Counts the words of documents, or their lines, if the pattern cuts lines.
///
/// All of them are kept in memory.
pub struct WordCounter {
    pattern: Pattern,
    pool: ThreadPool,
    workers: Vec<Worker>,
}

/// What a thread counts.
struct Worker {
    words: WordTotals,
    /// Made again for each document, kept for their memory.
    starts: Starts,
}

impl WordCounter {
    /// Prepares counting on `threads` threads.
    ///
    /// # Errors
    ///
    /// If there is no pattern of that name, `threads` is 0, or the threads cannot be started.
    pub fn new(pattern: &str, threads: usize) -> Result<Self> {
        let pattern = Pattern::by_name(pattern)?;
        let pool = scan_threads(threads)?;
        let worker = |_| Worker { words: WordTotals::new(usize::MAX, None), starts: Starts::default() };
        let workers = (0..pool.current_num_threads()).map(worker).collect();
        Ok(Self { pattern, pool, workers })
    }

    /// Counts every document of a batch with the column `content` (binary); others are ignored.
    ///
    /// # Errors
    ///
    /// If the column is missing, has another type or a null, or a document is longer than 4 GiB; then none is counted.
    pub fn add(&mut self, documents: &RecordBatch) -> Result<()> {
        let documents = contents(documents)?;
        let (pattern, next) = (self.pattern, AtomicUsize::new(0));
        self.pool.scope(|scope| {
            for worker in &mut self.workers {
                let (documents, next) = (&documents, &next);
                scope.spawn(move |_| {
                    while let Some(source) = documents.get(next.fetch_add(1, Ordering::Relaxed)) {
                        worker.count(pattern, source);
                    }
                });
            }
        });
        Ok(())
    }

    /// Gives the words of all documents added so far, word (binary) and count (u64), each once, in an order that
    /// depends on nothing but them, in batches of at most 8 MiB; and starts anew.
    ///
    /// # Errors
    ///
    /// If a word is longer than 2 GiB.
    pub fn finish(&mut self) -> Result<impl RecordBatchReader + Send + use<>> {
        let tables: Vec<_> = self
            .workers
            .iter_mut()
            .map(|worker| std::mem::replace(&mut worker.words, WordTotals::new(usize::MAX, None)).finish())
            .collect();
        let batches = self.pool.install(|| sums::add_up(&tables))?;
        Ok(RecordBatchIterator::new(batches.into_iter().map(Ok), Arc::new(words_schema())))
    }
}

impl Worker {
    fn count(&mut self, pattern: Pattern, source: &[u8]) {
        let Self { words, starts } = self;
        starts.find(pattern, source);
        if pattern.is_lines() {
            words.count_lines(source, starts);
        } else {
            words.count_nameless(source, starts);
        }
    }
}
