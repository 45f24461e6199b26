//! The pattern `cpp-lines-2`: up to eight lines of [`super::cpp_lines`] up to a blank line. Superwords are learned in
//! them.
//!
//! A border depends on the text since the last blank line alone, so an edit moves no border behind the next one.

use super::cpp_lines;

/// The regular expression that [`line_end`] is equal to.
pub(super) const REGEX: &str = r"(?:[^\r\n]+(?:\r?\n|\r)[ \t]*(?![ \t\r\n])){0,7}(?:[^\r\n]*[\r\n]+[ \t]*|[^\r\n]+)";

/// The most lines.
const MAX_LINES: usize = 8;

/// Returns the end of the lines that start at `start`, which is before the end of `text`.
#[inline]
pub(super) fn line_end(text: &[u8], start: usize) -> usize {
    let (mut at, mut lines) = (start, Lines::default());
    loop {
        let end = cpp_lines::line_end(text, at);
        if lines.end_with(text, at, end) {
            return end;
        }
        at = end;
    }
}

/// Some lines that belong together.
#[derive(Default)]
pub(super) struct Lines(usize);

impl Lines {
    /// Adds the line `start..end` of [`super::cpp_lines`], and says whether it is the last.
    #[inline]
    pub(super) fn end_with(&mut self, text: &[u8], start: usize, end: usize) -> bool {
        self.0 += 1;
        let is_last = self.0 == MAX_LINES || end == text.len() || is_newline(text[end]) || is_newline(text[start]) || {
            let blanks = text[start..end].iter().rev().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
            match text[start..end - blanks] {
                [.., before, b'\r', b'\n'] | [.., before, b'\r' | b'\n'] => is_newline(before),
                _ => true,
            }
        };
        if is_last {
            self.0 = 0;
        }
        is_last
    }
}

fn is_newline(byte: u8) -> bool {
    matches!(byte, b'\r' | b'\n')
}
