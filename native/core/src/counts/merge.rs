//! The k-way merge of sorted runs, by a tree of losers (Knuth, The Art of Computer Programming, volume 3, 5.4.1).

use super::batches::Batches;
use super::head::Head;
use super::run_reader::RunReader;
use super::sorted_words::SortedWords;
use crate::{Error, ErrorKind, Result};

/// A sorted run that is read word by word; each has a current word until it ends.
pub(super) enum Source {
    Sorted(SortedWords),
    Run(RunReader),
    Batches(Batches),
}

impl Source {
    fn head(&self) -> Head {
        match self {
            Source::Sorted(source) => source.head(),
            Source::Run(source) => source.head(),
            Source::Batches(source) => source.head(),
        }
    }

    fn word(&self) -> &[u8] {
        match self {
            Source::Sorted(source) => source.word(),
            Source::Run(source) => source.word(),
            Source::Batches(source) => source.word(),
        }
    }

    fn count(&self) -> u64 {
        match self {
            Source::Sorted(source) => source.count(),
            Source::Run(source) => source.count(),
            Source::Batches(source) => source.count(),
        }
    }

    fn advance(&mut self) -> Result<()> {
        match self {
            Source::Sorted(source) => {
                source.advance();
                Ok(())
            }
            Source::Run(source) => source.advance(),
            Source::Batches(source) => source.advance(),
        }
    }
}

/// The words of sorted runs in order, each once, with the sum of its counts.
pub(super) struct Merge {
    sources: Vec<Source>,
    heads: Vec<Head>,
    /// The source that lost at each inner node; at 0 the one that won all. The leaves follow, numbered as the sources.
    losers: Vec<usize>,
    partition: u32,
    word: Vec<u8>,
    count: u64,
}

impl Merge {
    /// Starts a merge; the first word is current.
    pub(super) fn new(sources: Vec<Source>) -> Result<Self> {
        let mut heads: Vec<_> = sources.iter().map(Source::head).collect();
        heads.resize(sources.len().max(1), Head::END);
        let losers = vec![0; heads.len()];
        let mut merge = Self { sources, heads, losers, partition: 0, word: Vec::new(), count: 0 };
        if merge.only().is_some() {
            return Ok(merge);
        }
        merge.play();
        merge.advance()?;
        Ok(merge)
    }

    /// The source, if there is one only: it has every word once.
    #[inline]
    fn only(&self) -> Option<&Source> {
        if let [only] = &self.sources[..] { Some(only) } else { None }
    }

    /// The partition of the current word, none at the end.
    pub(super) fn partition(&self) -> Option<u32> {
        let partition = self.only().map_or(self.partition, |only| only.head().partition);
        (partition != Head::END.partition).then_some(partition)
    }

    /// The current word.
    pub(super) fn word(&self) -> &[u8] {
        self.only().map_or(&self.word, Source::word)
    }

    /// The sum of its counts.
    pub(super) fn count(&self) -> u64 {
        self.only().map_or(self.count, Source::count)
    }

    /// Goes on to the next word.
    pub(super) fn advance(&mut self) -> Result<()> {
        if let [only] = &mut self.sources[..] {
            return only.advance();
        }
        let winner = self.losers[0];
        let head = self.heads[winner];
        self.partition = head.partition;
        self.word.clear();
        self.count = 0;
        if head == Head::END {
            return Ok(());
        }
        self.word.extend_from_slice(self.sources[winner].word());
        loop {
            let winner = self.losers[0];
            if self.heads[winner] != head || self.sources[winner].word() != self.word {
                return Ok(());
            }
            let count = self.sources[winner].count();
            self.count = self.count.checked_add(count).ok_or_else(|| {
                let word = self.word.escape_ascii();
                Error::new(ErrorKind::Corrupt, format!("the counts of \"{word}\" add up to more than 64 bits hold"))
            })?;
            self.sources[winner].advance()?;
            self.heads[winner] = self.sources[winner].head();
            self.replay(winner);
        }
    }

    /// Plays every match, from the leaves up.
    fn play(&mut self) {
        let leaves = self.sources.len();
        let mut winners: Vec<usize> = (0..leaves).chain(0..leaves).collect();
        for node in (1..leaves).rev() {
            let (left, right) = (winners[2 * node], winners[2 * node + 1]);
            let (winner, loser) = if self.beats(right, left) { (right, left) } else { (left, right) };
            (winners[node], self.losers[node]) = (winner, loser);
        }
        self.losers[0] = winners.get(1).map_or(0, |&winner| winner);
    }

    /// Plays the matches of a source that has a new head.
    fn replay(&mut self, source: usize) {
        let mut winner = source;
        let mut node = usize::midpoint(source, self.sources.len());
        while node > 0 {
            if self.beats(self.losers[node], winner) {
                std::mem::swap(&mut self.losers[node], &mut winner);
            }
            node /= 2;
        }
        self.losers[0] = winner;
    }

    #[inline]
    fn beats(&self, left: usize, right: usize) -> bool {
        let words = || self.sources[left].word().cmp(self.sources[right].word());
        self.heads[left].cmp(&self.heads[right]).then_with(words).is_lt()
    }
}
