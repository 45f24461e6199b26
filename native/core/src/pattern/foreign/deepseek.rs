//! The splits of `DeepSeek`, one after another: V3 and R1, Coder, and those of LLM and V2.

use super::category::{LETTER, MARK, PUNCTUATION_MARK, SPACE, SYMBOL, Text, is_digit, is_in};
use super::cl100k::white_space;
use super::sequence::Found;

pub(super) const NUMBERS_REGEX: &str = r"\p{N}{1,3}";
pub(super) const KANA_REGEX: &str = "[一-龥぀-ゟ゠-ヿ]+";
pub(super) const WORDS_REGEX: &str = concat!(
    r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"##,
    "|[^\r\n",
    r"\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[",
    "\r\n",
    r"]*|\s*[",
    "\r\n",
    r"]+|\s+(?!\S)|\s+"
);
pub(super) const NEWLINE_REGEX: &str = "[\r\n]";
pub(super) const LETTERS_REGEX: &str = r"\s?\p{L}+";
pub(super) const PUNCTUATION_REGEX: &str = r"\s?\p{P}+";
pub(super) const LAST_SPACES_REGEX: &str = r"\s+$";
pub(super) const CJK_REGEX: &str = "[一-龥ࠀ-一가-퟿]+";
pub(super) const CASED_REGEX: &str = concat!(
    r"\s?[",
    "A-Za-z\u{b5}\u{c0}-\u{d6}\u{d8}-\u{f6}\u{f8}-\u{1ba}\u{1bc}-\u{1bf}\u{1c4}-\u{293}\u{295}-\u{2af}",
    "\u{370}-\u{373}\u{376}\u{377}\u{37b}-\u{37d}\u{37f}\u{386}\u{388}-\u{38a}\u{38c}\u{38e}-\u{3a1}",
    "\u{3a3}-\u{3f5}\u{3f7}-\u{481}\u{48a}-\u{52f}\u{531}-\u{556}\u{10a0}-\u{10c5}\u{13a0}-\u{13f5}",
    "\u{13f8}-\u{13fd}\u{1c90}-\u{1cba}\u{1cbd}-\u{1cbf}\u{1d00}-\u{1d2b}\u{1d6b}-\u{1d77}\u{1d79}-\u{1d9a}",
    "\u{1e00}-\u{1f15}\u{1f18}-\u{1f1d}\u{1f20}-\u{1f45}\u{1f48}-\u{1f4d}\u{1f50}-\u{1f57}\u{1f59}\u{1f5b}",
    "\u{1f5d}\u{1f5f}-\u{1f7d}\u{1f80}-\u{1fb4}\u{1fb6}-\u{1fbc}\u{1fbe}\u{1fc2}-\u{1fc4}\u{1fc6}-\u{1fcc}",
    "\u{1fd0}-\u{1fd3}\u{1fd6}-\u{1fdb}\u{1fe0}-\u{1fec}\u{1ff2}-\u{1ff4}\u{1ff6}-\u{1ffc}\u{2102}\u{2107}",
    "\u{210a}-\u{2113}\u{2115}\u{2119}-\u{211d}\u{2124}\u{2126}\u{2128}\u{212a}-\u{212d}\u{212f}-\u{2134}",
    "\u{2139}\u{213c}-\u{213f}\u{2145}-\u{2149}\u{214e}\u{2183}\u{2184}\u{2c00}-\u{2c7b}\u{2c7e}-\u{2ce4}",
    "\u{2ceb}-\u{2cee}\u{2cf2}\u{2cf3}\u{a640}-\u{a66d}\u{a680}-\u{a69b}\u{a722}-\u{a76f}\u{a771}-\u{a787}",
    "\u{a78b}-\u{a78e}\u{ab70}-\u{abbf}\u{fb00}-\u{fb06}\u{fb13}-\u{fb17}\u{ff21}-\u{ff3a}\u{ff41}-\u{ff5a}",
    "\u{10400}-\u{1044f}\u{104b0}-\u{104d3}\u{104d8}-\u{104fb}\u{10c80}-\u{10cb2}\u{10cc0}-\u{10cf2}",
    "\u{118a0}-\u{118df}\u{1e900}-\u{1e943}",
    "]+"
);
pub(super) const SIGNS_REGEX: &str =
    concat!(r"\s?", "[!-/:-~\u{ff01}-\u{ff0f}\u{ff1a}-\u{ff5e}\u{2018}-\u{201f}\u{3000}-\u{3002}]+");

