//! Joining the tokens of the words of lines to superwords.
//!
//! Between most tokens no merge of superwords joins anything, whatever is around them ([`super::crossings`]). There,
//! lines are cut. Most tokens stand alone then, and are ids already. The others are *segments* of a few tokens, which
//! are looked up as words are ([`super::segments`]).

use std::ops::Range;

use super::open_lines::{LineSource, OpenLines};
use super::segments::SegmentMerges;
use super::superwords::Superwords;
use crate::Stop;
use crate::encode::bpe::Scratch;
use crate::encode::id::Id;
use crate::encode::words::{Colleagues, PendingWords, WordCache, WordEncoder};

/// Tokens whose borders are looked at together.
const CHUNK: usize = u64::BITS as usize;
/// So many bytes are read where a segment begins.
const READ_BYTES: usize = 16;
/// So many tokens are copied at once.
const COPIED: usize = 16;

/// What merging segments needs besides, and what other workers have merged.
pub(super) struct SegmentTools<'a> {
    pub(super) colleagues: Colleagues<'a>,
    pub(super) scratch: &'a mut Scratch,
    pub(super) merged: &'a mut Vec<u32>,
    pub(super) stop: &'a Stop,
}

/// Joins lines; one per worker.
pub(super) struct LineJoiner<T: Id> {
    cache: WordCache<T>,
    pending: Box<PendingWords<T>>,
    /// The segments that wait, by their tokens.
    segments: Vec<Range<usize>>,
    /// The bytes of their tokens.
    keys: Vec<u8>,
    /// The first token that was not written.
    next: usize,
}

impl<T: Id> Default for LineJoiner<T> {
    fn default() -> Self {
        Self { cache: WordCache::new(), pending: Box::default(), segments: Vec::new(), keys: Vec::new(), next: 0 }
    }
}

impl<T: Id> LineJoiner<T> {
    /// Appends the ids of the lines that are complete to `out`, not all of them once it is to stop.
    pub(super) fn join(
        &mut self,
        source: LineSource<'_>,
        lines: &mut OpenLines<T>,
        tools: &mut SegmentTools<'_>,
        out: &mut Vec<T>,
    ) {
        let (tokens, mut starts) = lines.complete();
        let (mut left, mut joins_before, mut segment) = (0, 0, None);
        self.next = 0;
        for (base, chunk) in (0..).step_by(CHUNK).zip(tokens.chunks(CHUNK)) {
            let mut joins = find_joins(source.superwords, left, chunk);
            left = chunk.last().map_or(0, |token| token.id());
            while let Some((start, rest)) = starts.split_first().filter(|(start, _)| **start < base + CHUNK) {
                joins &= !(1 << (start - base));
                starts = rest;
            }
            // Where a segment has its second token, and where it ends, in turns.
            let mut changes = joins ^ (joins << 1 | joins_before);
            joins_before = joins >> (CHUNK - 1);
            while changes != 0 {
                let at = base + changes.trailing_zeros() as usize;
                changes &= changes - 1;
                match segment.take() {
                    None => segment = Some(at - 1),
                    Some(start) => self.take(start..at, tokens, source, tools, out),
                }
            }
        }
        if let Some(start) = segment {
            self.take(start..tokens.len(), tokens, source, tools, out);
        }
        self.write(tokens, tokens.len(), source, tools, out);
        lines.remove_complete();
    }

    /// Takes a segment of the tokens.
    #[inline]
    fn take(
        &mut self,
        segment: Range<usize>,
        tokens: &[T],
        source: LineSource<'_>,
        tools: &mut SegmentTools<'_>,
        out: &mut Vec<T>,
    ) {
        let end = segment.end;
        T::put_key(&tokens[segment.clone()], &mut self.keys);
        self.segments.push(segment);
        if self.pending.push(self.keys.len(), false) {
            self.write(tokens, end, source, tools, out);
        }
    }

    /// Appends the ids of the tokens up to `end` to `out`, which is behind the segments that wait.
    #[inline(never)]
    fn write(
        &mut self,
        tokens: &[T],
        end: usize,
        source: LineSource<'_>,
        tools: &mut SegmentTools<'_>,
        out: &mut Vec<T>,
    ) {
        let Self { cache, pending, segments, keys, next } = self;
        keys.extend([0; READ_BYTES]);
        let SegmentTools { colleagues: Colleagues { words, room }, scratch, merged, stop } = tools;
        let mut encoder = WordEncoder {
            merges: &SegmentMerges::<T>::new(source.superwords),
            cache,
            colleagues: Colleagues { words: *words, room },
            scratch,
            merged,
            pending,
            run: keys,
            at: 0,
            stop,
        };
        segments.push(end..end);
        copy(tokens, *next..segments[0].start, out);
        let mut gaps = segments.windows(2).map(|two| two[0].end..two[1].start);
        encoder.settle(out, |_, _, out| {
            if let Some(gap) = gaps.next() {
                copy(tokens, gap, out);
            }
        });
        *next = end;
        segments.clear();
        keys.clear();
    }
}

/// For each token of a chunk, whether it may be joined to the one before it; of the first one this is `left`.
#[inline]
fn find_joins<T: Id>(superwords: &Superwords, mut left: u32, chunk: &[T]) -> u64 {
    chunk.iter().enumerate().fold(0, |joins, (at, token)| {
        let right = token.id();
        joins | u64::from(superwords.may_join(std::mem::replace(&mut left, right), right)) << at
    })
}

