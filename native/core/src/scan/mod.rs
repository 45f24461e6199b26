//! Counting what the lexer sees, and the words that vocabulary training needs, in one pass over documents.
//!
//! [`Scanner`] counts, each with hits and the number of documents that have at least one:
//!
//! - **Terms**, by their match mode. `ident`: the term is a whole identifier or keyword in code or in a directive (not
//!   the directive's name), outside comments and literals. `sql_string`: the term is a whole word inside a string
//!   literal, letter case as given. `dollar`: either of these, for a name with `$` in front. A word of a string is a
//!   maximal run of letters, digits, `_`, `$` and bytes from 0x80; escapes separate words, except in raw strings.
//!   Character literals and header names count for nothing.
//! - **Morphemes** in the components of identifiers that are no keywords. A component is a run of letters, compared in
//!   small letters, cut at `aB` and before the last capital of `ABCd`; anything but letters separates components.
//!   `prefix`: the component begins with the morpheme and is longer; `suffix`: it ends with it and is longer;
//!   `cpp_stem`: it is the morpheme or begins with it; `component`: it is the morpheme. A hit is a component that fits,
//!   so that `read_read` is two.
//! - **Namespaces**: the first name of every chain `a::b`, spaces and comments allowed between. `::a::b` leads with `a`.
//!   After template arguments (`a<b>::c::d`) only what is inside them can lead. A class that qualifies its member counts
//!   as well: which name is a namespace is not decided here. A name that is not UTF-8 is escaped with backslashes.
//! - **Keywords and naming styles**, over all projects, in the statistics.
//! - **Statistics**: totals that add up over scans. `bytes` is the sum of `bytes.code`, `bytes.comment`,
//!   `bytes.preprocessor` (directives without their spaces and comments), `bytes.string` (literals outside directives)
//!   and `bytes.whitespace`. `lines` are physical; `indentation.*` counts lines that are not blank by the spaces or tabs
//!   that they begin with. `identifiers` is without keywords and directive names.
//! - **Words**: what the pattern cuts the whole document into, comments and strings included.
//!
//! Every result is a sum over documents, written out sorted: the same for any number of threads, any order of the
//! documents and any cut into batches. Not done here: choosing among the terms, or deciding what a name means.

mod bytemap;
mod config;
mod identifier;
mod inline;
mod keywords;
mod output;
mod plan;
mod statistics;
mod strings;
#[cfg(test)]
mod tests;
mod words;
mod worker;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::RecordBatch;

use crate::documents::{binaries, strings};
use crate::{Error, ErrorKind, Result};
use plan::Plan;
use worker::Worker;

/// The longest document that can be counted; larger ones could overflow the counters of a document.
const MAX_DOCUMENT_BYTES: usize = u32::MAX as usize;

/// What a scan counted, each sorted bytewise by its columns from the first on; rows with no hits are left out.
#[derive(Clone, Debug, PartialEq)]
pub struct Counts {
    /// word (binary), count (u64).
    pub words: RecordBatch,
    /// term, category, project (string), hits, documents (u64).
    pub terms: RecordBatch,
    /// morpheme, position, project (string), hits, documents (u64).
    pub morphemes: RecordBatch,
    /// namespace, project (string), hits, documents (u64).
    pub namespaces: RecordBatch,
    /// name (string), value (u64); every name is always there.
    pub statistics: RecordBatch,
}

/// Counts documents.
pub struct Scanner {
    plan: Arc<Plan>,
    pool: rayon::ThreadPool,
    workers: Vec<Worker>,
}

impl Scanner {
    /// Prepares a scan on `threads` threads of what the JSON text `config` asks for:
    /// `{"pattern": NAME, "candidates": [{"term", "category", "match"}], "morphemes": [{"morpheme", "position"}]}`.
    ///
    /// # Errors
    ///
    /// If `config` cannot be used, `threads` is 0, or the threads cannot be started.
    pub fn new(config: &str, threads: usize) -> Result<Self> {
        if threads == 0 {
            return Err(Error::invalid("threads is 0; a scan needs at least 1"));
        }
        let plan = Arc::new(Plan::from_json(config)?);
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .map_err(|error| Error::new(ErrorKind::Io, format!("cannot start {threads} threads: {error}")))?;
        let workers = new_workers(&plan, threads);
        Ok(Self { plan, pool, workers })
    }

    /// Counts every document of a batch with the columns `project` (string) and `content` (binary); others are ignored.
    ///
    /// # Errors
    ///
    /// If a column is missing, has another type or a null, or a document is longer than 4 GiB; then none is counted.
    pub fn add(&mut self, documents: &RecordBatch) -> Result<()> {
        let documents = countable(documents)?;
        let next = AtomicUsize::new(0);
        self.pool.scope(|scope| {
            for worker in &mut self.workers {
                let (documents, next) = (&documents, &next);
                scope.spawn(move |_| {
                    while let Some((project, content)) = documents.get(next.fetch_add(1, Ordering::Relaxed)) {
                        worker.count(project, content);
                    }
                });
            }
        });
        Ok(())
    }

    /// Gives the counts of all documents added so far, and starts anew.
    ///
    /// # Errors
    ///
    /// If a column would be longer than 2 GiB.
    pub fn finish(&mut self) -> Result<Counts> {
        let fresh = new_workers(&self.plan, self.workers.len());
        let workers = std::mem::replace(&mut self.workers, fresh);
        self.pool.install(|| output::counts(&self.plan, workers))
    }
}

/// Project and content of each row; an error if a document is longer than 4 GiB.
fn countable(documents: &RecordBatch) -> Result<Vec<(&str, &[u8])>> {
    let projects = strings(documents, "project")?;
    let contents = binaries(documents, "content")?;
    if let Some((row, content)) = contents.iter().enumerate().find(|(_, content)| content.len() > MAX_DOCUMENT_BYTES) {
        return Err(Error::invalid(format!(
            "row {row}: a document of {} bytes; at most {MAX_DOCUMENT_BYTES} are possible, filter larger ones out",
            content.len()
        )));
    }
    Ok(projects.into_iter().zip(contents).collect())
}

fn new_workers(plan: &Arc<Plan>, threads: usize) -> Vec<Worker> {
    (0..threads).map(|_| Worker::new(Arc::clone(plan))).collect()
}
