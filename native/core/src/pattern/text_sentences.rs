//! The pattern `text-sentences-1`: sentences of prose, in which superwords are learned.
//!
//! A sentence ends behind a full stop, an exclamation or a question mark, and the quotes and brackets that close with
//! it, if white space follows; and at newlines. Behind them the words of [`super::text_words`] end, too.

use super::class::{SPACE, class_at};

/// The regular expression that [`sentence_end`] is equal to.
pub(super) const REGEX: &str = concat!(
    r#"(?:[^\r\n.!?]|[.!?](?!["')\]]*(?!\S)))*(?:[.!?]["')\]]*(?!\S)[\r\n]*|[\r\n]+)"#,
    r#"|(?:[^\r\n.!?]|[.!?](?!["')\]]*(?!\S)))+"#,
);

/// Returns the end of the sentence that starts at `start`, which is before the end of `text`.
pub(super) fn sentence_end(text: &[u8], start: usize) -> usize {
    let mut at = start;
    while at < text.len() {
        match text[at] {
            b'\r' | b'\n' => return skip(text, at, is_newline),
            b'.' | b'!' | b'?' => {
                let closed = skip(text, at + 1, |byte| matches!(byte, b'"' | b'\'' | b')' | b']'));
                if closed == text.len() || class_at(text, closed).0 == SPACE {
                    return skip(text, closed, is_newline);
                }
                at = closed;
            }
            _ => at += 1,
        }
    }
    text.len()
}

fn skip(text: &[u8], at: usize, of: impl Fn(u8) -> bool) -> usize {
    text[at..].iter().position(|&byte| !of(byte)).map_or(text.len(), |length| at + length)
}

fn is_newline(byte: u8) -> bool {
    matches!(byte, b'\r' | b'\n')
}
