//! The pattern `cpp-words-2`: what separates and what is named, in one word.
//!
//! Up to three marks, with a space before and after them, belong to the name, number or literal behind them (`->next`,
//! ` = new`, `, 0`, `((x`), and names with `::` between them are one name (`std::vector`), as is a name with its `::`
//! (`std::`). All else is as in [`super::cpp_words`], whose functions this module uses.
//!
//! In the order of the alternatives of [`REGEX`]: a preprocessing number, the opening of a raw string, or a literal
//! prefix with its quote, each with the marks before it; the closing of a raw string with a delimiter; a run of
//! escapes; a chain of names with the marks before it; an identifier behind a backslash; a run of marks with the
//! newline and the indentation behind it; a newline with the blanks around it; white space.

use super::class::{LETTER, MARK, NUMBER, SPACE, class_at};
use super::cpp_words::{
    byte_at, escapes, literal, marks, number, number_rest, raw_closing_end, skip_word, white_space,
};

/// The regular expression that [`word_end`] is equal to.
pub(super) const REGEX: &str = concat!(
    r"(?: ?[^\s\p{L}\p{N}_\\]{1,3})? ?(?:-?\.?\p{N}(?:[eEpP][+-]|'?[\p{L}\p{N}_]|\.)*",
    r#"|(?:u8|[uUL])?R"[^\s()\\"]{0,16}\(|(?:u8|[uUL])["'])"#,
    r#"|\)[\p{L}\p{N}_]{1,16}""#,
    r"|(?:\\[nrt])+(?![\p{L}\p{N}_])",
    r"|(?: ?[^\s\p{L}\p{N}_\\]{1,3})? ?[\p{L}_][\p{L}\p{N}_]*(?:::[\p{L}_][\p{L}\p{N}_]*)*(?:::)?",
    r"| ?\\[\p{L}_][\p{L}\p{N}_]*",
    r"| ?(?:[^\s\p{L}\p{N}_\\]|\\(?![\p{L}_]))+(?:[\r\n]+[ \t]*)?",
    r"|[ \t]*[\r\n]+[ \t]*",
    r"|\s+(?!\S)",
    r"|\s+",
);

/// The most marks that belong to what is behind them.
const MAX_MARKS: usize = 3;

/// Returns the end of the word that starts at `start`, which is before the end of `text`.
#[inline]
pub(super) fn word_end(text: &[u8], start: usize) -> usize {
    let (class, width) = class_at(text, start);
    match class {
        LETTER => literal(text, start).unwrap_or_else(|| chain(text, start)),
        NUMBER => number_rest(text, start + width),
        SPACE if text[start] == b' ' => after_space(text, start),
        SPACE => white_space(text, start),
        _ if text[start] == b'\\' => after_backslash(text, start),
        _ => after_marks(text, start, start),
    }
}

/// A chain of names, at the letter that it begins with.
fn chain(text: &[u8], start: usize) -> usize {
    let mut at = start;
    loop {
        at = skip_word(text, at);
        if byte_at(text, at) != b':' || byte_at(text, at + 1) != b':' {
            return at;
        }
        at += 2;
        if class_at(text, at).0 != LETTER {
            return at;
        }
    }
}

/// The word at a space: what it is put before, or white space.
fn after_space(text: &[u8], start: usize) -> usize {
    let next = start + 1;
    match class_at(text, next).0 {
        LETTER => literal(text, next).unwrap_or_else(|| chain(text, next)),
        NUMBER => number_rest(text, next),
        MARK if text[next] != b'\\' => after_marks(text, start, next),
        MARK if class_at(text, next + 1).0 == LETTER => skip_word(text, next + 1),
        MARK => marks(text, next),
        _ => white_space(text, start),
    }
}

/// The word at a backslash.
fn after_backslash(text: &[u8], start: usize) -> usize {
    escapes(text, start).unwrap_or_else(|| match class_at(text, start + 1).0 {
        LETTER => skip_word(text, start + 1),
        _ => marks(text, start),
    })
}

/// The word at `start` whose marks, of which the first is no backslash, begin at `first`.
fn after_marks(text: &[u8], start: usize, first: usize) -> usize {
    let mut at = first;
    for _ in 0..MAX_MARKS {
        let (class, width) = class_at(text, at);
        if class != MARK || text[at] == b'\\' {
            break;
        }
        at += width;
    }
    let item = at + usize::from(byte_at(text, at) == b' ');
    let class = class_at(text, item).0;
    let taken = if class == LETTER { literal(text, item) } else { number(text, item) };
    let closing = || (text[start] == b')').then(|| raw_closing_end(text, start)).flatten();
    match taken.or_else(closing) {
        Some(end) => end,
        None if class == LETTER => chain(text, item),
        None => marks(text, first),
    }
}
