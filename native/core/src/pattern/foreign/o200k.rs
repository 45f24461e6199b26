//! o200k, of GPT-4o and gpt-oss, and Mistral's tekken: words end where a capital follows a small letter.
//!
//! A word is capitals and then small letters, with the one character before it that is no letter, number or line
//! ending, and in o200k with a contraction behind it. Letters without case, and combining marks, are both. The rest is
//! as in [`super::cl100k`], but marks take slashes behind them too.

use super::category::{CAPITAL, CASELESS, LETTER, MARK, NUMBER, SMALL, Text};
use super::cl100k::{contraction, marks, white_space};

pub(super) const REGEX: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
);
pub(super) const TEKKEN_REGEX: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*",
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
);

/// What may be among the capitals of a word.
const FRONT: u8 = CAPITAL | CASELESS | MARK;
/// What may be among its small letters.
const BACK: u8 = SMALL | CASELESS | MARK;

/// The end of the word that starts at `start`, in o200k.
#[inline]
pub(super) fn word_end(text: Text<'_>, start: usize) -> usize {
    let end_of = |end| contraction(text, end).unwrap_or(end);
    letters_end(text, start).map_or_else(|| other_end(text, start, 3), end_of)
}

/// The end of the word that starts at `start`, in tekken.
#[inline]
pub(super) fn tekken_end(text: Text<'_>, start: usize) -> usize {
    letters_end(text, start).unwrap_or_else(|| other_end(text, start, 1))
}

#[inline]
fn other_end(text: Text<'_>, start: usize, digits: usize) -> usize {
    match text.numbers(start, digits) {
        end if end > start => end,
        _ => marks(text, start, b"\r\n/").unwrap_or_else(|| white_space(text, start)),
    }
}

/// The end of the letters at `start`, or behind the character there.
#[inline]
fn letters_end(text: Text<'_>, start: usize) -> Option<usize> {
    let (category, width) = text.at(start);
    if category & LETTER != 0 {
        return letters(text, start).map(|(end, _)| end);
    }
    if category == NUMBER || matches!(text.byte(start), b'\r' | b'\n') {
        return None;
    }
    match letters(text, start + width) {
        // A combining mark is a word by itself before capitals only: the first alternative has it without them.
        Some((_, false)) | None if category == MARK => Some(start + width),
        found => found.map(|(end, _)| end),
    }
}

/// The end of the letters and combining marks at `start`, if there are any, and whether they end with [`BACK`], as the
/// first alternative has it.
#[inline]
fn letters(text: Text<'_>, start: usize) -> Option<(usize, bool)> {
    let (mut at, mut both) = (start, start);
    loop {
        let (category, width) = text.at(at);
        if category & FRONT == 0 {
            break;
        }
        at += width;
        if category & BACK != 0 {
            both = at;
        }
    }
    let end = text.skip(at, BACK);
    match end {
        _ if end > at => Some((end, true)),
        _ if both > start => Some((both, true)),
        _ => (at > start).then_some((at, false)),
    }
}
