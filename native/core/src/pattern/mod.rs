//! Pre-token patterns and their hand-written splitters.
//!
//! A pattern is a regular expression as `tokenizer.json` holds it (`Split(Regex, isolated)`) together with a splitter
//! over bytes that cuts valid UTF-8 exactly where `tokenizers` cuts it with that expression. Only the patterns named
//! here are known: there is no general regular expression engine.
//!
//! Text that is not UTF-8 is cut into its maximal valid runs, as [`slice::utf8_chunks`] cuts it. Each run is split by
//! itself, as if it were the whole text, and each invalid byte is a word of one byte.

mod class;
mod classes;
mod cpp_lines;
mod cpp_lines_2;
mod cpp_words;
mod cpp_words_2;
mod foreign;
mod split;
mod starts;
mod tail;
#[cfg(test)]
mod tests;
mod text_sentences;
mod text_words;

use crate::{Error, Result};
use foreign::Foreign;
pub use foreign::Step;
pub(crate) use starts::{Ends, Starts};

/// A pre-token pattern that has a native splitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pattern(Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    CppWords1,
    CppLines1,
    CppWords2,
    CppLines2,
    TextWords1,
    TextSentences1,
    /// Of another program.
    Foreign(Foreign),
}

impl Pattern {
    /// Every pattern of ours, with which text can be scanned and a tokenizer be trained.
    pub const ALL: [Self; 6] = [
        Self(Kind::CppWords1),
        Self(Kind::CppLines1),
        Self(Kind::CppWords2),
        Self(Kind::CppLines2),
        Self(Kind::TextWords1),
        Self(Kind::TextSentences1),
    ];

    /// Finds the pattern called `name`.
    ///
    /// # Errors
    /// `Invalid`, naming the known patterns, if there is none of that name.
    pub fn by_name(name: &str) -> Result<Self> {
        Self::find("name", name, |pattern| pattern.name() == name)
    }

    /// Finds the pattern whose regular expression is `regex`, character for character.
    ///
    /// # Errors
    /// `Invalid`, naming the known patterns, if there is none.
    pub fn by_regex(regex: &str) -> Result<Self> {
        Self::find("regular expression", regex, |pattern| pattern.regex() == regex)
    }

    /// Every pre-tokenizer of other programs that has a native splitter.
    pub fn foreign() -> impl Iterator<Item = Self> {
        Foreign::ALL.into_iter().map(|foreign| Self(Kind::Foreign(foreign)))
    }

    /// Finds the pattern called `name`, of ours or of another program.
    ///
    /// # Errors
    /// As [`Self::by_name`].
    pub fn by_any_name(name: &str) -> Result<Self> {
        Self::foreign().find(|pattern| pattern.name() == name).map_or_else(|| Self::by_name(name), Ok)
    }

    /// Finds the pre-tokenizer of another program with these steps; `keeps_all` if what is between two matches is kept.
    pub fn by_steps(steps: &[Step<'_>], keeps_all: bool) -> Option<Self> {
        let known = |foreign: &Foreign| foreign.steps() == steps && (keeps_all || foreign.matches_all());
        Foreign::ALL.into_iter().find(known).map(|foreign| Self(Kind::Foreign(foreign)))
    }

    fn find(what: &str, value: &str, matches: impl Fn(&Self) -> bool) -> Result<Self> {
        let known = || Self::ALL.map(|pattern| pattern.name()).join(", ");
        Self::ALL.into_iter().find(matches).ok_or_else(|| {
            Error::invalid(format!("no pre-token pattern with the {what} {value:?}; this version knows {}", known()))
        })
    }

    /// The name, for configurations and manifests.
    pub fn name(&self) -> &'static str {
        match self.0 {
            Kind::CppWords1 => "cpp-words-1",
            Kind::CppLines1 => "cpp-lines-1",
            Kind::CppWords2 => "cpp-words-2",
            Kind::CppLines2 => "cpp-lines-2",
            Kind::TextWords1 => "text-words-1",
            Kind::TextSentences1 => "text-sentences-1",
            Kind::Foreign(foreign) => foreign.name(),
        }
    }

