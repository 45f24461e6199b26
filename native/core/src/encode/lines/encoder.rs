//! From the lines of a text to ids.
//!
//! Words are taken in batches, over the ends of lines, and looked up ([`crate::encode::words`]). Their tokens become
//! those of lines ([`super::open_lines`]), and these are joined to superwords ([`super::joiner`]).

use super::joiner::{LineJoiner, SegmentTools};
use super::open_lines::{LineSource, OpenLines};
use super::superwords::Superwords;
use crate::encode::id::Id;
use crate::encode::words::{Colleagues, Room, SharedWords, WordEncoder};
use crate::pattern::Starts;

/// What one thread keeps between documents.
pub(crate) struct LineMemory<T: Id> {
    lines: OpenLines<T>,
    /// Made when it is needed.
    joiner: Option<LineJoiner<T>>,
    room: Room,
}

impl<T: Id> Default for LineMemory<T> {
    fn default() -> Self {
        Self { lines: OpenLines::default(), joiner: None, room: Room::default() }
    }
}

/// What the lines of a text are encoded with.
pub(crate) struct LineEncoder<'a, T: Id> {
    superwords: &'a Superwords,
    starts: &'a Starts,
    words: WordEncoder<'a, T>,
    lines: &'a mut OpenLines<T>,
    joiner: &'a mut LineJoiner<T>,
    /// The segments that other workers have merged.
    segments: Colleagues<'a>,
    /// Where the next line starts.
    at: usize,
}

impl<'a, T: Id> LineEncoder<'a, T> {
    /// Takes the words of a text, of which none was taken, its starts, and the segments that other workers have merged.
    pub(crate) fn new(
        superwords: &'a Superwords,
        starts: &'a Starts,
        words: WordEncoder<'a, T>,
        segments: Option<&'a SharedWords>,
        memory: &'a mut LineMemory<T>,
    ) -> Self {
        let LineMemory { lines, joiner, room } = memory;
        let joiner = joiner.get_or_insert_with(LineJoiner::default);
        lines.begin_text();
        Self { superwords, starts, words, lines, joiner, segments: Colleagues { words: segments, room }, at: 0 }
    }

    /// Takes the line that goes on to `end`; [`Self::end`] must come after the last one. It is a byte that is not UTF-8
    /// if `is_invalid`.
    pub(crate) fn take(&mut self, end: usize, is_invalid: bool, out: &mut Vec<T>) {
        let (start, starts, text) = (std::mem::replace(&mut self.at, end), self.starts, self.words.run);
        if is_invalid {
            return self.take_word(end, true, out);
        }
        starts.words_of_line(&text[..end], start, |end, ends_line| self.take_word(end, ends_line, out));
    }

    #[inline]
    fn take_word(&mut self, end: usize, ends_line: bool, out: &mut Vec<T>) {
        if self.words.pending.push(end, ends_line) {
            self.settle(out);
        }
    }

    /// Appends the ids of what was taken; none once it is to stop.
    pub(crate) fn end(&mut self, out: &mut Vec<T>) {
        self.settle(out);
    }

    #[inline(never)]
    fn settle(&mut self, out: &mut Vec<T>) {
        let Self { superwords, words, lines, joiner, segments, .. } = self;
        let source = LineSource { superwords, words: words.merges, text: words.run };
        let (tokens, each) = lines.begin_words(source);
        words.settle(tokens, each);
        if words.stop.is_set() {
            return;
        }
        let colleagues = Colleagues { words: segments.words, room: segments.room };
        let mut tools = SegmentTools { colleagues, scratch: words.scratch, merged: words.merged, stop: words.stop };
        joiner.join(source, lines, &mut tools, out);
    }
}
