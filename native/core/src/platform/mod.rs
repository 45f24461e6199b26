//! Which platforms a document is written for, from its code and its path.
//!
//! [`PlatformDetector`] has rules: for each label, pieces of evidence of four kinds, each one enough by itself.
//!
//! - **Identifiers**, exact or a prefix with `*`: whole identifiers and keywords in code, the conditions of the
//!   preprocessor included, whatever the condition says of them.
//! - **Includes**, exact or a prefix with `*`: header names after `#include` and the like, `\` read as `/`, without
//!   regard to case. Written as `<...>` (or `<...*`), names in quotes do not count.
//! - **Paths**: a folder or, with a dot, the extension; whole and without regard to case.
//! - **Sequences** of tokens, spaces and comments allowed between: `#pragma omp`, `if constexpr`,
//!   `__cplusplus >= 201703L`. `@name` matches any identifier, `@number` any number. They do not reach from one
//!   line of the preprocessor into other text.
//!
//! Comments, literals and the text of `#error` and `#warning` count for nothing. A document has every label with
//! evidence; if there are more than the rules allow, those with most distinct pieces, of equals the lower id.
//! Not done: evaluating conditions, following includes, concluding one label from another.

mod beginnings;
mod code;
mod document;
mod names;
mod output;
mod rules;
mod sequences;
#[cfg(test)]
mod tests;

use arrow_array::RecordBatch;
use rayon::prelude::*;

pub use document::Platforms;

use crate::documents::{binaries, strings};
use crate::pools::thread_pool;
use crate::{Error, Result};
use document::Finder;
use rules::Rules;

/// Finds the platforms of documents.
pub struct PlatformDetector {
    rules: Rules,
}

impl PlatformDetector {
    /// Compiles rules, JSON text: `{"max_ids": N, "labels": [{"id", "category", "label", "identifiers": [...],
    /// "includes": [...], "paths": [...], "sequences": [...]}]}`; kinds of evidence that a label does not use may be
    /// left out.
    ///
    /// # Errors
    ///
    /// If the text has another form, or a rule in it cannot be used.
    pub fn new(rules: &str) -> Result<Self> {
        Ok(Self { rules: Rules::new(rules)? })
    }

    /// The platforms of one document.
    pub fn detect_one(&self, path: &str, content: &[u8]) -> Platforms {
        Finder::new(&self.rules).find(path, content)
    }

    /// The platforms of every document of a batch with the columns `path` (string) and `content` (binary): a batch
    /// with as many rows and the columns `platform_ids` (list of uint16, ascending) and `platform_info` (string).
    /// The number of threads changes nothing in it.
    ///
    /// # Errors
    ///
    /// If a column is missing, has another type or a null, or the threads cannot be started.
    pub fn detect(&self, documents: &RecordBatch, threads: usize) -> Result<RecordBatch> {
        let paths = strings(documents, "path")?;
        let documents: Vec<_> = paths.into_iter().zip(binaries(documents, "content")?).collect();
        let found = if threads == 1 {
            let mut finder = Finder::new(&self.rules);
            documents.iter().map(|&(path, content)| finder.find(path, content)).collect()
        } else {
            self.detect_parallel(&documents, threads)?
        };
        output::platforms(&found)
    }

    fn detect_parallel(&self, documents: &[(&str, &[u8])], threads: usize) -> Result<Vec<Platforms>> {
        if threads == 0 {
            return Err(Error::invalid("threads is 0; give 1 or more"));
        }
        let pool = thread_pool(threads)?;
        let one = |finder: &mut Finder<'_>, &(path, content): &(&str, &[u8])| finder.find(path, content);
        Ok(pool.install(|| documents.par_iter().map_init(|| Finder::new(&self.rules), one).collect()))
    }
}
