//! The lines of a document and their indentation, counted by the classes of bytes, 64 at a time.

use crate::blocks::{BYTES, Block, Classes};

/// The lines of a document that all end with `\n`, and of which none is indented with both tabs and spaces.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Lines {
    pub(super) all: u64,
    pub(super) endings: u64,
    pub(super) blank: u64,
    /// Those that are not blank and begin with tabs,
    pub(super) tabs: u64,
    /// or spaces.
    pub(super) spaces: u64,
}

/// What the bytes before a block leave behind: the last bit of some masks.
struct Before {
    newline: u64,
    indentation: u64,
    tab: u64,
}

impl Lines {
    /// Counts the lines of `source`; none if they are not as they have to be.
    pub(super) fn of(source: &[u8], classes: &Classes) -> Option<Self> {
        if memchr::memchr(b'\r', source).is_some() {
            return None;
        }
        let mut lines = Self::default();
        let mut before = Before { newline: 1, indentation: 0, tab: 0 };
        let mut mixed = 0;
        for block in classes.blocks() {
            mixed |= lines.add(block, &mut before);
        }
        if mixed != 0 {
            return None;
        }
        lines.add_last(source);
        Some(lines)
    }

    /// Adds the lines that end in a block, and the indentations; returns where tabs and spaces meet in these.
    #[inline]
    fn add(&mut self, &Block { newline, blank, tab, .. }: &Block, before: &mut Before) -> u64 {
        let starts = newline << 1 | before.newline;
        let first = blank & starts;
        // The carries of an addition fill the runs.
        let indentation = blank & !blank.wrapping_add(first | blank & before.indentation);
        let ends = (indentation << 1 | before.indentation) & !indentation;
        let behind_tab = tab << 1 | before.tab;
        let count = |mask: u64| u64::from(mask.count_ones());
        self.endings += count(newline);
        self.blank += count(newline & (starts | ends));
        let solid = ends & !newline;
        self.tabs += count(solid & behind_tab);
        self.spaces += count(solid & !behind_tab);
        let last = |mask: u64| mask >> (BYTES - 1);
        *before = Before { newline: last(newline), indentation: last(indentation), tab: last(tab) };
        indentation & !first & (tab ^ behind_tab)
    }

    /// Adds what is behind the last line ending.
    fn add_last(&mut self, source: &[u8]) {
        self.all = self.endings + u64::from(source.last().is_some_and(|&byte| byte != b'\n'));
        let blanks = source.iter().rev().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        let is_blank = blanks > 0 && source[..source.len() - blanks].last().is_none_or(|&byte| byte == b'\n');
        if is_blank {
            self.blank += 1;
            // Its indentation seemed to end at the end of the text.
            if source.ends_with(b"\t") { self.tabs -= 1 } else { self.spaces -= 1 }
        }
    }
}
