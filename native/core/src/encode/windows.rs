//! The merging of long words in linear time: in windows, whose tokens are put together.
//!
//! A window's last tokens are left out, as what follows could change them, and the next window begins where the others end. Where
//! the two do not stand beside each other ([`Borders`]), a little text to both sides is merged again. A word is cut into as many
//! streams as there are lanes, each with its own windows.
//!
//! Runs of one byte and other repeated text can have tokens longer than a window: there windows are larger, and one with the
//! text of the one before it has its tokens.

use std::ops::Range;

use super::borders::Borders;
use super::lanes::{LANES, Lane, MAX_CELLS, join};
use super::merges::Merges;

/// As many streams at most.
const STREAMS: usize = 4;
/// The least bytes of a stream.
const MIN_STREAM: usize = 24;
/// The bytes of a window where those of a lane do not do.
const LARGE_WINDOW: usize = 4096;
/// As many tokens at the end of a window are left out.
const TAIL: usize = 3;
/// Room that is kept for the next word, in tokens.
const MAX_KEPT: usize = 1 << 16;
/// A stream in which so many bytes, and one of two, were merged again goes on with large windows.
const MAX_MENDED: usize = 512;
/// When so many bytes of a word, and each, were merged again, the word is not made for windows.
const MAX_MENDED_IN_ALL: usize = 1 << 15;

/// A word that is merged in windows.
#[derive(Clone, Copy)]
struct Word<'a> {
    merges: &'a Merges,
    borders: &'a Borders,
    text: &'a [u8],
}

/// A part of a word.
#[derive(Default)]
struct Stream {
    /// The tokens so far, which go from `start` to `at`.
    tokens: Vec<u32>,
    start: usize,
    at: usize,
    end: usize,
    /// How many bytes were merged again.
    mended: usize,
    /// The bytes of a window.
    window: usize,
    /// The last window, and its tokens.
    last: Range<usize>,
    last_tokens: Vec<u32>,
}

/// What merging long words needs; made to be used again for the next word.
#[derive(Default)]
pub(super) struct Windows {
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
    /// Appends the tokens of a word to `out`; false, and nothing appended, if it is not made for this.
    pub(super) fn merge(
        &mut self,
        merges: &Merges,
        borders: &Borders,
        lanes: &mut [Lane; LANES],
        text: &[u8],
        out: &mut Vec<u32>,
    ) -> bool {
        let word = Word { merges, borders, text };
        let count = (text.len() / MIN_STREAM).clamp(1, STREAMS);
        let streams = &mut self.streams[..count];
        for (number, stream) in streams.iter_mut().enumerate() {
            stream.begin(text.len() * number / count, text.len() * (number + 1) / count);
        }
        while streams.iter().any(|stream| stream.at < stream.end) {
            word.advance(streams, lanes, &mut self.again);
            if streams.iter().map(|stream| stream.mended).sum::<usize>() > text.len() + MAX_MENDED_IN_ALL {
                return false;
            }
        }
        if let [whole, others @ ..] = streams {
            for stream in &*others {
                word.put(whole, &stream.tokens, stream.end, &mut self.again);
            }
            out.extend_from_slice(&whole.tokens);
        }
        for stream in streams {
            stream.tokens.shrink_to(MAX_KEPT);
        }
        true
    }
}

impl Windows {
    /// The tokens of a text, from those of pieces of it, which are in `tokens` and begin at 0 and at each of `begins`.
    pub(super) fn put_together(
        &mut self,
        merges: &Merges,
        borders: &Borders,
        text: &[u8],
        tokens: &[u32],
        begins: &[usize],
    ) -> &[u32] {
        let (word, whole) = (Word { merges, borders, text }, &mut self.streams[0]);
        whole.begin(0, text.len());
        let mut from = 0;
        for &to in begins.iter().chain([&tokens.len()]) {
            let piece = &tokens[from..to];
            word.put(whole, piece, whole.at + word.bytes(piece), &mut self.again);
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

impl Word<'_> {
    /// Merges a window of each stream.
    fn advance(&self, streams: &mut [Stream], lanes: &mut [Lane; LANES], again: &mut Again) {
        let (mut in_lanes, mut used) = ([0; STREAMS], 0);
        for (number, stream) in streams.iter_mut().enumerate() {
            while !stream.next().is_empty() && self.text[stream.last.clone()] == self.text[stream.next()] {
                self.take_window(stream, again);
            }
            if stream.next().len() > MAX_CELLS {
                stream.last_tokens.clear();
                self.merges.merge_queued(&self.text[stream.next()], &mut stream.last_tokens);
                self.take_window(stream, again);
            } else if !stream.next().is_empty() {
                self.merges.fill(&mut lanes[used], &self.text[stream.next()]);
                in_lanes[used] = number;
                used += 1;
            }
        }
        join(&mut lanes[..used], self.merges.pairs());
        for (&number, lane) in in_lanes.iter().zip(&lanes[..used]) {
            let stream = &mut streams[number];
            stream.last_tokens.clear();
            lane.tokens(|token| stream.last_tokens.push(token));
            self.take_window(stream, again);
        }
    }

    /// Adds the tokens of the next window, `last_tokens`, but for the last ones if the stream goes on.
    fn take_window(&self, stream: &mut Stream, again: &mut Again) {
        stream.last = stream.next();
        let goes_on = stream.last.end < stream.end;
        let tokens = std::mem::take(&mut stream.last_tokens);
        let kept = if goes_on { &tokens[..tokens.len() - tail(&tokens)] } else { &tokens };
        let mended = self.put(stream, kept, stream.at + self.bytes(kept), again);
        stream.last_tokens = tokens;
        if goes_on && mended {
            let left_out = stream.tokens.len() - tail(&stream.tokens);
            let at = stream.at - self.bytes(&stream.tokens[left_out..]);
            if at > stream.last.start {
                stream.tokens.truncate(left_out);
                stream.at = at;
            }
        }
        if stream.mended > (stream.at - stream.start) / 2 + MAX_MENDED {
            stream.window = LARGE_WINDOW;
        }
    }

    /// Adds tokens, which go on to `end`; tells if the last of them was merged again.
    fn put(&self, stream: &mut Stream, tokens: &[u32], end: usize, again: &mut Again) -> bool {
        let meet = |left: Option<&u32>, right: Option<&u32>| match (left, right) {
            (Some(&left), Some(&right)) => self.borders.stand(self.merges.pairs(), left, right),
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
            let text = &self.text[stream.at - self.bytes(taken)..stream.at + self.bytes(&tokens[..behind])];
            stream.mended += text.len();
            again.tokens.clear();
            self.merges.merge_at_once(&mut again.lane, text, &mut again.tokens);
            left = meet(stream.tokens[..stream.tokens.len() - before].last(), again.tokens.first());
            right = meet(again.tokens.last(), tokens.get(behind));
        }
        stream.tokens.truncate(stream.tokens.len() - before);
        stream.tokens.extend_from_slice(&again.tokens);
        stream.tokens.extend_from_slice(&tokens[behind..]);
        stream.at = end;
        behind > 0 && behind == tokens.len()
    }

    fn bytes(&self, tokens: &[u32]) -> usize {
        tokens.iter().map(|&token| self.merges.length(token)).sum()
    }
}

/// How many of the last tokens could change with what follows.
fn tail(tokens: &[u32]) -> usize {
    TAIL.min(tokens.len() / 2)
}
