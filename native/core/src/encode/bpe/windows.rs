//! Merging long words and long lines in linear time, in windows whose tokens are then joined.
//!
//! The last tokens of a window are dropped, because the text after it could change them, and the next window begins
//! where the kept ones end. If the two tokens where windows meet are not a valid pair ([`super::borders`]), a few
//! symbols on both sides are merged again. A word is cut into as many streams as there are lanes, each with its own
//! windows.
//!
//! Runs of one byte and other repeated text can have tokens longer than a window. There, windows are larger, and a
//! window with the same symbols as the one before it gets the same tokens.

use std::ops::Range;

use super::lanes::{LANES, Lane, MAX_CELLS, join};
use super::pairs::Pairs;
use super::queue::merge_queued;
use super::runs;
use crate::Stop;
use crate::stop::NEVER;

/// The most streams.
const STREAMS: usize = 4;
/// The fewest symbols of a stream.
const MIN_STREAM: usize = 24;
/// The symbols of a window where a lane is too small.
const LARGE_WINDOW: usize = 4096;
/// How many tokens at the end of a window are left out.
const TAIL: usize = 3;
/// The most symbols that are merged again where two streams meet; beyond, the first stream goes on instead.
const MAX_SEAM: usize = 1024;
/// Room that is kept for the next word, in tokens.
const MAX_KEPT: usize = 1 << 16;
/// A stream in which more symbols than this, and more than half of all, were merged again goes on with large windows.
const MAX_REMERGED: usize = 512;
/// When more symbols of a word than it has, and this many, were merged again, windows are given up.
const MAX_REMERGED_IN_ALL: usize = 1 << 15;

/// What is merged in windows: the symbols of a word, which are its bytes, or of a line, which are the tokens of its
/// words.
pub(crate) trait Symbols {
    /// The number of symbols.
    fn len(&self) -> usize;
    /// Whether two ranges have the same symbols.
    fn same(&self, one: Range<usize>, other: Range<usize>) -> bool;
    /// Puts symbols, [`MAX_CELLS`] at most, into a lane.
    fn fill(&self, range: Range<usize>, lane: &mut Lane);
    /// The symbols as tokens.
    fn tokens(&self, range: Range<usize>) -> impl Iterator<Item = u32>;
    /// The merges.
    fn pairs(&self) -> &Pairs;
    /// How many symbols went into each token.
    fn lengths(&self) -> &[u32];
    /// Whether two tokens are what merging makes of their symbols.
    fn is_valid_pair(&self, left: u32, right: u32) -> bool;
}

/// A part of a word.
#[derive(Default)]
struct Stream {
    /// The tokens so far, which go from `start` to `at`.
    tokens: Vec<u32>,
    start: usize,
    at: usize,
    end: usize,
    /// How many symbols were merged again.
    remerged: usize,
    /// The symbols of a window.
    window: usize,
    /// The last window, and its tokens.
    last: Range<usize>,
    last_tokens: Vec<u32>,
}

