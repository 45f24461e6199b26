//! Masks from a table of bytes.

use super::masks::{BYTES, Masks};

/// The masks of 64 bytes.
pub(super) fn masks(bytes: &[u8; BYTES]) -> Masks {
    let mut masks = Masks::default();
    for (at, &byte) in bytes.iter().enumerate() {
        let set = |mask: &mut u64, is: bool| *mask |= u64::from(is) << at;
        let word = byte.is_ascii_alphanumeric() || byte == b'_';
        set(&mut masks.word, word);
        set(&mut masks.mark, byte.is_ascii() && !word && !matches!(byte, b'\\' | b' ' | 9..=13));
        set(&mut masks.newline, matches!(byte, b'\r' | b'\n'));
        set(&mut masks.blank, matches!(byte, b' ' | b'\t'));
        set(&mut masks.tab, byte == b'\t');
        set(&mut masks.digit, byte.is_ascii_digit());
        set(&mut masks.sign, matches!(byte, b'-' | b'.'));
        set(&mut masks.plus, byte == b'+');
        set(&mut masks.quote, matches!(byte, b'"' | b'\''));
        set(&mut masks.prefix, matches!(byte, b'8' | b'u' | b'U' | b'L' | b'R' | b'r'));
        set(&mut masks.closing, byte == b')');
        set(&mut masks.colon, byte == b':');
    }
    masks
}
