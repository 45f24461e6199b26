//! GPT-2: contractions, words, numbers and marks with a space before them, white space.

use super::category::{LETTER, NUMBER, SPACE, Text};

pub(super) const REGEX: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

/// The end of the word that starts at `start`.
#[inline]
pub(super) fn word_end(text: Text<'_>, start: usize) -> usize {
    if text.byte(start) == b'\'' {
        match text.rest(start + 1) {
            [b's' | b't' | b'm' | b'd', ..] => return start + 2,
            [b'r' | b'v', b'e', ..] | [b'l', b'l', ..] => return start + 3,
            _ => {}
        }
    }
    let first = start + usize::from(text.byte(start) == b' ');
    match text.at(first) {
        (category, width) if category & LETTER != 0 => text.skip(first + width, LETTER),
        (NUMBER, width) => text.skip(first + width, NUMBER),
        (SPACE, _) | (_, 0) => white_space(text, start),
        (_, width) => text.skip_others(first + width, LETTER | NUMBER | SPACE),
    }
}

/// The end of the white space at `start`: all but the last character before something else, or all.
#[inline]
pub(super) fn white_space(text: Text<'_>, start: usize) -> usize {
    let (mut last, mut at) = (start, start);
    loop {
        match text.at(at) {
            (SPACE, width) => (last, at) = (at, at + width),
            (_, 0) => return at,
            _ if last > start => return last,
            _ => return at,
        }
    }
}