/// Appends some of the tokens, mostly a few, to `out`.
#[inline]
fn copy<T: Id>(tokens: &[T], range: Range<usize>, out: &mut Vec<T>) {
    match tokens[range.start..].first_chunk::<COPIED>() {
        Some(chunk) if range.len() <= COPIED => {
            let length = out.len() + range.len();
            out.extend_from_slice(chunk);
            out.truncate(length);
        }
        _ => out.extend_from_slice(&tokens[range]),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::encode::bpe::{Merge, Merges};
    use crate::encode::words::WordSpan;
    use crate::stop::NEVER;

    /// Numbers below `below`, from a linear congruential generator.
    pub(in super::super) struct Random(pub u64);

    impl Random {
        pub fn below(&mut self, below: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (self.0 >> 33) as usize % below
        }
    }

    /// Merges over a few letters in an order that could have been learned, and the lengths of the tokens.
    pub(in super::super) fn merges(random: &mut Random, letters: usize, count: usize) -> (Vec<Merge>, Arc<[u32]>) {
        let mut tokens: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
        let mut merges = Vec::new();
        for _ in 0..count * 8 {
            let mut pick = |tokens: &[Vec<u8>]| match random.below(letters + tokens.len() - 256) {
                letter if letter < letters => usize::from(b'a') + letter,
                made => 256 + made - letters,
            };
            let (left, right) = (pick(&tokens), pick(&tokens));
            let joined = [&tokens[left][..], &tokens[right][..]].concat();
            if merges.len() < count && joined.len() < 20 && !tokens.contains(&joined) {
                merges.push((left as u32, right as u32, tokens.len() as u32));
                tokens.push(joined);
            }
        }
        (merges, tokens.iter().map(|token| token.len() as u32).collect())
    }

    pub(in super::super) fn byte_ids() -> Box<[u32; 256]> {
        Box::new(std::array::from_fn(|byte| byte as u32))
    }

    /// The ids of lines, which are cut into words at random and taken in batches of a few words.
    fn join_lines<T: Id>(
        random: &mut Random,
        source: LineSource<'_>,
        line_ends: &[usize],
        (open, joiner): (&mut OpenLines<T>, &mut LineJoiner<T>),
    ) -> Vec<u32> {
        let (mut scratch, mut merged, mut room) = Default::default();
        let (mut at, mut line, mut out) = (0, 0, Vec::new());
        open.begin_text();
        while at < source.text.len() {
            let (tokens, mut each) = open.begin_words(source);
            for _ in 0..=random.below(40) {
                let Some(&line_end) = line_ends.get(line) else { break };
                let word = WordSpan { start: at, end: line_end.min(at + 1 + random.below(6)), ends_line: false };
                let word = WordSpan { ends_line: word.end == line_end, ..word };
                let (mut ids, first) = (Vec::new(), tokens.len());
                source.words.merge(&mut scratch, &source.text[at..word.end], &NEVER, &mut ids);
                tokens.extend(ids.iter().map(|&token| T::new(token)));
                each(word, first, tokens);
                (at, line) = (word.end, line + usize::from(word.ends_line));
            }
            drop(each);
            let colleagues = Colleagues { words: None, room: &mut room };
            let mut tools = SegmentTools { colleagues, scratch: &mut scratch, merged: &mut merged, stop: &NEVER };
            joiner.join(source, open, &mut tools, &mut out);
        }
        out.iter().map(|token| token.id()).collect()
    }

    fn lines_have_the_tokens_that_merging_them_at_once_has<T: Id>(seed: u64) {
        let mut random = Random(seed);
        for round in 0..250 {
            let letters = 1 + random.below(4);
            let (merges, lengths) = merges(&mut random, letters, [3, 20, 80][round % 3]);
            let first_merge = random.below(merges.len() + 1);
            let all = || Merges::new(byte_ids(), &merges, Arc::clone(&lengths));
            let (whole, words) = (all(), Merges::new(byte_ids(), &merges[..first_merge], Arc::clone(&lengths)));
            let superwords = Superwords::new(&words, all(), &merges, first_merge);
            let (mut text, mut line_ends, mut expected) = (Vec::new(), Vec::new(), Vec::new());
            for length in [1, 2, 5, 20, 47, 48, 49, 50, 300, 7, 1, 3, 600] {
                let start = text.len();
                text.extend((0..length).map(|_| b'a' + random.below(letters) as u8));
                line_ends.push(text.len());
                whole.merge(&mut Scratch::default(), &text[start..], &NEVER, &mut expected);
            }
            let source = LineSource { superwords: &superwords, words: &words, text: &text };
            let (mut open, mut joiner) = (OpenLines::<T>::default(), LineJoiner::<T>::default());
            for _ in 0..3 {
                let found = join_lines(&mut random, source, &line_ends, (&mut open, &mut joiner));
                assert_eq!(found, expected, "round {round}");
            }
        }
    }

    #[test]
    fn lines_of_any_pieces_have_the_tokens_that_merging_them_at_once_has() {
        lines_have_the_tokens_that_merging_them_at_once_has::<u16>(1);
        lines_have_the_tokens_that_merging_them_at_once_has::<u32>(2);
    }
}
