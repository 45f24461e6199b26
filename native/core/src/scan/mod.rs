//! Counting what the lexer sees, and the words that vocabulary training needs, in one pass over documents.
//!
//! [`Scanner`] counts, each with hits and the number of documents that have at least one:
//!
//! - **Terms**, by their match mode. `ident`: the term is a whole identifier or keyword in code or in a directive (not
//!   the directive's name), outside comments and literals. `prefix`: the same for an identifier that is no keyword and
//!   is the term or begins with it; a small letter after a term that does not end in `_` is another word. `sql_string`: the term is a
//!   whole word inside a string literal, letter case as given. `string`: the same for words in any letters, and for
//!   whole chains of words with dots between them (`mhlo.add`). `dollar`: `ident` or `sql_string`, for a name with `$`
//!   in front. `qualified`: the term is a whole chain of names, `std::chrono::seconds` (not `chrono::seconds` in it). A
//!   word of a string is a maximal run of letters, digits, `_`, `$` and bytes from 0x80; escapes separate words, except in raw strings. Character literals
//!   and header names count for nothing.
//! - **Morphemes** in the components of identifiers that are no keywords. A component is a run of letters, compared in
//!   small letters, cut at `aB` and before the last capital of `ABCd`; anything but letters separates components.
//!   `prefix`: the component begins with the morpheme and is longer; `suffix`: it ends with it and is longer;
//!   `cpp_stem`: it is the morpheme or begins with it; `component`: it is the morpheme. A hit is a component that fits,
//!   so that `read_read` is two.
//! - **Namespaces**: the first name of every chain `a::b`, spaces and comments allowed between. `::a::b` leads with
//!   `a`. After template arguments (`a<b>::c::d`) only what is inside them can lead. A class that qualifies its member
//!   counts as well: which name is a namespace is not decided here. Each name of a chain, its last one too, is an
//!   identifier like any other. A name that is not UTF-8 is escaped with backslashes.
//! - **Families**, if the configuration asks for them: how identifiers begin that are no keywords and have components.
//!   `cudnnBackendCreate` is of the families `cudnn` and `cudnnBackend`: what comes before the second component, and
//!   before the third. Of a family, `names` is the most different identifiers of it in one document.
//! - **Keywords and naming styles**, over all projects, in the statistics.
//! - **Statistics**: totals that add up over scans. `bytes` is the sum of `bytes.code`, `bytes.comment`,
//!   `bytes.preprocessor` (directives without their spaces and comments), `bytes.string` (literals outside directives),
//!   `bytes.whitespace` and `bytes.disabled`. `lines` are physical; `indentation.*` counts lines that are not blank by
//!   the spaces or tabs that they begin with. `identifiers` is without keywords and directive names.
//! - **Words**: what the pattern cuts the whole document into, comments and strings included. **Lines**, if there is a
//!   pattern for them: what that pattern cuts the document into, each nearly always made of whole words (`pattern`).
//!
//! What is between `#if 0` and the `#else`, `#elif` or `#endif` that ends it is counted apart: as `bytes.disabled` and
//! `disabled.identifiers` (keywords included), as lines and as words, and as nothing else. No other condition is looked
//! at.
//!
//! Every result is a sum over documents, written out sorted: the same for any number of threads, any order of the
//! documents, any cut into batches and any budget of memory. Not done here: choosing among the terms, or deciding what
//! a name means.
//!
//! How: a document is classified 64 bytes at a time (`blocks`). Only at bytes that can begin a comment, literal or
//! directive does the lexer say where that ends (`outline`); between these the identifiers are the words of the
//! pattern (`code`), and one look at a word counts both (`words`). Directives, and the few documents in which words are
//! not enough, are counted token by token (`tokens`). The tests hold the two ways and a readable twin equal.

mod bytemap;
mod code;
mod config;
mod families;
mod features;
mod identifier;
mod input;
mod keywords;
mod lines;
mod names;
mod outline;
mod output;
mod plan;
mod statistics;
mod strings;
mod tally;
#[cfg(test)]
mod tests;
mod tokens;
mod words;
mod worker;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use arrow_array::RecordBatch;

use crate::counts::{SortedWords, Spill, WordReader};
use crate::{Error, ErrorKind, Result};
use input::{countable, scan_threads};
use plan::Plan;
pub use words::WordCounter;
use words::WordTable;
use worker::Worker;

/// Memory that tables take at most, as a multiple of what they hold: half as much again while one of them grows to
/// twice its size, and nearly as much again while they are sorted; and a table is looked at only after it has grown.
const PEAK_FACTOR: usize = 3;

/// How much memory the tables of a scan may take, and where to write what is beyond it.
///
/// The tables of words, of lines and of identifiers count. What does not: one document's new words, the batch that is
/// being counted, the rows of the other kinds, about 1 MiB of caches a thread, and about 16 MiB while words are read
/// out.
#[derive(Clone, Debug)]
pub struct Budget {
    /// For all threads together.
    pub memory_bytes: usize,
    /// A folder for temporary files; it is an error to need one where there is none.
    pub spill_dir: Option<PathBuf>,
}

impl Default for Budget {
    fn default() -> Self {
        Self { memory_bytes: 2 << 30, spill_dir: None }
    }
}