/// The characters of [`CASED_REGEX`].
#[rustfmt::skip]
#[allow(clippy::unreadable_literal, reason = "a table")]
const CASED: [(u32, u32); 87] = [
    (0x41, 0x5a), (0x61, 0x7a), (0xb5, 0xb5), (0xc0, 0xd6), (0xd8, 0xf6), (0xf8, 0x1ba), (0x1bc, 0x1bf),
    (0x1c4, 0x293), (0x295, 0x2af), (0x370, 0x373), (0x376, 0x376), (0x377, 0x377), (0x37b, 0x37d), (0x37f, 0x37f),
    (0x386, 0x386), (0x388, 0x38a), (0x38c, 0x38c), (0x38e, 0x3a1), (0x3a3, 0x3f5), (0x3f7, 0x481), (0x48a, 0x52f),
    (0x531, 0x556), (0x10a0, 0x10c5), (0x13a0, 0x13f5), (0x13f8, 0x13fd), (0x1c90, 0x1cba), (0x1cbd, 0x1cbf), (0x1d00, 0x1d2b),
    (0x1d6b, 0x1d77), (0x1d79, 0x1d9a), (0x1e00, 0x1f15), (0x1f18, 0x1f1d), (0x1f20, 0x1f45), (0x1f48, 0x1f4d), (0x1f50, 0x1f57),
    (0x1f59, 0x1f59), (0x1f5b, 0x1f5b), (0x1f5d, 0x1f5d), (0x1f5f, 0x1f7d), (0x1f80, 0x1fb4), (0x1fb6, 0x1fbc), (0x1fbe, 0x1fbe),
    (0x1fc2, 0x1fc4), (0x1fc6, 0x1fcc), (0x1fd0, 0x1fd3), (0x1fd6, 0x1fdb), (0x1fe0, 0x1fec), (0x1ff2, 0x1ff4), (0x1ff6, 0x1ffc),
    (0x2102, 0x2102), (0x2107, 0x2107), (0x210a, 0x2113), (0x2115, 0x2115), (0x2119, 0x211d), (0x2124, 0x2124), (0x2126, 0x2126),
    (0x2128, 0x2128), (0x212a, 0x212d), (0x212f, 0x2134), (0x2139, 0x2139), (0x213c, 0x213f), (0x2145, 0x2149), (0x214e, 0x214e),
    (0x2183, 0x2183), (0x2184, 0x2184), (0x2c00, 0x2c7b), (0x2c7e, 0x2ce4), (0x2ceb, 0x2cee), (0x2cf2, 0x2cf2), (0x2cf3, 0x2cf3),
    (0xa640, 0xa66d), (0xa680, 0xa69b), (0xa722, 0xa76f), (0xa771, 0xa787), (0xa78b, 0xa78e), (0xab70, 0xabbf), (0xfb00, 0xfb06),
    (0xfb13, 0xfb17), (0xff21, 0xff3a), (0xff41, 0xff5a), (0x10400, 0x1044f), (0x104b0, 0x104d3), (0x104d8, 0x104fb), (0x10c80, 0x10cb2),
    (0x10cc0, 0x10cf2), (0x118a0, 0x118df), (0x1e900, 0x1e943),
];

/// Up to three numbers.
pub(super) fn numbers(text: Text<'_>, at: usize) -> Found {
    match text.numbers(at, 3) {
        end if end > at => Found::Match(end),
        _ => next(text, at),
    }
}

/// One digit.
pub(super) fn digit(text: Text<'_>, at: usize) -> Found {
    let (code, width) = text.code(at);
    if is_digit(code) { Found::Match(at + width) } else { Found::NotBefore(at + width) }
}

/// Chinese characters, Hiragana and Katakana.
pub(super) fn kana(text: Text<'_>, at: usize) -> Found {
    run(text, at, |code| matches!(code, 0x4E00..=0x9FA5 | 0x3040..=0x30FF))
}

