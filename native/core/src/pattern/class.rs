//! What a character is to a pre-token pattern.

use std::sync::LazyLock;

use super::classes::{LETTERS, NUMBERS, SPACES};

/// `\p{L}` or the underscore: what an identifier may begin with.
pub(super) const LETTER: u8 = 1;
/// `\p{N}`.
pub(super) const NUMBER: u8 = 2;
/// `\s`.
pub(super) const SPACE: u8 = 4;
/// Everything else.
pub(super) const MARK: u8 = 8;
/// What an identifier may go on with.
pub(super) const WORD: u8 = LETTER | NUMBER;

/// No character above this is anything but a mark.
const LAST: usize = last(&[LETTERS[LETTERS.len() - 1], NUMBERS[NUMBERS.len() - 1], SPACES[SPACES.len() - 1]]);

const fn last(ranges: &[(u32, u32)]) -> usize {
    let (mut greatest, mut index) = (0, 0);
    while index < ranges.len() {
        greatest = if ranges[index].1 > greatest { ranges[index].1 } else { greatest };
        index += 1;
    }
    greatest as usize
}

static ASCII: [u8; 256] = ascii_classes();
static WIDE: LazyLock<Box<[u8]>> = LazyLock::new(wide_classes);

const fn ascii_classes() -> [u8; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 128 {
        table[byte] = match byte as u8 {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => LETTER,
            b'0'..=b'9' => NUMBER,
            b'\t'..=b'\r' | b' ' => SPACE,
            _ => MARK,
        };
        byte += 1;
    }
    table
}

fn wide_classes() -> Box<[u8]> {
    let mut table = vec![MARK; LAST + 1].into_boxed_slice();
    for (ranges, class) in [(&LETTERS[..], LETTER), (&NUMBERS[..], NUMBER), (&SPACES[..], SPACE)] {
        for &(first, last) in ranges {
            table[first as usize..=last as usize].fill(class);
        }
    }
    table
}

/// The class of an ASCII byte; 0 for a byte of a longer character.
#[inline]
pub(super) fn ascii_class(byte: u8) -> u8 {
    ASCII[byte as usize]
}

/// The class and the length in bytes of the character at `at`; class 0 and length 0 at the end of `text`.
#[inline]
pub(super) fn class_at(text: &[u8], at: usize) -> (u8, usize) {
    match text.get(at) {
        None => (0, 0),
        Some(&byte) if byte < 0x80 => (ASCII[byte as usize], 1),
        Some(&byte) => wide_class(text, at, byte),
    }
}

#[inline(never)]
fn wide_class(text: &[u8], at: usize, lead: u8) -> (u8, usize) {
    let (code, width) = wide_scalar(text, at, lead);
    (WIDE.get(code as usize).copied().unwrap_or(MARK), width)
}

/// The scalar value and the length in bytes of the character of several bytes at `at`, whose first byte is `lead`.
#[inline]
pub(super) fn wide_scalar(text: &[u8], at: usize, lead: u8) -> (u32, usize) {
    let (width, lead_bits) = match lead {
        0..0xE0 => (2, lead & 0x1F),
        0xE0..0xF0 => (3, lead & 0x0F),
        0xF0.. => (4, lead & 0x07),
    };
    let tail = text.get(at + 1..at + width).unwrap_or_default();
    (tail.iter().fold(u32::from(lead_bits), |code, byte| code << 6 | u32::from(byte & 0x3F)), width)
}