    /// The regular expression, for `tokenizer.json`; the first one of another program's.
    pub fn regex(&self) -> &'static str {
        match self.steps()[..] {
            [Step::Regex(regex), ..] => regex,
            _ => "",
        }
    }

    /// The steps of the pre-tokenizer, for `tokenizer.json`.
    pub fn steps(&self) -> &'static [Step<'static>] {
        match self.0 {
            Kind::CppWords1 => &[Step::Regex(cpp_words::REGEX)],
            Kind::CppLines1 => &[Step::Regex(cpp_lines::REGEX)],
            Kind::CppWords2 => &[Step::Regex(cpp_words_2::REGEX)],
            Kind::CppLines2 => &[Step::Regex(cpp_lines_2::REGEX)],
            Kind::TextWords1 => &[Step::Regex(text_words::REGEX)],
            Kind::TextSentences1 => &[Step::Regex(text_sentences::REGEX)],
            Kind::Foreign(foreign) => foreign.steps(),
        }
    }

    /// The version of the splitter and its character tables; part of the keys of what is made with it.
    pub fn version(&self) -> u32 {
        match self.0 {
            Kind::CppWords1
            | Kind::CppLines1
            | Kind::CppWords2
            | Kind::CppLines2
            | Kind::TextWords1
            | Kind::TextSentences1
            | Kind::Foreign(_) => 1,
        }
    }

    /// The pattern of the words that this pattern's pieces are made of: itself, if it cuts words.
    #[must_use]
    pub fn words(&self) -> Self {
        match self.0 {
            Kind::CppWords1 | Kind::CppLines1 => Self(Kind::CppWords1),
            Kind::CppWords2 | Kind::CppLines2 => Self(Kind::CppWords2),
            Kind::TextWords1 | Kind::TextSentences1 => Self(Kind::TextWords1),
            Kind::Foreign(_) => *self,
        }
    }

    /// The pattern whose words are names with at most one byte in front of them, and everything else.
    pub(crate) const NAMES: Self = Self(Kind::CppWords1);

    /// Calls `each` with every word of `text`, in order; together they are `text`.
    ///
    /// Takes time linear in the length of `text`, whatever it holds. A word can be as long as `text`.
    #[inline]
    pub fn split<'a>(&self, text: &'a [u8], mut each: impl FnMut(&'a [u8])) {
        if let Kind::Foreign(_) = self.0 {
            return self.split_by_starts(text, each);
        }
        let mut at = 0;
        let mut word = |end: usize| each(&text[std::mem::replace(&mut at, end)..end]);
        for_runs(text, |run| match run {
            Run::Valid(start, end) => self.ends(&text[..end], start, &mut word),
            Run::Invalid(byte) => word(byte + 1),
        });
    }

    /// Whether it is for text that is no code.
    pub(crate) fn is_text(self) -> bool {
        self.words().0 == Kind::TextWords1
    }

    /// Whether it cuts lines, of which [`Self::words`] cuts words.
    pub(crate) fn is_lines(self) -> bool {
        self != self.words()
    }

    /// Calls `each` with the end of every word in `run[start..]`; the run is UTF-8.
    pub(crate) fn ends(self, run: &[u8], start: usize, mut each: impl FnMut(usize)) {
        if let Kind::Foreign(foreign) = self.0 {
            return foreign.ends(run, start, each);
        }
        let mut at = start;
        while at < run.len() {
            at = self.end(run, at);
            each(at);
        }
    }

    /// Calls `each` with the end of the word that starts at `start`, or of several if only these can be cut alone, and
    /// returns the last one.
    #[inline]
    fn cut(self, run: &[u8], start: usize, each: &mut impl FnMut(usize)) -> usize {
        if let Kind::Foreign(foreign) = self.0 {
            return foreign.cut(run, start, each);
        }
        let end = self.end(run, start);
        each(end);
        end
    }

    /// The end of the word that starts at `start`; of another program's, of all words.
    #[inline]
    fn end(self, run: &[u8], start: usize) -> usize {
        match self.0 {
            Kind::CppWords1 => cpp_words::word_end(run, start),
            Kind::CppLines1 => cpp_lines::line_end(run, start),
            Kind::CppWords2 => cpp_words_2::word_end(run, start),
            Kind::CppLines2 => cpp_lines_2::line_end(run, start),
            Kind::TextWords1 => text_words::word_end(run, start),
            Kind::TextSentences1 => text_sentences::sentence_end(run, start),
            Kind::Foreign(_) => run.len(),
        }
    }
}

/// A part of a text.
enum Run {
    /// From where to where it is UTF-8.
    Valid(usize, usize),
    /// A byte that belongs to no character.
    Invalid(usize),
}

/// Calls `each` with the parts of `text`, in order.
#[inline]
fn for_runs(text: &[u8], mut each: impl FnMut(Run)) {
    if std::str::from_utf8(text).is_ok() {
        return each(Run::Valid(0, text.len()));
    }
    let mut at = 0;
    for chunk in text.utf8_chunks() {
        let end = at + chunk.valid().len();
        each(Run::Valid(at, end));
        at = end + chunk.invalid().len();
        (end..at).for_each(|byte| each(Run::Invalid(byte)));
    }
}
