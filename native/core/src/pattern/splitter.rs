//! The words of `cpp-words-1` from the classes of bytes, 64 at a time.
//!
//! The words equal those of [`super::cpp_words`], which cuts wherever a number, an escape, a raw string, a literal
//! prefix or a character beyond ASCII may be involved.

#![allow(clippy::inline_always, reason = "a call for each word takes longer than what is called")]

use super::cpp_words;
use crate::blocks::{Class, Classes};

/// What the split learns about a word at no extra cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WordKind {
    /// An ASCII identifier or keyword.
    Identifier,
    /// One space or mark, and an ASCII identifier or keyword.
    MarkedIdentifier,
    /// White space, or marks with or without white space around them.
    Plain,
    /// Anything: numbers, literal prefixes, escapes, characters beyond ASCII.
    Other,
}

/// What a byte can begin.
#[derive(Clone, Copy, PartialEq, Eq)]
enum First {
    Letter,
    Digit,
    Space,
    /// Tab, `\r`, `\n`.
    Blank,
    Mark,
    /// `-` and `.`: a number may follow.
    Sign,
    /// The end of a raw string may follow.
    Closing,
    /// The backslash, vertical tab, form feed, and bytes from 0x80.
    Rare,
}

static FIRST: [First; 256] = first_table();

const fn first_table() -> [First; 256] {
    let mut table = [First::Rare; 256];
    let mut byte = 0;
    while byte < 128 {
        table[byte] = match byte as u8 {
            b'A'..=b'Z' | b'a'..=b'z' | b'_' => First::Letter,
            b'0'..=b'9' => First::Digit,
            b' ' => First::Space,
            b'\t' | b'\r' | b'\n' => First::Blank,
            b'-' | b'.' => First::Sign,
            b')' => First::Closing,
            b'\\' | 0x0b | 0x0c => First::Rare,
            _ => First::Mark,
        };
        byte += 1;
    }
    table
}

/// Cuts `text[start..end]`, a run of valid UTF-8, into words; `classes` are the classes of `text`, and no class but
/// [`Class::Event`] goes on over `end`. Calls `each` with the kind and the range of each word.
#[inline]
pub(super) fn split(
    text: &[u8],
    classes: &Classes,
    start: usize,
    end: usize,
    mut each: impl FnMut(WordKind, usize, usize),
) {
    let run = &text[..end];
    let mut at = start;
    while at < end {
        let (kind, stop) = word(run, classes, at);
        each(kind, at, stop);
        at = stop;
    }
}

#[inline(always)]
fn first(run: &[u8], at: usize) -> First {
    run.get(at).map_or(First::Blank, |&byte| FIRST[byte as usize])
}

/// The word at `at`.
#[inline(always)]
fn word(run: &[u8], classes: &Classes, at: usize) -> (WordKind, usize) {
    let next = at + 1;
    match FIRST[run[at] as usize] {
        First::Letter => identifier(run, classes, at, at, WordKind::Identifier),
        First::Space => match first(run, next) {
            First::Letter => identifier(run, classes, at, next, WordKind::MarkedIdentifier),
            First::Mark | First::Closing => marks(run, classes, at, next),
            First::Sign if !begins_number(run, next) => marks(run, classes, at, next),
            First::Space | First::Blank => white_space(run, classes, at),
            _ => other(run, at),
        },
        First::Mark => after_mark(run, classes, at),
        First::Sign if !begins_number(run, at) => after_mark(run, classes, at),
        First::Closing => after_closing(run, classes, at),
        First::Blank => white_space(run, classes, at),
        _ => other(run, at),
    }
}

#[inline(never)]
fn other(run: &[u8], at: usize) -> (WordKind, usize) {
    (WordKind::Other, cpp_words::word_end(run, at))
}

/// Whether a digit, or something that only a closer look can distinguish from one, follows the sign or point at `at`.
#[inline(always)]
fn begins_number(run: &[u8], at: usize) -> bool {
    match run.get(at + 1) {
        Some(b'.') => run[at] == b'-' && run.get(at + 2).is_some_and(|&byte| byte.is_ascii_digit() || !byte.is_ascii()),
        Some(&byte) => byte.is_ascii_digit() || !byte.is_ascii(),
        None => false,
    }
}

/// The word at `at` whose identifier begins at `name`.
#[inline(always)]
fn identifier(run: &[u8], classes: &Classes, at: usize, name: usize, kind: WordKind) -> (WordKind, usize) {
    let end = classes.run_end(name, Class::Word);
    match run.get(end) {
        Some(b'"' | b'\'') if end - name <= 3 => match other(run, at) {
            (_, stop) if stop == end => (kind, end),
            literal => literal,
        },
        Some(0x80..) => other(run, at),
        _ => (kind, end),
    }
}

#[inline(always)]
fn after_mark(run: &[u8], classes: &Classes, at: usize) -> (WordKind, usize) {
    match first(run, at + 1) {
        First::Letter => identifier(run, classes, at, at + 1, WordKind::MarkedIdentifier),
        First::Rare => other(run, at),
        // `"R"(`, and a mark before a literal prefix, begin with a letter: they are not here.
        _ => marks(run, classes, at, at),
    }
}

/// The word at a closing parenthesis.
#[inline]
fn after_closing(run: &[u8], classes: &Classes, at: usize) -> (WordKind, usize) {
    match first(run, at + 1) {
        First::Letter | First::Digit => {
            let end = classes.run_end(at + 1, Class::Word);
            match run.get(end) {
                Some(b'"' | 0x80..) => other(run, at),
                _ if first(run, at + 1) == First::Digit => (WordKind::Plain, at + 1),
                _ => identifier(run, classes, at, at + 1, WordKind::MarkedIdentifier),
            }
        }
        First::Rare => other(run, at),
        _ => marks(run, classes, at, at),
    }
}

/// The word at `at` whose marks begin at `from`, with the newlines and the indentation behind them.
#[inline(always)]
fn marks(run: &[u8], classes: &Classes, at: usize, from: usize) -> (WordKind, usize) {
    let end = classes.run_end(from, Class::Mark);
    match run.get(end) {
        Some(b'\r' | b'\n') => {
            let newlines = classes.run_end(end, Class::Newline);
            (WordKind::Plain, classes.run_end(newlines, Class::Blank))
        }
        Some(b'\\' | 0x80..) => other(run, at),
        _ => (WordKind::Plain, end),
    }
}

/// White space at `at`: a space that no word takes, a tab, or a line ending.
#[inline]
fn white_space(run: &[u8], classes: &Classes, at: usize) -> (WordKind, usize) {
    let blanks = classes.run_end(at, Class::Blank);
    match run.get(blanks) {
        Some(b'\r' | b'\n') => {
            let newlines = classes.run_end(blanks, Class::Newline);
            (WordKind::Plain, classes.run_end(newlines, Class::Blank))
        }
        Some(0x0b | 0x0c | 0x80..) => other(run, at),
        None => (WordKind::Plain, blanks),
        Some(_) => (WordKind::Plain, if blanks - at > 1 { blanks - 1 } else { blanks }),
    }
}
