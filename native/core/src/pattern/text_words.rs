//! The pattern `text-words-1`: words of prose, each with the space before it.
//!
//! In the order of the alternatives of [`REGEX`]: the ending of an English contraction; letters; up to three digits,
//! so that numbers fall into the groups that separators make; marks with the newlines behind them; white space up to
//! its last newline; white space.

use super::class::{LETTER, MARK, NUMBER, SPACE, class_at};

/// The regular expression that [`word_end`] is equal to.
pub(super) const REGEX: &str = concat!(
    r"'(?:s|t|re|ve|m|ll|d)(?![\p{L}_])",
    r"| ?[\p{L}_]+",
    r"| ?\p{N}{1,3}",
    r"| ?[^\s\p{L}\p{N}_]+[\r\n]*",
    r"|\s*[\r\n]+",
    r"|\s+(?!\S)",
    r"|\s+",
);

const ENDINGS: [&[u8]; 7] = [b"s", b"t", b"re", b"ve", b"m", b"ll", b"d"];

/// The most digits of a word.
const MAX_DIGITS: usize = 3;

/// Returns the end of the word that starts at `start`, which is before the end of `text`.
#[inline]
pub(super) fn word_end(text: &[u8], start: usize) -> usize {
    if let Some(end) = contraction(text, start) {
        return end;
    }
    let first = start + usize::from(text[start] == b' ');
    match class_at(text, first).0 {
        LETTER => skip(text, first, LETTER, usize::MAX),
        NUMBER => skip(text, first, NUMBER, MAX_DIGITS),
        MARK => skip_newlines(text, skip(text, first, MARK, usize::MAX)),
        _ => white_space(text, start),
    }
}

/// The end of the ending of a contraction that begins at `start`, if one does.
fn contraction(text: &[u8], start: usize) -> Option<usize> {
    if text[start] != b'\'' {
        return None;
    }
    let end = skip(text, start + 1, LETTER, usize::MAX);
    ENDINGS.contains(&&text[start + 1..end]).then_some(end)
}

/// Skips at most so many characters of a class.
fn skip(text: &[u8], mut at: usize, class: u8, most: usize) -> usize {
    for _ in 0..most {
        let (found, width) = class_at(text, at);
        if found != class {
            break;
        }
        at += width;
    }
    at
}

/// The end of the newlines at `at`.
pub(super) fn skip_newlines(text: &[u8], at: usize) -> usize {
    text[at..].iter().position(|&byte| !is_newline(byte)).map_or(text.len(), |length| at + length)
}

pub(super) fn is_newline(byte: u8) -> bool {
    matches!(byte, b'\r' | b'\n')
}

/// The end of white space: behind its last newline, or before its last character if that belongs to what follows.
fn white_space(text: &[u8], start: usize) -> usize {
    let end = skip(text, start, SPACE, usize::MAX);
    if let Some(last) = text[start..end].iter().rposition(|&byte| is_newline(byte)) {
        return start + last + 1;
    }
    let last = last_character(text, end);
    if end == text.len() || last == start { end } else { last }
}

/// Where the character begins that ends at `end`.
fn last_character(text: &[u8], end: usize) -> usize {
    text[..end].iter().rposition(|byte| byte & 0xC0 != 0x80).unwrap_or(0)
}

/// Where what is open at the end of `run` starts, and where within the run it may end: its last word, an apostrophe
/// that may begin a contraction, or white space.
pub(super) fn open_end(run: &[u8]) -> (usize, Vec<usize>) {
    let (mut before, mut start, mut end) = (0, 0, 0);
    while end < run.len() {
        let next = word_end(run, end);
        let in_space = end > start && class_at(run, start).0 == SPACE && is_space(&run[start..]);
        if !in_space {
            (before, start) = (start, end);
        }
        end = next;
    }
    let mut ends = Vec::new();
    if is_space(&run[start..]) {
        let newline = run[start..].iter().rposition(|&byte| is_newline(byte));
        ends.push(newline.map_or_else(|| last_character(run, run.len()), |last| start + last + 1));
    } else if run[before..start] == *b"'" {
        start = before;
    }
    if run[start..].first() == Some(&b'\'') {
        ends.push(start + 1);
    }
    ends.retain(|end| (start + 1..run.len()).contains(end));
    (start, ends)
}

fn is_space(run: &[u8]) -> bool {
    !run.is_empty() && skip(run, 0, SPACE, usize::MAX) == run.len()
}
