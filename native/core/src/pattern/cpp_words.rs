//! The pattern `cpp-words-1`: C++ words, with newlines and indentation in words of their own.
//!
//! In the order of the alternatives of [`REGEX`]: a preprocessing number with its sign; the opening of a raw string, or
//! a literal prefix with its quote; the closing of a raw string with a delimiter; a run of escapes; an identifier with
//! the one mark before it, or with a space before it; a run of marks with the newline and the indentation behind it; a
//! newline with the blanks around it; white space.
//!
//! Every function takes valid UTF-8 and a position on a character border, and returns such a position. No character is
//! looked at more than a fixed number of times, so that a line of any length takes linear time.

use super::class::{LETTER, MARK, NUMBER, SPACE, WORD, ascii_class, class_at};

/// The regular expression that [`word_end`] is equal to.
pub(super) const REGEX: &str = concat!(
    r" ?-?\.?\p{N}(?:[eEpP][+-]|'?[\p{L}\p{N}_]|\.)*",
    r#"|(?: |[^\s\p{L}\p{N}_])?(?:(?:u8|[uUL])?R"[^\s()\\"]{0,16}\(|(?:u8|[uUL])["'])"#,
    r#"|\)[\p{L}\p{N}_]{1,16}""#,
    r"|(?:\\[nrt])+(?![\p{L}\p{N}_])",
    r"|[^\s\p{L}\p{N}_]?[\p{L}_][\p{L}\p{N}_]*",
    r"| \\?[\p{L}_][\p{L}\p{N}_]*",
    r"| ?(?:[^\s\p{L}\p{N}_\\]|\\(?![\p{L}_]))+(?:[\r\n]+[ \t]*)?",
    r"|[ \t]*[\r\n]+[ \t]*",
    r"|\s+(?!\S)",
    r"|\s+",
);

/// The longest delimiter of a raw string, in characters.
const MAX_DELIMITER: usize = 16;

/// Returns the end of the word that starts at `start`, which is before the end of `text`.
#[inline]
pub(super) fn word_end(text: &[u8], start: usize) -> usize {
    let (class, width) = class_at(text, start);
    match class {
        LETTER => identifier(text, start),
        NUMBER => number_rest(text, start + width),
        SPACE if text[start] == b' ' => after_space(text, start),
        SPACE => white_space(text, start),
        _ => after_mark(text, start, width),
    }
}

pub(super) fn byte_at(text: &[u8], at: usize) -> u8 {
    text.get(at).copied().unwrap_or(0)
}

/// Skips what an identifier may go on with.
#[inline]
pub(super) fn skip_word(text: &[u8], mut at: usize) -> usize {
    loop {
        while at < text.len() && ascii_class(text[at]) & WORD != 0 {
            at += 1;
        }
        let (class, width) = class_at(text, at);
        if class & WORD == 0 {
            return at;
        }
        at += width;
    }
}

fn skip_blanks(text: &[u8], at: usize) -> usize {
    text[at..].iter().position(|byte| !matches!(byte, b' ' | b'\t')).map_or(text.len(), |length| at + length)
}

fn skip_newlines(text: &[u8], at: usize) -> usize {
    text[at..].iter().position(|byte| !matches!(byte, b'\r' | b'\n')).map_or(text.len(), |length| at + length)
}

/// An identifier, or a literal prefix with its quote, at a letter.
#[inline]
fn identifier(text: &[u8], start: usize) -> usize {
    let end = skip_word(text, start);
    match byte_at(text, end) {
        b'"' | b'\'' if end - start <= 3 => literal_opening(text, start, end).unwrap_or(end),
        _ => end,
    }
}

/// A literal prefix with its quote, or the opening of a raw string, if there is one at a letter.
pub(super) fn literal(text: &[u8], start: usize) -> Option<usize> {
    let length = text[start..].iter().take(4).position(|byte| matches!(byte, b'"' | b'\''))?;
    literal_opening(text, start, start + length)
}

/// The same with the quote at `end`.
#[cold]
fn literal_opening(text: &[u8], start: usize, end: usize) -> Option<usize> {
    match &text[start..end] {
        b"u8" | b"u" | b"U" | b"L" => Some(end + 1),
        b"R" | b"u8R" | b"uR" | b"UR" | b"LR" if text[end] == b'"' => raw_opening(text, end + 1),
        _ => None,
    }
}

/// The end of a raw string's delimiter and parenthesis.
fn raw_opening(text: &[u8], mut at: usize) -> Option<usize> {
    for _ in 0..=MAX_DELIMITER {
        let (class, width) = class_at(text, at);
        match byte_at(text, at) {
            b'(' => return Some(at + 1),
            b')' | b'\\' | b'"' => return None,
            _ if class == SPACE || class == 0 => return None,
            _ => at += width,
        }
    }
    None
}

