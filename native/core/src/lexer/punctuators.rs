//! Punctuators by maximal munch, digraphs and the CUDA launch brackets `<<<` and `>>>` included.

use super::forms::Span;
use super::splice::peek;

/// The punctuator at `start`, whose first byte is known to begin one.
pub(super) fn punctuator(source: &[u8], start: usize) -> Span {
    if let Some(&[a, b, c, d]) = source.get(start..start + 4)
        && b != b'\\'
        && c != b'\\'
        && d != b'\\'
    {
        return Span::new(start + length([a, b, c, d]));
    }
    spliced_punctuator(source, start)
}

/// The same where a splice may be between the bytes, or the source ends.
fn spliced_punctuator(source: &[u8], start: usize) -> Span {
    let mut bytes = [0; 4];
    let mut ends = [start; 4];
    let mut at = start;
    for (byte, end) in bytes.iter_mut().zip(&mut ends) {
        let (Some(next), position) = peek(source, at) else { break };
        *byte = next;
        at = position + 1;
        *end = at;
    }
    let length = length(bytes);
    let end = ends[length - 1];
    Span { end, spliced: end - start != length }
}

/// How many of the bytes (0 after the end of the source) make up the punctuator that begins with the first.
fn length(bytes: [u8; 4]) -> usize {
    match bytes {
        [b'%', b':', b'%', b':'] => 4,
        // `<::` is `<` and `::` unless `:` or `>` follows, [lex.pptoken].
        [b'<', b':', b':', next] if !matches!(next, b':' | b'>') => 1,
        [b'<', b'<', b'<' | b'=', _]
        | [b'>', b'>', b'>' | b'=', _]
        | [b'<', b'=', b'>', _]
        | [b'-', b'>', b'*', _]
        | [b'.', b'.', b'.', _] => 3,
        [b'<', b'<' | b'=' | b':' | b'%', ..]
        | [b'>', b'>' | b'=', ..]
        | [b'-', b'>' | b'-' | b'=', ..]
        | [b'.', b'*', ..]
        | [b':', b':' | b'>', ..]
        | [b'+', b'+' | b'=', ..]
        | [b'&', b'&' | b'=', ..]
        | [b'|', b'|' | b'=', ..]
        | [b'%', b'=' | b'>' | b':', ..]
        | [b'=' | b'!' | b'*' | b'/' | b'^', b'=', ..]
        | [b'#', b'#', ..] => 2,
        _ => 1,
    }
}
