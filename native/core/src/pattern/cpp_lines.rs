//! The pattern `cpp-lines-1`: lines, each with its newlines and the indentation of the next one. Superwords are learned
//! in them.
//!
//! A word of `cpp-words-1` that ends with newlines and indentation ends where a line ends, so a line is whole words,
//! but for odd white space around a newline.

use memchr::memchr2;

/// The regular expression that [`line_end`] is equal to.
pub(super) const REGEX: &str = r"[^\r\n]*[\r\n]+[ \t]*|[^\r\n]+";

/// Returns the end of the line that starts at `start`, which is before the end of `text`.
#[inline]
pub(super) fn line_end(text: &[u8], start: usize) -> usize {
    let Some(length) = memchr2(b'\r', b'\n', &text[start..]) else { return text.len() };
    let newlines = skip(text, start + length, |byte| matches!(byte, b'\r' | b'\n'));
    skip(text, newlines, |byte| matches!(byte, b' ' | b'\t'))
}

fn skip(text: &[u8], at: usize, of: impl Fn(u8) -> bool) -> usize {
    text[at..].iter().position(|&byte| !of(byte)).map_or(text.len(), |length| at + length)
}
