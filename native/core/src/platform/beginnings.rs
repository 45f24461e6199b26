//! Where in plain code a piece of evidence may begin, seen from a few bytes.
//!
//! Every question here is one for a filter: a yes may be wrong and costs a look by the lexer, a no is always right.

use super::names::Starts;
use super::sequences::{ANY_NAME, ANY_NUMBER, Opening};
use crate::lexer::continues_identifier;

/// The filters of all rules.
pub(super) struct Beginnings {
    pairs: Starts,
    words: Words,
    /// What may follow the word that begins a sequence, by the low byte of its atom.
    after_word: Follow,
    /// What may follow the punctuator that begins a sequence, by its first byte.
    after_mark: Follow,
}

impl Beginnings {
    pub(super) fn new<'a>(identifiers: impl Iterator<Item = &'a str>, openings: &[Opening]) -> Self {
        let mut this =
            Self { pairs: Starts::new(), words: Words::new(), after_word: Follow::new(), after_mark: Follow::new() };
        (0..=u8::MAX).filter(|&byte| needs_lexer(byte)).for_each(|byte| this.pairs.insert(&[byte]));
        for pair in [b"//", b"/*", b"/\\", b"%:", b"%\\"] {
            this.pairs.insert(pair);
        }
        for identifier in identifiers {
            this.pairs.insert(identifier.trim_end_matches('*').as_bytes());
            this.words.insert(identifier);
        }
        for opening in openings {
            this.add(opening);
        }
        this
    }

    fn add(&mut self, Opening { first, atom, second }: &Opening) {
        match **first {
            [byte, ..] if continues_identifier(byte) => {
                self.pairs.insert(first);
                self.words.whole.insert(Words::whole(first, 0, first.len()));
                self.after_word.add(*atom as u8, second.as_deref());
            }
            [byte] => {
                self.add_mark(byte, second.as_deref());
                self.after_mark.add(byte, second.as_deref());
            }
            [byte, ref rest @ ..] => {
                self.pairs.insert(first);
                self.after_mark.add(byte, Some(rest));
            }
            [] => {}
        }
    }

    /// Lets pass a punctuator of one byte: before spaces, and right before its second token.
    fn add_mark(&mut self, byte: u8, second: Option<&[u8]>) {
        let Some(second) = second else { return self.pairs.insert(&[byte]) };
        (0..=u8::MAX).filter(|&next| is_space(next) || begins(second, next)).for_each(|next| {
            self.pairs.insert(&[byte, next]);
        });
        for next in [b'/', b'\\'] {
            self.pairs.insert(&[byte, next]);
        }
    }

    /// Whether anything may begin with the first two bytes of `text`: evidence, or what only the lexer knows.
    #[inline]
    pub(super) fn may_begin(&self, text: &[u8]) -> bool {
        self.pairs.may_have(text)
    }

    /// Whether the word `source[start..end]` may be an identifier of the rules, or begin a sequence.
    #[inline]
    pub(super) fn may_have_word(&self, source: &[u8], start: usize, end: usize) -> bool {
        self.words.may_have(source, start, end)
    }

    /// Whether a sequence may begin with a word of this atom, which ends at `end`.
    #[inline]
    pub(super) fn may_go_on(&self, atom: u16, source: &[u8], end: usize) -> bool {
        self.after_word.may(atom as u8, source, end)
    }

    /// Whether a sequence may begin with a punctuator whose first byte is at `at`.
    #[inline]
    pub(super) fn may_have_mark(&self, source: &[u8], at: usize) -> bool {
        self.after_mark.may(source[at], source, at + 1)
    }
}

/// Whether the text from a byte on is never plain code: literals, directives, splices, bytes beyond ASCII, `$`.
pub(super) fn needs_lexer(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'' | b'#' | b'$' | b'\\' | 0x80..)
}

/// Whether the byte is no token: spaces and line endings.
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// Whether a token of a sequence can begin with `byte`, splices aside.
fn begins(token: &[u8], byte: u8) -> bool {
    match token {
        token if token == ANY_NAME.as_bytes() => continues_identifier(byte) && !byte.is_ascii_digit(),
        token if token == ANY_NUMBER.as_bytes() => byte.is_ascii_digit() || byte == b'.',
        _ => token.first() == Some(&byte),
    }
}

/// The words that rules name, by their first bytes.
struct Words {
    /// By the first eight bytes and the length.
    whole: Bits,
    /// By the first four bytes.
    prefixes: Bits,
    /// Prefixes of fewer than four bytes.
    short_prefixes: Starts,
}

