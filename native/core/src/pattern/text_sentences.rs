//! The pattern `text-sentences-1`: sentences of prose, in which superwords are learned.
//!
//! A sentence ends behind a full stop, an exclamation or a question mark, and the quotes and brackets that close with
//! it, if white space follows; and at newlines. Behind them the words of [`super::text_words`] end, too.

use super::class::{SPACE, class_at};
use super::text_words::{is_newline, skip_newlines};

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
            byte if is_newline(byte) => return skip_newlines(text, at),
            b'.' | b'!' | b'?' => {
                let closing = text[at + 1..].iter().take_while(|byte| matches!(byte, b'"' | b'\'' | b')' | b']'));
                let closed = at + 1 + closing.count();
                if closed == text.len() || class_at(text, closed).0 == SPACE {
                    return skip_newlines(text, closed);
                }
                at = closed;
            }
            _ => at += 1,
        }
    }
    text.len()
}
