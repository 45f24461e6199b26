//! The tokens of many lines by the merges of words, which superwords are learned from, and by all merges.
//!
//! The words of lines come from a cache, and are put side by side, as [`super::joiner`] does. However the lines are
//! cut, the tokens are those of merging each line at once, because every place where words meet is checked.

use std::str;

use super::encoder::{LineEncoder, LineMemory};
use super::joints::Joints;
use super::pair_memo::PairMemo;
use super::superwords::Superwords;
use crate::encode::bpe::{Merge, Merges, Scratch};
use crate::encode::words::{Colleagues, PendingWords, Room, WordCache, WordEncoder, WordSpan};
use crate::pattern::{Pattern, Starts};
use crate::stop::NEVER;

/// Merges, and where they may cross borders of words.
pub(crate) struct LineMerges {
    table: Merges,
    joints: Joints,
    words: Pattern,
}

impl LineMerges {
    /// Takes the merges in the order of their ranks, the table of them, and the pattern of the words, which changes the
    /// time alone.
    pub(crate) fn new(table: Merges, merges: &[Merge], words: Pattern) -> Self {
        Self { joints: Joints::new(&table, merges), table, words }
    }
}

/// Merges of words and of superwords.
pub(crate) struct SuperwordMerges {
    table: Merges,
    superwords: Superwords,
    words: Pattern,
}

impl SuperwordMerges {
    /// Takes the table of the merges of words, that of all merges, which are of superwords from `first` on, and the
    /// pattern of the words, which changes the time alone. Nothing if the tables have no borders.
    pub(crate) fn new(table: Merges, whole: Merges, merges: &[Merge], first: usize, words: Pattern) -> Option<Self> {
        let have_borders = table.has_borders() && whole.has_borders();
        let superwords = have_borders.then(|| Superwords::new(&table, whole, merges, first))?;
        Some(Self { table, superwords, words })
    }
}

/// Cuts lines into tokens; one per thread, kept for its cache.
pub(crate) struct LineSegmenter {
    starts: Starts,
    cache: WordCache<u32>,
    pending: Box<PendingWords<u32>>,
    scratch: Scratch,
    merged: Vec<u32>,
    whole: WholeLines,
    lines: LineMemory<u32>,
}

/// What makes lines of the tokens of their words.
#[derive(Default)]
struct WholeLines {
    memo: PairMemo,
    scratch: Scratch,
    /// Where the line begins in the text, and where its tokens do.
    start: usize,
    first: usize,
    /// Its tokens that are no valid pair with the ones before them.
    breaks: Vec<usize>,
}

impl Default for LineSegmenter {
    fn default() -> Self {
        Self {
            starts: Starts::default(),
            cache: WordCache::new(),
            pending: Box::default(),
            scratch: Scratch::default(),
            merged: Vec::new(),
            whole: WholeLines::default(),
            lines: LineMemory::default(),
        }
    }
}

impl LineSegmenter {
    /// Appends the tokens of lines, none of them empty, to `tokens`, and where the tokens of each line end to `ends`.
    /// The lines lie one after the other in `text`, and end at `line_ends`.
    pub(crate) fn segment(
        &mut self,
        merges: &LineMerges,
        text: &[u8],
        line_ends: &[usize],
        tokens: &mut Vec<u32>,
        ends: &mut Vec<usize>,
    ) {
        if !merges.table.has_borders() || !are_text(text, line_ends) {
            return self.merge_each(&merges.table, text, line_ends, tokens, ends);
        }
        let Self { starts, cache, pending, scratch, merged, whole, .. } = self;
        starts.find(merges.words, text);
        whole.begin(tokens.len());
        let colleagues = Colleagues { words: None, room: &mut Room::default() };
        let table = &merges.table;
        let mut words =
            WordEncoder { merges: table, cache, colleagues, scratch, merged, pending, run: text, at: 0, stop: &NEVER };
        let mut each = |word: WordSpan, first: usize, tokens: &mut Vec<u32>| {
            whole.take(merges, text, word, first, tokens);
            if word.ends_line {
                ends.push(tokens.len());
            }
        };
        let mut start = 0;
        for &end in line_ends {
            starts.words_of_line(&text[..end], start, |end, ends_line| words.take(end, ends_line, tokens, &mut each));
            start = end;
        }
        words.settle(tokens, each);
    }

    /// Appends the tokens of lines by all merges to `tokens`; otherwise as [`Self::segment`].
    pub(crate) fn segment_superwords(
        &mut self,
        merges: &SuperwordMerges,
        text: &[u8],
        line_ends: &[usize],
        tokens: &mut Vec<u32>,
    ) {
        let SuperwordMerges { table, superwords, words } = merges;
        if !are_text(text, line_ends) {
            return self.merge_each(superwords.whole(), text, line_ends, tokens, &mut Vec::new());
        }
        let Self { starts, cache, pending, scratch, merged, lines, .. } = self;
        starts.find(*words, text);
        let colleagues = Colleagues { words: None, room: &mut Room::default() };
        let words =
            WordEncoder { merges: table, cache, colleagues, scratch, merged, pending, run: text, at: 0, stop: &NEVER };
        let mut lines = LineEncoder::new(superwords, starts, words, None, lines);
        for &end in line_ends {
            lines.take(end, false, tokens);
        }
        lines.end(tokens);
    }