/// A number with the sign and the point before it, if there is one at `at`.
#[inline]
pub(super) fn number(text: &[u8], mut at: usize) -> Option<usize> {
    at += usize::from(byte_at(text, at) == b'-');
    at += usize::from(byte_at(text, at) == b'.');
    let (class, width) = class_at(text, at);
    (class == NUMBER).then(|| number_rest(text, at + width))
}

pub(super) fn number_rest(text: &[u8], mut at: usize) -> usize {
    loop {
        let (class, width) = class_at(text, at);
        if class & WORD != 0 {
            let signed =
                matches!(byte_at(text, at), b'e' | b'E' | b'p' | b'P') && matches!(byte_at(text, at + 1), b'+' | b'-');
            at += width + usize::from(signed);
            continue;
        }
        match byte_at(text, at) {
            b'.' => at += 1,
            b'\'' => match class_at(text, at + 1) {
                (class, width) if class & WORD != 0 => at += 1 + width,
                _ => return at,
            },
            _ => return at,
        }
    }
}

/// The word at a space: what it is put before, or white space.
#[inline]
fn after_space(text: &[u8], start: usize) -> usize {
    let next = start + 1;
    match class_at(text, next).0 {
        LETTER => identifier(text, next),
        NUMBER => number_rest(text, next),
        MARK => match byte_at(text, next) {
            b'-' | b'.' => number(text, next).unwrap_or_else(|| marks(text, next)),
            b'\\' if class_at(text, next + 1).0 == LETTER => skip_word(text, next + 1),
            _ => marks(text, next),
        },
        _ => white_space(text, start),
    }
}

/// The word at a mark of `width` bytes.
#[inline]
fn after_mark(text: &[u8], start: usize, width: usize) -> usize {
    let next = start + width;
    let special = match text[start] {
        b'-' | b'.' => number(text, start),
        b')' => raw_closing(text, start),
        b'\\' => escapes(text, start),
        _ => None,
    };
    match special {
        Some(end) => end,
        None if class_at(text, next).0 == LETTER => identifier(text, next),
        None => marks(text, start),
    }
}

/// The closing of a raw string with a delimiter; an opening at the same place goes first.
fn raw_closing(text: &[u8], start: usize) -> Option<usize> {
    let end = raw_closing_end(text, start)?;
    Some(if class_at(text, start + 1).0 == LETTER { identifier(text, start + 1).max(end) } else { end })
}

/// The end of the closing of a raw string with a delimiter.
pub(super) fn raw_closing_end(text: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    for _ in 0..MAX_DELIMITER {
        let (class, width) = class_at(text, at);
        if class & WORD == 0 {
            break;
        }
        at += width;
    }
    (at > start + 1 && byte_at(text, at) == b'"').then_some(at + 1)
}

/// The longest run of `\n`, `\r` and `\t` that no word follows.
pub(super) fn escapes(text: &[u8], start: usize) -> Option<usize> {
    let is_escape = |pair: &&[u8]| matches!(pair, [b'\\', b'n' | b'r' | b't']);
    let count = text[start..].chunks(2).take_while(is_escape).count();
    let cut = class_at(text, start + 2 * count).0 & WORD != 0;
    let count = count.saturating_sub(usize::from(cut));
    (count > 0).then_some(start + 2 * count)
}

/// A run of marks up to an escape, with the newlines and the indentation behind it.
#[inline]
pub(super) fn marks(text: &[u8], start: usize) -> usize {
    let mut at = start;
    loop {
        let (class, width) = class_at(text, at);
        if class != MARK || (byte_at(text, at) == b'\\' && class_at(text, at + 1).0 == LETTER) {
            break;
        }
        at += width;
    }
    match byte_at(text, at) {
        b'\r' | b'\n' => skip_blanks(text, skip_newlines(text, at)),
        _ => at,
    }
}

/// White space: up to a newline and over it, else all but the last character before a word, else all.
pub(super) fn white_space(text: &[u8], start: usize) -> usize {
    let blanks = skip_blanks(text, start);
    if matches!(byte_at(text, blanks), b'\r' | b'\n') {
        return skip_blanks(text, skip_newlines(text, blanks));
    }
    let (mut last, mut at) = (start, start);
    loop {
        match class_at(text, at) {
            (SPACE, width) => (last, at) = (at, at + width),
            (0, _) => return at,
            _ if last > start => return last,
            _ => return at,
        }
    }
}
