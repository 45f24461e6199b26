//! The classes of 64 bytes, as masks.

use super::super::masks::BYTES;

/// The masks of 64 bytes: bit `i` is for byte `i`. A byte after the end of the text is a control character.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Bytes {
    /// ASCII letters.
    pub(in super::super) letter: u64,
    /// What has the bit of small letters.
    pub(in super::super) small: u64,
    pub(in super::super) digit: u64,
    /// `\r` and `\n`.
    pub(in super::super) newline: u64,
    /// ASCII white space, line endings excluded.
    pub(in super::super) blank: u64,
    pub(in super::super) space: u64,
    pub(in super::super) apostrophe: u64,
    pub(in super::super) slash: u64,
    pub(in super::super) underscore: u64,
    /// Control characters, white space excluded.
    pub(in super::super) control: u64,
    /// Bytes of characters beyond ASCII.
    pub(in super::super) wide: u64,
}

/// The masks of 64 bytes.
pub(in super::super) fn of(bytes: &[u8; BYTES]) -> Bytes {
    let mut masks = Bytes::default();
    for (at, &byte) in bytes.iter().enumerate() {
        let set = |mask: &mut u64, is: bool| *mask |= u64::from(is) << at;
        set(&mut masks.letter, byte.is_ascii_alphabetic());
        set(&mut masks.small, byte & 0x20 != 0);
        set(&mut masks.digit, byte.is_ascii_digit());
        set(&mut masks.newline, matches!(byte, b'\r' | b'\n'));
        set(&mut masks.blank, matches!(byte, b' ' | b'\t' | 0x0b | 0x0c));
        set(&mut masks.space, byte == b' ');
        set(&mut masks.apostrophe, byte == b'\'');
        set(&mut masks.slash, byte == b'/');
        set(&mut masks.underscore, byte == b'_');
        set(&mut masks.control, byte.is_ascii_control() && !matches!(byte, 9..=13));
        set(&mut masks.wide, !byte.is_ascii());
    }
    masks
}
