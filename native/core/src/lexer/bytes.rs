//! What each byte can begin or continue, as tables.

/// What a token that begins with a byte can be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum First {
    Space,
    Newline,
    Identifier,
    Digit,
    Dot,
    Slash,
    DoubleQuote,
    SingleQuote,
    Backslash,
    /// A punctuator that is always one byte long.
    Single,
    /// A punctuator that may be longer.
    Multiple,
    Other,
}

/// The byte continues an identifier.
pub(super) const IDENTIFIER: u8 = 1;
/// The byte continues a preprocessing number by itself.
pub(super) const NUMBER: u8 = 2;
/// The byte cannot be skipped over inside a string or character literal.
pub(super) const LITERAL_STOP: u8 = 4;
/// The byte is a space that does not end the line.
pub(super) const SPACE: u8 = 8;
/// The byte may be in the delimiter of a raw string.
pub(super) const DELIMITER: u8 = 16;

/// The first-byte class of every byte.
pub(super) static FIRST: [First; 256] = first_table();
static FLAGS: [u8; 256] = flag_table();

/// Whether `byte` has `flag`.
#[inline]
pub(super) fn has(byte: u8, flag: u8) -> bool {
    FLAGS[byte as usize] & flag != 0
}

/// Whether the byte at `at` exists and has `flag`.
#[inline]
pub(super) fn has_at(source: &[u8], at: usize, flag: u8) -> bool {
    source.get(at).is_some_and(|&byte| has(byte, flag))
}

/// Whether the byte at `at` begins an identifier.
#[inline]
pub(super) fn begins_identifier(source: &[u8], at: usize) -> bool {
    source.get(at).is_some_and(|&byte| FIRST[byte as usize] == First::Identifier)
}

/// The first position at or after `at` whose byte does not have `flag`.
#[inline]
pub(super) fn run_end(source: &[u8], mut at: usize, flag: u8) -> usize {
    while has_at(source, at, flag) {
        at += 1;
    }
    at
}

const fn first_of(byte: u8) -> First {
    match byte {
        b' ' | b'\t' | 0x0b | 0x0c => First::Space,
        b'\n' | b'\r' => First::Newline,
        b'A'..=b'Z' | b'a'..=b'z' | b'_' | b'$' | 0x80..=0xff => First::Identifier,
        b'0'..=b'9' => First::Digit,
        b'.' => First::Dot,
        b'/' => First::Slash,
        b'"' => First::DoubleQuote,
        b'\'' => First::SingleQuote,
        b'\\' => First::Backslash,
        b'(' | b')' | b'{' | b'}' | b'[' | b']' | b';' | b',' | b'?' | b'~' => First::Single,
        b'!' | b'#' | b'%' | b'&' | b'*' | b'+' | b'-' | b':' | b'<' | b'=' | b'>' | b'^' | b'|' => First::Multiple,
        _ => First::Other,
    }
}

const fn first_table() -> [First; 256] {
    let mut table = [First::Other; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = first_of(byte as u8);
        byte += 1;
    }
    table
}

const fn flags_of(byte: u8) -> u8 {
    let mut flags = 0;
    if matches!(byte, b'A'..=b'Z' | b'a'..=b'z' | b'_' | b'$' | b'0'..=b'9' | 0x80..=0xff) {
        flags |= IDENTIFIER;
    }
    if matches!(byte, b'A'..=b'Z' | b'a'..=b'z' | b'_' | b'.' | b'0'..=b'9' | 0x80..=0xff) {
        flags |= NUMBER;
    }
    if matches!(byte, b'"' | b'\'' | b'\\' | b'\n' | b'\r') {
        flags |= LITERAL_STOP;
    }
    if matches!(byte, b' ' | b'\t' | 0x0b | 0x0c) {
        flags |= SPACE;
    }
    if matches!(byte, 0x21..=0xff) && !matches!(byte, b'(' | b')' | b'\\' | 0x7f) {
        flags |= DELIMITER;
    }
    flags
}

const fn flag_table() -> [u8; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = flags_of(byte as u8);
        byte += 1;
    }
    table
}
