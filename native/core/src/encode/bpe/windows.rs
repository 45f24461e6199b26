//! The merging of long words, and of long lines, in linear time: in windows, whose tokens are put together.
//!
//! A word consists of units: bytes, or in a line the tokens of its words. A window's last tokens are left out, as what follows could change them, and the next window begins where the others end. Where
//! the two do not stand beside each other ([`Borders`]), a little text to both sides is merged again. A word is cut into as many
//! streams as there are lanes, each with its own windows.
//!
//! Runs of one byte and other repeated text can have tokens longer than a window: there windows are larger, and one with the
//! text of the one before it has its tokens.

use std::ops::Range;

use super::lanes::{LANES, Lane, MAX_CELLS, join};
use super::pairs::Pairs;
use super::queue::merge_queued;
use super::runs;
use crate::Stop;
use crate::stop::NEVER;

/// As many streams at most.
const STREAMS: usize = 4;
/// The least units of a stream.
const MIN_STREAM: usize = 24;
/// The units of a window where those of a lane do not do.
const LARGE_WINDOW: usize = 4096;
/// As many tokens at the end of a window are left out.
const TAIL: usize = 3;
/// Where two streams meet, so many units are merged again at most; beyond, the first one goes on instead.
const MAX_SEAM: usize = 1024;
/// Room that is kept for the next word, in tokens.
const MAX_KEPT: usize = 1 << 16;
/// A stream in which so many units, and one of two, were merged again goes on with large windows.
const MAX_MENDED: usize = 512;
/// When so many units of a word, and each, were merged again, the word is not made for windows.
const MAX_MENDED_IN_ALL: usize = 1 << 15;

/// A word that is merged in windows, or put together from pieces.
pub(crate) trait Word {
    /// The number of units.
    fn len(&self) -> usize;
    /// Whether two ranges have the same units.
    fn same(&self, one: Range<usize>, other: Range<usize>) -> bool;
    /// Puts units, [`MAX_CELLS`] at most, into a lane.
    fn fill(&self, range: Range<usize>, lane: &mut Lane);
    /// The units as tokens.
    fn tokens(&self, range: Range<usize>) -> impl Iterator<Item = u32>;
    /// The merges.
    fn pairs(&self) -> &Pairs;
    /// The units of each token.
    fn lengths(&self) -> &[u32];
    /// Whether two tokens are what merging makes of their units.
    fn stand(&self, left: u32, right: u32) -> bool;
}

/// A part of a word.
#[derive(Default)]
struct Stream {
    /// The tokens so far, which go from `start` to `at`.
    tokens: Vec<u32>,
    start: usize,
    at: usize,
    end: usize,
    /// How many units were merged again.
    mended: usize,
    /// The units of a window.
    window: usize,
    /// The last window, and its tokens.
    last: Range<usize>,
    last_tokens: Vec<u32>,
}

/// What merging long words needs; made to be used again for the next word.
#[derive(Default)]
pub(crate) struct Windows {
    streams: [Stream; STREAMS],
    again: Again,
}

/// What is merged again.
#[derive(Default)]
struct Again {
    lane: [Lane; 1],
    tokens: Vec<u32>,
}

impl Windows {
    /// Appends the tokens of a word to `out`, not all of them once it is to stop.
    pub(crate) fn merge(&mut self, word: &impl Word, lanes: &mut [Lane; LANES], stop: &Stop, out: &mut Vec<u32>) {
        if !runs::merge(word.pairs(), word.tokens(0..word.len()), out) && !self.merge_in_windows(word, lanes, stop, out)
        {
            merge_queued(word.pairs(), word.lengths(), word.tokens(0..word.len()), stop, out);
        }
    }

    /// Appends the tokens of a word to `out`; false, and nothing appended, if it is not made for this.
    fn merge_in_windows(
        &mut self,
        word: &impl Word,
        lanes: &mut [Lane; LANES],
        stop: &Stop,
        out: &mut Vec<u32>,
    ) -> bool {
        let (Self { streams, again }, length) = (self, word.len());
        let count = (length / MIN_STREAM).clamp(1, STREAMS);
        let streams = &mut streams[..count];
        for (number, stream) in streams.iter_mut().enumerate() {
            stream.begin(length * number / count, length * (number + 1) / count);
        }
        if !go_on(word, streams, lanes, again, stop) {
            return false;
        }
        for number in 1..count {
            let (whole, others) = streams.split_at_mut(number);
            let (whole, other) = (&mut whole[..1], &others[0]);
            if put(word, &mut whole[0], &other.tokens, MAX_SEAM, again).is_none() {
                whole[0].end = other.end;
                if !go_on(word, whole, lanes, again, stop) {
                    return false;
                }
            }
        }
        out.extend_from_slice(&streams[0].tokens);
        for stream in streams {
            stream.tokens.shrink_to(MAX_KEPT);
        }
        true
    }

    /// The tokens of a word, from those of pieces of it, which are in `tokens` and begin at 0 and at each of `begins`.
    pub(crate) fn put_together(&mut self, word: &impl Word, tokens: &[u32], begins: &[usize]) -> &[u32] {
        let Self { streams: [whole, ..], again } = self;
        whole.begin(0, word.len());
        let mut from = 0;
        for &to in begins.iter().chain([&tokens.len()]) {
            put(word, whole, &tokens[from..to], usize::MAX, again);
            from = to;
        }
        &whole.tokens
    }
}