/// What V3 has for most of text.
pub(super) fn words(text: Text<'_>, at: usize) -> Found {
    let (category, width) = text.at(at);
    let behind = at + width;
    if category & (LETTER | MARK) != 0 {
        return Found::Match(text.skip(behind, LETTER | MARK));
    }
    if text.byte(at).is_ascii_punctuation() && text.byte(behind).is_ascii_alphabetic() {
        let letters = text.rest(behind).iter().take_while(|byte| byte.is_ascii_alphabetic());
        return Found::Match(behind + letters.count());
    }
    let is_newline = matches!(text.byte(at), b'\r' | b'\n');
    if category & SIGN == 0 && !is_newline && text.is(behind, LETTER | MARK) {
        return Found::Match(text.skip(behind, LETTER | MARK));
    }
    let first = at + usize::from(text.byte(at) == b' ');
    match text.skip(first, SIGN) {
        end if end > first => Found::Match(text.skip_bytes(end, b"\r\n")),
        _ if category == SPACE => Found::Match(white_space(text, at)),
        _ => Found::NotBefore(behind),
    }
}

/// `\p{P}` and `\p{S}`.
const SIGN: u8 = PUNCTUATION_MARK | SYMBOL;

/// One line ending.
pub(super) fn newline(text: Text<'_>, at: usize) -> Found {
    if matches!(text.byte(at), b'\r' | b'\n') { Found::Match(at + 1) } else { Found::NotBefore(at + 1) }
}

/// Letters with a space before them.
pub(super) fn letters(text: Text<'_>, at: usize) -> Found {
    after_space(text, at, |at| text.skip(at, LETTER))
}

/// Punctuation with a space before it.
pub(super) fn punctuation(text: Text<'_>, at: usize) -> Found {
    after_space(text, at, |at| text.skip(at, PUNCTUATION_MARK))
}

/// Cased letters with a space before them.
pub(super) fn cased(text: Text<'_>, at: usize) -> Found {
    after_space(text, at, |at| run_end(text, at, |code| is_in(&CASED, code)))
}

/// Some signs, and of ASCII letters too, with a space before them.
pub(super) fn signs(text: Text<'_>, at: usize) -> Found {
    let is_sign = |code| {
        matches!(
            code,
            0x21..=0x2F | 0x3A..=0x7E | 0xFF01..=0xFF0F | 0xFF1A..=0xFF5E | 0x2018..=0x201F | 0x3000..=0x3002
        )
    };
    after_space(text, at, |at| run_end(text, at, is_sign))
}

/// White space at the end.
pub(super) fn last_spaces(text: Text<'_>, at: usize) -> Found {
    match text.skip(at, SPACE) {
        end if end == at => next(text, at),
        end if end == text.len() => Found::Match(end),
        end => Found::NotBefore(end),
    }
}

/// The characters of many scripts.
pub(super) fn cjk(text: Text<'_>, at: usize) -> Found {
    run(text, at, |code| matches!(code, 0x0800..=0x9FA5 | 0xAC00..=0xD7FF))
}

fn next(text: Text<'_>, at: usize) -> Found {
    Found::NotBefore(at + text.at(at).1)
}

/// The end of the run of characters with these scalar values.
fn run_end(text: Text<'_>, mut at: usize, of: impl Fn(u32) -> bool) -> usize {
    while at < text.len() {
        let (code, width) = text.code(at);
        if !of(code) {
            break;
        }
        at += width;
    }
    at
}

fn run(text: Text<'_>, at: usize, of: impl Fn(u32) -> bool) -> Found {
    match run_end(text, at, of) {
        end if end > at => Found::Match(end),
        _ => next(text, at),
    }
}

/// What `end_of` finds at `at`, or behind one white space there.
fn after_space(text: Text<'_>, at: usize, end_of: impl Fn(usize) -> usize) -> Found {
    let (category, width) = text.at(at);
    let first = if category == SPACE { at + width } else { at };
    match end_of(first) {
        end if end > first => Found::Match(end),
        // White space may be among what is looked for.
        _ if first > at && end_of(at) > at => Found::Match(end_of(at)),
        _ => Found::NotBefore(at + width),
    }
}
