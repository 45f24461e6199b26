//! cl100k, which Llama 3 has too, and the same with each digit by itself, which Qwen 2 has.
//!
//! In the order of the alternatives: a contraction in any case; a word with the one character before it that is no
//! letter, number or line ending; up to three digits; marks with the space before and the line endings behind them;
//! white space up to its last line ending; white space.

use super::category::{LETTER, NUMBER, SPACE, Text};
use super::gpt2;

pub(super) const REGEX: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
);
pub(super) const QWEN_REGEX: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
);

/// The end of the word that starts at `start`; of numbers up to `digits` are a word.
#[inline]
pub(super) fn word_end(text: Text<'_>, start: usize, digits: usize) -> usize {
    let (category, width) = text.at(start);
    if category & LETTER != 0 {
        return text.skip(start + width, LETTER);
    }
    if category == NUMBER {
        return text.numbers(start, digits);
    }
    if let Some(end) = contraction(text, start) {
        return end;
    }
    let next = start + width;
    if !matches!(text.byte(start), b'\r' | b'\n') && text.is(next, LETTER) {
        return text.skip(next, LETTER);
    }
    marks(text, start, b"\r\n").unwrap_or_else(|| white_space(text, start))
}

/// The end of a contraction, in any case, at `at`.
#[inline]
pub(super) fn contraction(text: Text<'_>, at: usize) -> Option<usize> {
    if text.byte(at) != b'\'' {
        return None;
    }
    match text.rest(at + 1) {
        [b's' | b'S' | b't' | b'T' | b'm' | b'M' | b'd' | b'D', ..] => Some(at + 2),
        // Of two bytes is the long s, which is an s in another case.
        [b'r' | b'R' | b'v' | b'V', b'e' | b'E', ..] | [b'l' | b'L', b'l' | b'L', ..] | [0xC5, 0xBF, ..] => {
            Some(at + 3)
        }
        _ => None,
    }
}

/// The end of the marks at `start`, a space before them, and the bytes of `tail` behind them.
#[inline]
pub(super) fn marks(text: Text<'_>, start: usize, tail: &[u8]) -> Option<usize> {
    let first = start + usize::from(text.byte(start) == b' ');
    let end = text.skip_others(first, LETTER | NUMBER | SPACE);
    (end > first).then(|| text.skip_bytes(end, tail))
}

/// The end of the white space at `start`: its last line ending, or where that of GPT-2 is.
#[inline]
pub(super) fn white_space(text: Text<'_>, start: usize) -> usize {
    let (mut at, mut ending) = (start, start);
    loop {
        let (category, width) = text.at(at);
        if category != SPACE {
            break;
        }
        at += width;
        if matches!(text.byte(at - width), b'\r' | b'\n') {
            ending = at;
        }
    }
    if ending > start { ending } else { gpt2::white_space(text, start) }
}
