//! The words of one thread, in a table for each partition of projects.

use super::table::WordTable;
use super::totals::WordTotals;

/// Tables of words by partition; one for all words where their own bytes decide it.
pub(in crate::scan) struct ProjectTotals {
    /// Few: a thread sees documents of a few projects before words are taken out.
    tables: Vec<(Option<u32>, WordTotals)>,
    /// The one that was used last.
    current: usize,
    share_bytes: usize,
}

impl ProjectTotals {
    /// No tables yet; all of them together may take `share_bytes`.
    pub(in crate::scan) fn new(share_bytes: usize) -> Self {
        Self { tables: Vec::new(), current: 0, share_bytes }
    }

    /// The table of a partition, made when it is asked for first.
    pub(in crate::scan) fn table(&mut self, partition: Option<u32>) -> &mut WordTotals {
        let known = self.tables.iter().position(|&(own, _)| own == partition);
        let at = known.unwrap_or_else(|| {
            self.tables.push((partition, WordTotals::new(self.share_bytes, partition)));
            self.tables.len() - 1
        });
        if at != self.current {
            let recent = self.tables[self.current].1.take_recent();
            self.tables[at].1.put_recent(recent);
            self.current = at;
        }
        &mut self.tables[at].1
    }

    /// Takes all tables out.
    pub(in crate::scan) fn take(&mut self) -> Vec<WordTable> {
        self.current = 0;
        self.tables.drain(..).map(|(_, totals)| totals.finish()).collect()
    }

    /// The memory of everything that grows with the words.
    pub(in crate::scan) fn memory_bytes(&self) -> usize {
        self.tables.iter().map(|(_, totals)| totals.memory_bytes()).sum()
    }
}
