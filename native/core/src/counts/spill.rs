//! The runs that were written out.

use std::path::PathBuf;

use super::merge::{Merge, Source};
use super::reader::WordReader;
use super::run::Run;
use super::sorted_words::SortedWords;
use crate::{Error, ErrorKind, Result};

/// The most runs of a level; one more and all of them are merged into one of the next, so that few files are open.
const RUNS_PER_LEVEL: usize = 32;

/// Runs on disk, in levels: one of level n + 1 is made of [`RUNS_PER_LEVEL`] of level n.
pub(crate) struct Spill {
    folder: Option<PathBuf>,
    levels: Vec<Vec<Run>>,
}

impl Spill {
    /// Runs that go to `folder`; without one, nothing can be written out.
    pub(crate) fn new(folder: Option<PathBuf>) -> Self {
        Self { folder, levels: Vec::new() }
    }

    /// Writes sorted words out.
    ///
    /// # Errors
    ///
    /// If there is no folder, or it cannot be written.
    pub(crate) fn write(&mut self, sorted: SortedWords) -> Result<()> {
        let Some(folder) = &self.folder else {
            let message = "the counts have grown beyond memory_bytes, and there is no folder to write them to: give \
                           spill_dir, or more memory_bytes";
            return Err(Error::new(ErrorKind::Io, message));
        };
        let mut run = Run::write(Merge::new(vec![Source::Sorted(sorted)])?, folder)?;
        for level in 0.. {
            if self.levels.len() == level {
                self.levels.push(Vec::new());
            }
            self.levels[level].push(run);
            if self.levels[level].len() < RUNS_PER_LEVEL {
                break;
            }
            run = Run::write(Merge::new(sources(self.levels[level].drain(..))?)?, folder)?;
        }
        Ok(())
    }

    /// Everything that was written out, and `sorted`: partition, word and count, in batches of one partition each.
    /// Nothing is written out any more after this.
    ///
    /// # Errors
    ///
    /// If a run cannot be read.
    pub(crate) fn finish(&mut self, sorted: SortedWords) -> Result<WordReader> {
        let mut sources = sources(std::mem::take(&mut self.levels).into_iter().flatten())?;
        sources.push(Source::Sorted(sorted));
        Ok(WordReader::partitioned(Merge::new(sources)?))
    }
}

fn sources(runs: impl Iterator<Item = Run>) -> Result<Vec<Source>> {
    runs.map(|run| Ok(Source::Run(run.read()?))).collect()
}