/// What became of tokens that were added to a stream.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seam {
    /// They were added; the last of them is as it was.
    Joined,
    /// They were added; the last of them was merged again.
    EndRemerged,
    /// They were not added: too many symbols would have to be merged again.
    TooWide,
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
    pub(crate) fn merge(&mut self, symbols: &impl Symbols, lanes: &mut [Lane; LANES], stop: &Stop, out: &mut Vec<u32>) {
        if !runs::merge(symbols.pairs(), symbols.tokens(0..symbols.len()), out)
            && !self.merge_in_windows(symbols, lanes, stop, out)
        {
            merge_queued(symbols.pairs(), symbols.lengths(), symbols.tokens(0..symbols.len()), stop, out);
        }
    }

    /// Appends the tokens of a word to `out`; false, and nothing appended, if windows do not suit it.
    fn merge_in_windows(
        &mut self,
        symbols: &impl Symbols,
        lanes: &mut [Lane; LANES],
        stop: &Stop,
        out: &mut Vec<u32>,
    ) -> bool {
        let (Self { streams, again }, length) = (self, symbols.len());
        let count = (length / MIN_STREAM).clamp(1, STREAMS);
        let streams = &mut streams[..count];
        for (number, stream) in streams.iter_mut().enumerate() {
            stream.begin(length * number / count, length * (number + 1) / count);
        }
        if !go_on(symbols, streams, lanes, again, stop) {
            return false;
        }
        for number in 1..count {
            let (whole, others) = streams.split_at_mut(number);
            let (whole, other) = (&mut whole[..1], &others[0]);
            if whole[0].append(symbols, &other.tokens, MAX_SEAM, again) == Seam::TooWide {
                whole[0].end = other.end;
                if !go_on(symbols, whole, lanes, again, stop) {
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

    /// The tokens of a word, from the tokens of its pieces: these are in `tokens` and begin at 0 and at each of
    /// `begins`.
    pub(crate) fn put_together(&mut self, symbols: &impl Symbols, tokens: &[u32], begins: &[usize]) -> &[u32] {
        let Self { streams: [whole, ..], again } = self;
        whole.begin(0, symbols.len());
        let mut from = 0;
        for &to in begins.iter().chain([&tokens.len()]) {
            whole.append(symbols, &tokens[from..to], usize::MAX, again);
            from = to;
        }
        &whole.tokens
    }
}

impl Stream {
    fn begin(&mut self, start: usize, end: usize) {
        self.tokens.clear();
        (self.start, self.at, self.end) = (start, start, end);
        (self.remerged, self.window, self.last) = (0, MAX_CELLS, 0..0);
    }

    /// The next window; empty at the end.
    fn next(&self) -> Range<usize> {
        self.at..self.end.min(self.at + self.window)
    }

    /// Leaves the last tokens out again, unless nothing of the last window would be left.
    fn drop_tail(&mut self, symbols: &impl Symbols) {
        let left_out = self.tokens.len() - tail(&self.tokens);
        let at = self.at - length(symbols, &self.tokens[left_out..]);
        if at > self.last.start {
            self.tokens.truncate(left_out);
            self.at = at;
        }
    }

    /// Adds tokens. More and more on both sides of the seam is merged again until all pairs are valid, `limit` symbols
    /// at most.
    fn append(&mut self, symbols: &impl Symbols, tokens: &[u32], limit: usize, again: &mut Again) -> Seam {
        let is_valid = |left: Option<&u32>, right: Option<&u32>| match (left, right) {
            (Some(&left), Some(&right)) => symbols.is_valid_pair(left, right),
            _ => true,
        };
        // How many tokens before and after the seam are merged again, and whether they fit to those beyond.
        let (mut before, mut after) = (0, 0);
        again.tokens.clear();
        let mut left = is_valid(self.tokens.last(), tokens.first());
        let mut right = left;
        while !(left && right) {
            before = if left { before } else { self.tokens.len().min(before * 2 + 1) };
            after = if right { after } else { tokens.len().min(after * 2 + 1) };
            let start = self.at - length(symbols, &self.tokens[self.tokens.len() - before..]);
            let range = start..self.at + length(symbols, &tokens[..after]);
            if range.len() > limit {
                return Seam::TooWide;
            }
            self.remerged += range.len();
            again.merge(symbols, range);
            left = is_valid(self.tokens[..self.tokens.len() - before].last(), again.tokens.first());
            right = is_valid(again.tokens.last(), tokens.get(after));
        }
        self.tokens.truncate(self.tokens.len() - before);
        self.tokens.extend_from_slice(&again.tokens);
        self.tokens.extend_from_slice(&tokens[after..]);
        self.at += length(symbols, tokens);
        if after > 0 && after == tokens.len() { Seam::EndRemerged } else { Seam::Joined }
    }
}

/// Merges all windows of streams, or until it is to stop; false if windows do not suit them.
fn go_on(
    symbols: &impl Symbols,
    streams: &mut [Stream],
    lanes: &mut [Lane; LANES],
    again: &mut Again,
    stop: &Stop,
) -> bool {
    while !stop.is_set() && streams.iter().any(|stream| stream.at < stream.end) {
        advance(symbols, streams, lanes, again);
        if streams.iter().map(|stream| stream.remerged).sum::<usize>() > symbols.len() + MAX_REMERGED_IN_ALL {
            return false;
        }
    }
    true
}

/// Merges a window of each stream.
fn advance(symbols: &impl Symbols, streams: &mut [Stream], lanes: &mut [Lane; LANES], again: &mut Again) {
    let (mut in_lanes, mut used) = ([0; STREAMS], 0);
    for (number, stream) in streams.iter_mut().enumerate() {
        while !stream.next().is_empty() && symbols.same(stream.last.clone(), stream.next()) {
            take_window(symbols, stream, again);
        }
        if stream.next().len() > MAX_CELLS {
            stream.last_tokens.clear();
            merge_large(symbols, stream.next(), &mut stream.last_tokens);
            take_window(symbols, stream, again);
        } else if !stream.next().is_empty() {
            symbols.fill(stream.next(), &mut lanes[used]);
            in_lanes[used] = number;
            used += 1;
        }
    }
    join(&mut lanes[..used], symbols.pairs());
    for (&number, lane) in in_lanes.iter().zip(&lanes[..used]) {
        let stream = &mut streams[number];
        stream.last_tokens.clear();
        lane.tokens(|token| stream.last_tokens.push(token));
        take_window(symbols, stream, again);
    }
}

/// Adds the tokens of the next window, `last_tokens`, but for the last ones if the stream goes on.
fn take_window(symbols: &impl Symbols, stream: &mut Stream, again: &mut Again) {
    stream.last = stream.next();
    let goes_on = stream.last.end < stream.end;
    let tokens = std::mem::take(&mut stream.last_tokens);
    let kept = if goes_on { &tokens[..tokens.len() - tail(&tokens)] } else { &tokens };
    let seam = stream.append(symbols, kept, usize::MAX, again);
    stream.last_tokens = tokens;
    if goes_on && seam == Seam::EndRemerged {
        stream.drop_tail(symbols);
    }
    if stream.remerged > (stream.at - stream.start) / 2 + MAX_REMERGED {
        stream.window = LARGE_WINDOW;
    }
}

impl Again {
    fn merge(&mut self, symbols: &impl Symbols, range: Range<usize>) {
        self.tokens.clear();
        if range.len() > MAX_CELLS {
            return merge_large(symbols, range, &mut self.tokens);
        }
        symbols.fill(range, &mut self.lane[0]);
        join(&mut self.lane, symbols.pairs());
        self.lane[0].tokens(|token| self.tokens.push(token));
    }
}

/// Appends the tokens of what is too large for a lane.
fn merge_large(symbols: &impl Symbols, range: Range<usize>, out: &mut Vec<u32>) {
    if !runs::merge(symbols.pairs(), symbols.tokens(range.clone()), out) {
        merge_queued(symbols.pairs(), symbols.lengths(), symbols.tokens(range), &NEVER, out);
    }
}

/// The number of symbols that went into tokens.
fn length(symbols: &impl Symbols, tokens: &[u32]) -> usize {
    tokens.iter().map(|&token| symbols.lengths()[token as usize] as usize).sum()
}

/// How many of the last tokens the text after them could change.
fn tail(tokens: &[u32]) -> usize {
    TAIL.min(tokens.len() / 2)
}