impl Stream {
    fn begin(&mut self, start: usize, end: usize) {
        self.tokens.clear();
        (self.start, self.at, self.end) = (start, start, end);
        (self.mended, self.window, self.last) = (0, MAX_CELLS, 0..0);
    }

    /// The next window; empty at the end.
    fn next(&self) -> Range<usize> {
        self.at..self.end.min(self.at + self.window)
    }
}

/// Merges all windows of streams, or until it is to stop; false if they are not made for this.
fn go_on(word: &impl Word, streams: &mut [Stream], lanes: &mut [Lane; LANES], again: &mut Again, stop: &Stop) -> bool {
    while !stop.is_set() && streams.iter().any(|stream| stream.at < stream.end) {
        advance(word, streams, lanes, again);
        if streams.iter().map(|stream| stream.mended).sum::<usize>() > word.len() + MAX_MENDED_IN_ALL {
            return false;
        }
    }
    true
}

/// Merges a window of each stream.
fn advance(word: &impl Word, streams: &mut [Stream], lanes: &mut [Lane; LANES], again: &mut Again) {
    let (mut in_lanes, mut used) = ([0; STREAMS], 0);
    for (number, stream) in streams.iter_mut().enumerate() {
        while !stream.next().is_empty() && word.same(stream.last.clone(), stream.next()) {
            take_window(word, stream, again);
        }
        if stream.next().len() > MAX_CELLS {
            stream.last_tokens.clear();
            merge_large(word, stream.next(), &mut stream.last_tokens);
            take_window(word, stream, again);
        } else if !stream.next().is_empty() {
            word.fill(stream.next(), &mut lanes[used]);
            in_lanes[used] = number;
            used += 1;
        }
    }
    join(&mut lanes[..used], word.pairs());
    for (&number, lane) in in_lanes.iter().zip(&lanes[..used]) {
        let stream = &mut streams[number];
        stream.last_tokens.clear();
        lane.tokens(|token| stream.last_tokens.push(token));
        take_window(word, stream, again);
    }
}

/// Adds the tokens of the next window, `last_tokens`, but for the last ones if the stream goes on.
fn take_window(word: &impl Word, stream: &mut Stream, again: &mut Again) {
    stream.last = stream.next();
    let goes_on = stream.last.end < stream.end;
    let tokens = std::mem::take(&mut stream.last_tokens);
    let kept = if goes_on { &tokens[..tokens.len() - tail(&tokens)] } else { &tokens };
    let mended = put(word, stream, kept, usize::MAX, again) == Some(true);
    stream.last_tokens = tokens;
    if goes_on && mended {
        let left_out = stream.tokens.len() - tail(&stream.tokens);
        let at = stream.at - units(word, &stream.tokens[left_out..]);
        if at > stream.last.start {
            stream.tokens.truncate(left_out);
            stream.at = at;
        }
    }
    if stream.mended > (stream.at - stream.start) / 2 + MAX_MENDED {
        stream.window = LARGE_WINDOW;
    }
}

/// Adds tokens; tells if the last of them was merged again. None, and nothing added, if more than `limit` units would have to be.
fn put(word: &impl Word, stream: &mut Stream, tokens: &[u32], limit: usize, again: &mut Again) -> Option<bool> {
    let meet = |left: Option<&u32>, right: Option<&u32>| match (left, right) {
        (Some(&left), Some(&right)) => word.stand(left, right),
        _ => true,
    };
    let (mut before, mut behind) = (0, 0);
    again.tokens.clear();
    let mut left = meet(stream.tokens.last(), tokens.first());
    let mut right = left;
    while !(left && right) {
        before = if left { before } else { stream.tokens.len().min(before * 2 + 1) };
        behind = if right { behind } else { tokens.len().min(behind * 2 + 1) };
        let taken = &stream.tokens[stream.tokens.len() - before..];
        let range = stream.at - units(word, taken)..stream.at + units(word, &tokens[..behind]);
        if range.len() > limit {
            return None;
        }
        stream.mended += range.len();
        again.merge(word, range);
        left = meet(stream.tokens[..stream.tokens.len() - before].last(), again.tokens.first());
        right = meet(again.tokens.last(), tokens.get(behind));
    }
    stream.tokens.truncate(stream.tokens.len() - before);
    stream.tokens.extend_from_slice(&again.tokens);
    stream.tokens.extend_from_slice(&tokens[behind..]);
    stream.at += units(word, tokens);
    Some(behind > 0 && behind == tokens.len())
}

impl Again {
    fn merge(&mut self, word: &impl Word, range: Range<usize>) {
        self.tokens.clear();
        if range.len() > MAX_CELLS {
            return merge_large(word, range, &mut self.tokens);
        }
        word.fill(range, &mut self.lane[0]);
        join(&mut self.lane, word.pairs());
        self.lane[0].tokens(|token| self.tokens.push(token));
    }
}

/// Appends the tokens of what is too large for a lane.
fn merge_large(word: &impl Word, range: Range<usize>, out: &mut Vec<u32>) {
    if !runs::merge(word.pairs(), word.tokens(range.clone()), out) {
        merge_queued(word.pairs(), word.lengths(), word.tokens(range), &NEVER, out);
    }
}

/// The number of units that went into tokens.
fn units(word: &impl Word, tokens: &[u32]) -> usize {
    tokens.iter().map(|&token| word.lengths()[token as usize] as usize).sum()
}

/// How many of the last tokens could change with what follows.
fn tail(tokens: &[u32]) -> usize {
    TAIL.min(tokens.len() / 2)
}
