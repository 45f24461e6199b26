//! The pre-tokenizers of other programs' byte-level BPE.
//!
//! Each is a list of [`Step`]s, as `tokenizer.json` has them in front of its `ByteLevel`, and a splitter that cuts
//! valid UTF-8 where `tokenizers` cuts it with those steps. They are recognised by their steps, character for
//! character.

mod category;
mod cl100k;
mod deepseek;
mod gpt2;
mod o200k;
mod sequence;

use category::Text;
use sequence::{Found, Split};

/// A step of a pre-tokenizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// `Split` at what a regular expression matches; a match is a piece, as is what is between two.
    Regex(&'a str),
    /// `Digits`, each by itself.
    Digits,
}

/// A known pre-tokenizer of other programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Foreign {
    Gpt2,
    Cl100k,
    Qwen2,
    O200k,
    Tekken,
    StarCoder2,
    DeepSeekV3,
    DeepSeekCoder,
    DeepSeekV2,
}

impl Foreign {
    pub(super) const ALL: [Self; 9] = [
        Self::Gpt2,
        Self::Cl100k,
        Self::Qwen2,
        Self::O200k,
        Self::Tekken,
        Self::StarCoder2,
        Self::DeepSeekV3,
        Self::DeepSeekCoder,
        Self::DeepSeekV2,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Gpt2 => "gpt2",
            Self::Cl100k => "cl100k",
            Self::Qwen2 => "qwen2",
            Self::O200k => "o200k",
            Self::Tekken => "tekken",
            Self::StarCoder2 => "starcoder2",
            Self::DeepSeekV3 => "deepseek-v3",
            Self::DeepSeekCoder => "deepseek-coder",
            Self::DeepSeekV2 => "deepseek-v2",
        }
    }

    /// The steps by which it is recognised.
    pub(super) fn steps(self) -> &'static [Step<'static>] {
        use Step::{Digits, Regex};
        match self {
            Self::Gpt2 => &[Regex(gpt2::REGEX)],
            Self::Cl100k => &[Regex(cl100k::REGEX)],
            Self::Qwen2 => &[Regex(cl100k::QWEN_REGEX)],
            Self::O200k => &[Regex(o200k::REGEX)],
            Self::Tekken => &[Regex(o200k::TEKKEN_REGEX)],
            Self::StarCoder2 => &[Digits, Regex(gpt2::REGEX)],
            Self::DeepSeekV3 => {
                &[Regex(deepseek::NUMBERS_REGEX), Regex(deepseek::KANA_REGEX), Regex(deepseek::WORDS_REGEX)]
            }
            Self::DeepSeekCoder => &[
                Regex(deepseek::NEWLINE_REGEX),
                Regex(deepseek::LETTERS_REGEX),
                Regex(deepseek::PUNCTUATION_REGEX),
                Regex(deepseek::CJK_REGEX),
                Digits,
            ],
            Self::DeepSeekV2 => &[
                Regex(deepseek::NEWLINE_REGEX),
                Regex(deepseek::CASED_REGEX),
                Regex(deepseek::SIGNS_REGEX),
                Regex(deepseek::LAST_SPACES_REGEX),
                Regex(deepseek::CJK_REGEX),
                Digits,
            ],
        }
    }

    /// Whether one regular expression matches all text, so that nothing is ever between two matches.
    pub(super) fn matches_all(self) -> bool {
        matches!(self, Self::Gpt2 | Self::Cl100k | Self::Qwen2 | Self::O200k | Self::Tekken)
    }

    /// Calls `each` with the end of every word in `run[start..]`; the run is UTF-8.
    pub(super) fn ends(self, run: &[u8], start: usize, mut each: impl FnMut(usize)) {
        match self.cutter() {
            Cutter::Words(end) => {
                let mut at = start;
                while at < run.len() {
                    at = end(Text::new(run), at);
                    each(at);
                }
            }
            Cutter::Splits(splits) => sequence::ends(splits, run, start, &mut each),
        }
    }

    /// Calls `each` with the end of the word that starts at `start`, before the end of the run; or, where splits come
    /// one after another, with those of all words up to where whatever follows changes nothing. Returns the last one.
    pub(super) fn cut(self, run: &[u8], start: usize, each: &mut impl FnMut(usize)) -> usize {
        match self.cutter() {
            Cutter::Words(end) => {
                let end = end(Text::new(run), start);
                each(end);
                end
            }
            Cutter::Splits(splits) => {
                let end = sequence::border(run, start);
                sequence::ends(splits, &run[..end], start, each);
                end
            }
        }
    }

    #[inline]
    fn cutter(self) -> Cutter {
        use deepseek::{cased, cjk, digit, kana, last_spaces, letters, newline, numbers, punctuation, signs};
        match self {
            Self::Gpt2 => Cutter::Words(gpt2::word_end),
            Self::Cl100k => Cutter::Words(|text, at| cl100k::word_end(text, at, 3)),
            Self::Qwen2 => Cutter::Words(|text, at| cl100k::word_end(text, at, 1)),
            Self::O200k => Cutter::Words(o200k::word_end),
            Self::Tekken => Cutter::Words(o200k::tekken_end),
            Self::StarCoder2 => Cutter::Splits(&[digit, |text, at| Found::Match(gpt2::word_end(text, at))]),
            Self::DeepSeekV3 => Cutter::Splits(&[numbers, kana, deepseek::words]),
            Self::DeepSeekCoder => Cutter::Splits(&[newline, letters, punctuation, cjk, digit]),
            Self::DeepSeekV2 => Cutter::Splits(&[newline, cased, signs, last_spaces, cjk, digit]),
        }
    }
}

/// How a run is cut.
enum Cutter {
    /// By the end of the word at a place.
    Words(fn(Text<'_>, usize) -> usize),
    /// By splits, one after another.
    Splits(&'static [Split]),
}