impl Words {
    const PREFIX_BYTES: usize = 4;

    fn new() -> Self {
        Self { whole: Bits::new(), prefixes: Bits::new(), short_prefixes: Starts::new() }
    }

    /// Takes a name, or a prefix that ends with `*`.
    fn insert(&mut self, pattern: &str) {
        match pattern.strip_suffix('*').map(str::as_bytes) {
            None => self.whole.insert(Self::whole(pattern.as_bytes(), 0, pattern.len())),
            Some(prefix) if prefix.len() < Self::PREFIX_BYTES => self.short_prefixes.insert(prefix),
            Some(prefix) => self.prefixes.insert(head(prefix, 0, Self::PREFIX_BYTES)),
        }
    }

    #[inline]
    fn whole(text: &[u8], start: usize, end: usize) -> u64 {
        head(text, start, end) ^ ((end - start) as u64).rotate_right(8)
    }

    #[inline]
    fn may_have(&self, text: &[u8], start: usize, end: usize) -> bool {
        self.whole.has(Self::whole(text, start, end))
            || self.prefixes.has(head(text, start, end.min(start + Self::PREFIX_BYTES)))
            || self.short_prefixes.may_have(&text[start..end])
    }
}

/// The first eight bytes of `text[start..end]` as a number, zeros behind them.
#[inline]
fn head(text: &[u8], start: usize, end: usize) -> u64 {
    const BYTES: usize = size_of::<u64>();
    match text[start..].first_chunk::<BYTES>() {
        Some(chunk) if end - start >= BYTES => u64::from_le_bytes(*chunk),
        Some(chunk) => u64::from_le_bytes(*chunk) & ((1 << (8 * (end - start))) - 1),
        None => text[start..end].iter().rev().fold(0, |packed, &byte| packed << 8 | u64::from(byte)),
    }
}

/// The first bytes of the tokens that may follow, for each of 256 keys.
struct Follow {
    /// Keys after which nothing needs to follow.
    alone: [bool; 256],
    /// Bytes that are enough by themselves.
    bytes: Box<[[u64; 4]; 256]>,
    /// Keys with the first two bytes.
    pairs: Bits,
}

impl Follow {
    fn new() -> Self {
        Self { alone: [false; 256], bytes: Box::new([[0; 4]; 256]), pairs: Bits::new() }
    }

    fn add(&mut self, key: u8, next: Option<&[u8]>) {
        match next {
            None => self.alone[usize::from(key)] = true,
            Some(&[first, second, ..]) if first != b'@' => {
                self.pairs.insert(Self::pair(key, first, second));
                self.pairs.insert(Self::pair(key, first, b'\\'));
            }
            Some(token) => (0..=u8::MAX).filter(|&byte| begins(token, byte)).for_each(|byte| {
                self.bytes[usize::from(key)][usize::from(byte / 64)] |= 1 << (byte % 64);
            }),
        }
    }

    fn pair(key: u8, first: u8, second: u8) -> u64 {
        u64::from(u32::from_le_bytes([key, first, second, 0]))
    }

    /// Whether the text at `at` may begin, after spaces, with what follows `key`, or with a comment or splice.
    fn may(&self, key: u8, source: &[u8], at: usize) -> bool {
        if self.alone[usize::from(key)] {
            return true;
        }
        let Some(spaces) = source[at..].iter().position(|&byte| !is_space(byte)) else { return false };
        let first = source[at + spaces];
        let second = source.get(at + spaces + 1).copied().unwrap_or(0);
        match (first, second) {
            (b'\\', _) | (b'/', b'/' | b'*' | b'\\') => true,
            _ => {
                self.bytes[usize::from(key)][usize::from(first / 64)] >> (first % 64) & 1 == 1
                    || self.pairs.has(Self::pair(key, first, second))
            }
        }
    }
}

/// A set of numbers, each one bit, where a hash says: it may have a number that was not inserted.
struct Bits(Box<[u64; 1024]>);

impl Bits {
    fn new() -> Self {
        Self(Box::new([0; 1024]))
    }

    fn insert(&mut self, number: u64) {
        let bit = Self::bit(number);
        self.0[bit / 64] |= 1 << (bit % 64);
    }

    #[inline]
    fn has(&self, number: u64) -> bool {
        let bit = Self::bit(number);
        self.0[bit / 64] >> (bit % 64) & 1 == 1
    }

    #[inline]
    fn bit(number: u64) -> usize {
        (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 48) as usize
    }
}