    fn merge_each(
        &mut self,
        table: &Merges,
        text: &[u8],
        line_ends: &[usize],
        tokens: &mut Vec<u32>,
        ends: &mut Vec<usize>,
    ) {
        let mut start = 0;
        for &end in line_ends {
            table.merge(&mut self.scratch, &text[start..end], &NEVER, tokens);
            ends.push(tokens.len());
            start = end;
        }
    }
}

/// Whether each line is valid UTF-8: only then it has words.
fn are_text(text: &[u8], line_ends: &[usize]) -> bool {
    str::from_utf8(text).is_ok_and(|text| line_ends.iter().all(|&end| text.is_char_boundary(end)))
}

impl WholeLines {
    /// Begins with a text, whose tokens begin at `first`.
    fn begin(&mut self, first: usize) {
        self.memo.prepare();
        (self.start, self.first) = (0, first);
    }

    /// Takes a word, whose tokens are those from `first` on.
    #[inline]
    fn take(&mut self, merges: &LineMerges, text: &[u8], word: WordSpan, first: usize, tokens: &mut Vec<u32>) {
        let LineMerges { table, joints, .. } = merges;
        if first > self.first
            && joints.may_cross(text[word.start - 1], text[word.start])
            && !self.memo.is_valid_pair(table, tokens[first - 1], tokens[first])
        {
            self.breaks.push(first - self.first);
        }
        if word.ends_line {
            self.end_line(table, &text[self.start..word.end], tokens);
            (self.start, self.first) = (word.end, tokens.len());
        }
    }

    fn end_line(&mut self, table: &Merges, line: &[u8], tokens: &mut Vec<u32>) {
        if self.breaks.is_empty() {
            return;
        }
        if let Some(line) = table.word_bytes(line) {
            let whole = self.scratch.windows.put_together(&line, &tokens[self.first..], &self.breaks);
            tokens.truncate(self.first);
            tokens.extend_from_slice(whole);
        }
        self.breaks.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::joiner::tests::{Random, byte_ids, merges};
    use super::*;

    #[test]
    fn lines_are_cut_as_merging_each_at_once_does_though_words_meet_in_them_and_some_are_no_text() {
        let (mut random, mut segmenter, mut joined) = (Random(7), LineSegmenter::default(), 0);
        for round in 0..60 {
            let (merges, lengths) = merges(&mut random, 3, [3, 20, 80][round % 3]);
            // The letters are `a`, `;` and `c`, so merges cross borders of words.
            let mut ids = byte_ids();
            ids.swap(usize::from(b'b'), usize::from(b';'));
            let table = || Merges::new(ids.clone(), &merges, Arc::clone(&lengths));
            let (mut text, mut line_ends, mut expected, mut expected_ends) = (vec![], vec![], vec![], vec![]);
            let letters = if round % 6 == 5 { b"a;c\xff".as_slice() } else { b"a;c" };
            for _ in 0..40 {
                let start = text.len();
                text.extend((0..=random.below(60)).map(|_| letters[random.below(letters.len())]));
                line_ends.push(text.len());
                table().merge(&mut Scratch::default(), &text[start..], &NEVER, &mut expected);
                expected_ends.push(expected.len());
            }
            let (mut tokens, mut ends) = (Vec::new(), Vec::new());
            segmenter.cache = WordCache::new();
            segmenter.whole.memo = PairMemo::default();
            segmenter.segment(
                &LineMerges::new(table(), &merges, Pattern::NAMES),
                &text,
                &line_ends,
                &mut tokens,
                &mut ends,
            );
            assert!(tokens == expected && ends == expected_ends, "round {round}");
            joined += usize::from(tokens.len() < text.len());
        }
        assert!(joined > 50, "{joined}");
    }

    #[test]
    fn by_all_merges_lines_have_the_tokens_that_merging_each_at_once_gives() {
        let (mut random, mut joined) = (Random(9), 0);
        for round in 0..60 {
            let (merges, lengths) = merges(&mut random, 3, [3, 20, 80][round % 3]);
            let mut ids = byte_ids();
            ids.swap(usize::from(b'b'), usize::from(b';'));
            let table = |count| Merges::new(ids.clone(), &merges[..count], Arc::clone(&lengths));
            let first = random.below(merges.len());
            let words = Pattern::NAMES;
            let Some(both) = SuperwordMerges::new(table(first), table(merges.len()), &merges, first, words) else {
                continue;
            };
            let (mut text, mut line_ends, mut expected) = (vec![], vec![], vec![]);
            let letters = if round % 6 == 5 { b"a;c\xff".as_slice() } else { b"a;c" };
            for _ in 0..40 {
                let start = text.len();
                text.extend((0..=random.below(300)).map(|_| letters[random.below(letters.len())]));
                line_ends.push(text.len());
                table(merges.len()).merge(&mut Scratch::default(), &text[start..], &NEVER, &mut expected);
            }
            let mut tokens = Vec::new();
            LineSegmenter::default().segment_superwords(&both, &text, &line_ends, &mut tokens);
            assert_eq!(tokens, expected, "round {round}");
            joined += usize::from(tokens.len() < text.len());
        }
        assert!(joined > 30, "{joined}");
    }
}
