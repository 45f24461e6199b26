//! The general category of a character, as the regular expressions of `tokenizers` see it.

use std::sync::LazyLock;

use super::super::class::wide_scalar;
use super::super::classes::{CAPITALS, DIGITS, LETTERS, MARKS, NUMBERS, PUNCTUATION, SMALL_LETTERS, SPACES, SYMBOLS};

/// `\p{Lu}` and `\p{Lt}`.
pub(super) const CAPITAL: u8 = 1;
/// `\p{Ll}`.
pub(super) const SMALL: u8 = 2;
/// `\p{Lm}` and `\p{Lo}`.
pub(super) const CASELESS: u8 = 4;
/// `\p{L}`.
pub(super) const LETTER: u8 = CAPITAL | SMALL | CASELESS;
/// `\p{M}`.
pub(super) const MARK: u8 = 8;
/// `\p{N}`.
pub(super) const NUMBER: u8 = 16;
/// `\s`.
pub(super) const SPACE: u8 = 32;
/// `\p{P}`.
pub(super) const PUNCTUATION_MARK: u8 = 64;
/// `\p{S}`.
pub(super) const SYMBOL: u8 = 128;

/// The category of every scalar value; 0 for what is in none of the above. No character is in two of them.
static CATEGORIES: LazyLock<Box<[u8]>> = LazyLock::new(categories);
static ASCII: LazyLock<[u8; 128]> = LazyLock::new(|| std::array::from_fn(|byte| CATEGORIES[byte]));

fn categories() -> Box<[u8]> {
    let mut table = vec![0; 0x11_0000].into_boxed_slice();
    let tables: [(&[(u32, u32)], u8); 8] = [
        (&LETTERS, CASELESS),
        (&CAPITALS, CAPITAL),
        (&SMALL_LETTERS, SMALL),
        (&MARKS, MARK),
        (&NUMBERS, NUMBER),
        (&SPACES, SPACE),
        (&PUNCTUATION, PUNCTUATION_MARK),
        (&SYMBOLS, SYMBOL),
    ];
    for (ranges, category) in tables {
        for &(first, last) in ranges {
            table[first as usize..=last as usize].fill(category);
        }
    }
    table
}

/// The categories of a text's characters.
#[derive(Clone, Copy)]
pub(super) struct Text<'a> {
    text: &'a [u8],
    ascii: &'static [u8; 128],
}

impl<'a> Text<'a> {
    /// Looks at `text`, which is UTF-8.
    #[inline]
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self { text, ascii: &ASCII }
    }

    #[inline]
    pub(super) fn len(self) -> usize {
        self.text.len()
    }

    /// The byte at `at`; 0 at the end.
    #[inline]
    pub(super) fn byte(self, at: usize) -> u8 {
        self.text.get(at).copied().unwrap_or(0)
    }

    /// The bytes from `at` on.
    #[inline]
    pub(super) fn rest(self, at: usize) -> &'a [u8] {
        &self.text[at..]
    }

    /// The category and the length of the character at `at`; 0 and 0 at the end of the text.
    #[inline]
    pub(super) fn at(self, at: usize) -> (u8, usize) {
        match self.text.get(at) {
            None => (0, 0),
            Some(&byte) if byte < 0x80 => (self.ascii[usize::from(byte)], 1),
            Some(_) => {
                let (code, width) = self.code(at);
                (CATEGORIES.get(code as usize).copied().unwrap_or(0), width)
            }
        }
    }

    /// Whether the character at `at` is in one of `categories`.
    #[inline]
    pub(super) fn is(self, at: usize, categories: u8) -> bool {
        self.at(at).0 & categories != 0
    }

    /// The end of the run of characters in `categories` from `at` on.
    #[inline]
    pub(super) fn skip(self, mut at: usize, categories: u8) -> usize {
        loop {
            let (category, width) = self.at(at);
            if category & categories == 0 {
                return at;
            }
            at += width;
        }
    }

    /// The end of the run of characters that are in none of `categories` from `at` on.
    #[inline]
    pub(super) fn skip_others(self, mut at: usize, categories: u8) -> usize {
        loop {
            let (category, width) = self.at(at);
            if width == 0 || category & categories != 0 {
                return at;
            }
            at += width;
        }
    }

    /// The end of the run of bytes of `of` from `at` on.
    #[inline]
    pub(super) fn skip_bytes(self, mut at: usize, of: &[u8]) -> usize {
        while at < self.text.len() && of.contains(&self.text[at]) {
            at += 1;
        }
        at
    }

    /// The end of up to `most` numbers from `at` on.
    #[inline]
    pub(super) fn numbers(self, mut at: usize, most: usize) -> usize {
        for _ in 0..most {
            let (category, width) = self.at(at);
            if category & NUMBER == 0 {
                break;
            }
            at += width;
        }
        at
    }

    /// The scalar value and the length of the character at `at`, before the end.
    #[inline]
    pub(super) fn code(self, at: usize) -> (u32, usize) {
        match self.byte(at) {
            byte @ 0..0x80 => (u32::from(byte), 1),
            lead => wide_scalar(self.text, at, lead),
        }
    }
}

/// Whether a scalar value is in one of the inclusive ranges of a table, which ascend.
pub(super) fn is_in(table: &[(u32, u32)], code: u32) -> bool {
    let next = table.partition_point(|&(first, _)| first <= code);
    next > 0 && code <= table[next - 1].1
}

/// Whether the pre-tokenizer `Digits` takes a character for a digit.
pub(super) fn is_digit(code: u32) -> bool {
    is_in(&DIGITS, code)
}