/// What a scan counted, each sorted bytewise by its columns from the first on; rows with no hits are left out.
pub struct Counts {
    /// partition (u16), word (binary), count (u64), in batches of one partition and at most 8 MiB.
    pub words: WordReader,
    /// The lines, as the words; none if the configuration has no `unit_pattern`.
    pub lines: Option<WordReader>,
    /// term, category, project (string), hits, documents (u64).
    pub terms: RecordBatch,
    /// morpheme, position, project (string), hits, documents (u64).
    pub morphemes: RecordBatch,
    /// namespace, project (string), hits, documents (u64).
    pub namespaces: RecordBatch,
    /// family (string), hits, documents, names (u64); none if the configuration does not ask for it.
    pub families: Option<RecordBatch>,
    /// name (string), value (u64); every name is always there.
    pub statistics: RecordBatch,
}

/// Counts documents.
pub struct Scanner {
    plan: Arc<Plan>,
    pool: rayon::ThreadPool,
    workers: Vec<Worker>,
    /// What the tables of a worker may hold.
    share_bytes: usize,
    spilled_words: Spill,
    spilled_lines: Spill,
    failed: bool,
}

impl Scanner {
    /// Prepares a scan on `threads` threads of what the JSON text `config` asks for:
    /// `{"pattern": NAME, "unit_pattern": NAME, "word_partitions": 1, "partition_by_project": false, "candidates":
    /// [{"term", "category", "match"}], "morphemes": [{"morpheme", "position"}], "families": false}`; all but the
    /// pattern may be left out.
    ///
    /// # Errors
    ///
    /// If `config` cannot be used, `threads` is 0, or the threads cannot be started.
    pub fn new(config: &str, threads: usize, budget: Budget) -> Result<Self> {
        let pool = scan_threads(threads)?;
        let plan = Arc::new(Plan::from_json(config)?);
        let threads = pool.current_num_threads();
        let share_bytes = budget.memory_bytes / threads / PEAK_FACTOR;
        let workers = new_workers(&plan, threads, share_bytes);
        let [spilled_words, spilled_lines] = [budget.spill_dir.clone(), budget.spill_dir].map(Spill::new);
        Ok(Self { plan, pool, workers, share_bytes, spilled_words, spilled_lines, failed: false })
    }

    /// Counts every document of a batch with the columns `project` (string) and `content` (binary); others are ignored.
    ///
    /// # Errors
    ///
    /// If a column is missing, has another type or a null, or a document is longer than 4 GiB; then none is counted.
    /// If words have to be written out and cannot be; then the scan is lost, as it is after a panic, and so it answers
    /// from then on.
    pub fn add(&mut self, documents: &RecordBatch) -> Result<()> {
        self.check()?;
        let documents = countable(documents)?;
        let next = AtomicUsize::new(0);
        // Neither an error nor a panic leaves a document that is counted in part.
        self.failed = true;
        while next.load(Ordering::Relaxed) < documents.len() {
            if self.count(&documents, &next) {
                self.write_out()?;
            }
        }
        self.failed = false;
        Ok(())
    }

    /// Counts documents until there are no more or a worker has its share of memory, and says whether one has.
    fn count(&mut self, documents: &[(&str, &[u8])], next: &AtomicUsize) -> bool {
        let full = AtomicBool::new(false);
        self.pool.scope(|scope| {
            for worker in &mut self.workers {
                let full = &full;
                scope.spawn(move |_| {
                    while let Some((project, content)) = documents.get(next.fetch_add(1, Ordering::Relaxed)) {
                        worker.count(project, content);
                        if worker.is_full() {
                            full.store(true, Ordering::Relaxed);
                        }
                        if full.load(Ordering::Relaxed) {
                            break;
                        }
                    }
                });
            }
        });
        full.into_inner()
    }

    /// Writes the words and lines of all workers to disk; their tables start anew.
    fn write_out(&mut self) -> Result<()> {
        let words = self.take(Worker::take_words);
        self.spilled_words.write(words)?;
        if self.plan.line_pattern.is_some() {
            let lines = self.take(Worker::take_lines);
            self.spilled_lines.write(lines)?;
        }
        Ok(())
    }

    fn take(&mut self, take: fn(&mut Worker) -> Vec<WordTable>) -> SortedWords {
        let tables: Vec<_> = self.workers.iter_mut().flat_map(take).collect();
        self.pool.install(|| SortedWords::new(tables, self.plan.word_partitions))
    }

    /// Gives the counts of all documents added so far, and starts anew.
    ///
    /// # Errors
    ///
    /// If what was written out cannot be read, or words could not be written out.
    pub fn finish(&mut self) -> Result<Counts> {
        self.check()?;
        self.failed = true;
        let words = self.take(Worker::take_words);
        let words = self.spilled_words.finish(words)?;
        let lines = self.take(Worker::take_lines);
        let lines = self.plan.line_pattern.map(|_| self.spilled_lines.finish(lines)).transpose()?;
        let fresh = new_workers(&self.plan, self.workers.len(), self.share_bytes);
        let workers = std::mem::replace(&mut self.workers, fresh);
        let output::Small { terms, morphemes, namespaces, families, statistics } = output::small(&self.plan, &workers)?;
        self.failed = false;
        Ok(Counts { words, lines, terms, morphemes, namespaces, families, statistics })
    }

    fn check(&self) -> Result<()> {
        if self.failed {
            let message = "a call of this scan did not come to its end, and its counts are lost: begin with a new one";
            return Err(Error::new(ErrorKind::Io, message));
        }
        Ok(())
    }
}

fn new_workers(plan: &Arc<Plan>, threads: usize, share_bytes: usize) -> Vec<Worker> {
    (0..threads).map(|_| Worker::new(Arc::clone(plan), share_bytes)).collect()
}
