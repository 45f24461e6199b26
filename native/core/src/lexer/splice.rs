//! Line splices: a backslash, optional spaces, and a line ending, which C++ removes before it forms tokens.
//!
//! The spaces between the backslash and the line ending are allowed because GCC and Clang allow them, and C++23
//! requires it.

use std::borrow::Cow;

use super::bytes::{SPACE, has, run_end};

/// Where the line ending at `at` ends (`\n`, `\r\n` or a lone `\r`), if one starts there.
#[inline]
pub(super) fn newline_end(source: &[u8], at: usize) -> Option<usize> {
    match source.get(at)? {
        b'\r' if source.get(at + 1) == Some(&b'\n') => Some(at + 2),
        b'\n' | b'\r' => Some(at + 1),
        _ => None,
    }
}

/// Where the splice at `at` ends, if one starts there.
#[inline]
pub(super) fn splice_end(source: &[u8], at: usize) -> Option<usize> {
    if source.get(at) != Some(&b'\\') {
        return None;
    }
    newline_end(source, run_end(source, at + 1, SPACE))
}

/// The first position at or after `at` where no splice starts.
#[inline]
pub(super) fn skip(source: &[u8], mut at: usize) -> usize {
    while let Some(end) = splice_end(source, at) {
        at = end;
    }
    at
}

/// The next logical byte at or after `at`, and where it is.
#[inline]
pub(super) fn peek(source: &[u8], at: usize) -> (Option<u8>, usize) {
    let at = skip(source, at);
    (source.get(at).copied(), at)
}

/// The position before all splices that end at `at`, looking no further back than `floor`.
pub(super) fn skip_back(source: &[u8], floor: usize, mut at: usize) -> usize {
    while let Some(start) = splice_start(source, floor, at) {
        at = start;
    }
    at
}

/// Where the splice that ends at `end` starts, if one ends there.
fn splice_start(source: &[u8], floor: usize, end: usize) -> Option<usize> {
    let text = &source[floor..end];
    let line = text.strip_suffix(b"\r\n").or_else(|| text.strip_suffix(b"\n")).or_else(|| text.strip_suffix(b"\r"))?;
    let spaces = line.iter().rev().take_while(|&&byte| has(byte, SPACE)).count();
    let backslash = line.len().checked_sub(spaces + 1)?;
    (line[backslash] == b'\\').then_some(floor + backslash)
}

/// Whether there is a splice in `text`.
pub(super) fn any(text: &[u8]) -> bool {
    memchr::memchr_iter(b'\\', text).any(|at| splice_end(text, at).is_some())
}

/// `text` without its splices; `spliced` says whether there are any.
pub(super) fn unspliced(text: &[u8], spliced: bool) -> Cow<'_, [u8]> {
    if !spliced {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len());
    let mut copied = 0;
    for at in memchr::memchr_iter(b'\\', text) {
        if let Some(end) = splice_end(text, at) {
            out.extend_from_slice(&text[copied..at]);
            copied = end;
        }
    }
    out.extend_from_slice(&text[copied..]);
    Cow::Owned(out)
}
