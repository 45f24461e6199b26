//! What a scan looks for, as its caller writes it.

use serde::Deserialize;

use super::keywords::is_keyword;
use crate::{Error, Result};

/// The most partitions: their numbers have 16 bits.
const MAX_WORD_PARTITIONS: u32 = 1 << 16;

/// The configuration of a scan.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {
    /// The name of the pattern that cuts documents into words.
    pub(super) pattern: String,
    /// The name of the pattern that cuts documents into the lines of superwords, which are counted too.
    #[serde(default, rename = "unit_pattern")]
    pub(super) line_pattern: Option<String>,
    /// How many partitions words are given in.
    #[serde(default = "one")]
    pub(super) word_partitions: u32,
    /// Whether the partition of a word is that of its document's project, not its own.
    #[serde(default)]
    pub(super) partition_by_project: bool,
    /// The terms to count.
    #[serde(default)]
    pub(super) candidates: Vec<Candidate>,
    /// The morphemes to count.
    #[serde(default)]
    pub(super) morphemes: Vec<Morpheme>,
    /// Whether families of names are counted.
    #[serde(default)]
    pub(super) families: bool,
}

fn one() -> u32 {
    1
}

/// A term to count.
#[derive(Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(deny_unknown_fields)]
pub(super) struct Candidate {
    pub(super) term: String,
    pub(super) category: String,
    #[serde(rename = "match")]
    pub(super) mode: Match,
}

/// Where a term counts.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "snake_case")]
pub(super) enum Match {
    /// A whole identifier or keyword outside comments and literals, directive names excluded.
    Ident,
    /// An identifier that is the term, or begins with it; what follows a term without `_` at its end is no small
    /// letter.
    Prefix,
    /// The same as `ident`, and whole words of string literals; the term begins with `$`.
    Dollar,
    /// Whole words of string literals only.
    SqlString,
    /// Whole words of string literals, and words with dots between them from the first to the last.
    String,
    /// A whole chain of names `a::b`, from its first name to its last, with nothing but `::` counting between them.
    Qualified,
}

/// A morpheme to count in one position of the components of identifiers.
#[derive(Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(deny_unknown_fields)]
pub(super) struct Morpheme {
    pub(super) morpheme: String,
    pub(super) position: Position,
}

/// Where in a component a morpheme counts.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "snake_case")]
pub(super) enum Position {
    /// The component begins with it and is longer.
    Prefix,
    /// The component ends with it and is longer.
    Suffix,
    /// The component is it or begins with it.
    CppStem,
    /// The component is it.
    Component,
}

impl Position {
    /// The name in configurations and results.
    pub(super) fn name(self) -> &'static str {
        match self {
            Position::Prefix => "prefix",
            Position::Suffix => "suffix",
            Position::CppStem => "cpp_stem",
            Position::Component => "component",
        }
    }
}

impl Config {
    /// Reads and checks a configuration.
    ///
    /// # Errors
    ///
    /// If it is not JSON of this form, or asks for what can never be found or twice for the same.
    pub(super) fn from_json(json: &str) -> Result<Self> {
        let config: Self =
            serde_json::from_str(json).map_err(|error| Error::invalid(format!("scan configuration: {error}")))?;
        if !(1..=MAX_WORD_PARTITIONS).contains(&config.word_partitions) {
            let partitions = config.word_partitions;
            return Err(Error::invalid(format!("word_partitions is {partitions}; give 1 to {MAX_WORD_PARTITIONS}")));
        }
        config.candidates.iter().try_for_each(Candidate::check)?;
        config.morphemes.iter().try_for_each(Morpheme::check)?;
        let mut terms: Vec<_> = config.candidates.iter().map(|it| (&it.term, &it.category)).collect();
        terms.sort_unstable();
        if let Some([(term, category), _]) = terms.array_windows().find(|[left, right]| left == right) {
            return Err(Error::invalid(format!(
                "candidate {term:?} is there twice in category {category:?}: remove one"
            )));
        }
        let mut morphemes: Vec<_> = config.morphemes.iter().collect();
        morphemes.sort_unstable();
        if let Some([twice, _]) = morphemes.array_windows().find(|[left, right]| left == right) {
            let (morpheme, position) = (&twice.morpheme, twice.position.name());
            return Err(Error::invalid(format!("morpheme {morpheme:?} is there twice as {position}: remove one")));
        }
        Ok(config)
    }
}

impl Candidate {
    fn check(&self) -> Result<()> {
        let Self { term, category, .. } = self;
        let word = term.bytes().all(is_word_byte);
        let identifier = word && term.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
        let (fits, rule) = match self.mode {
            Match::Ident => (identifier, "ident needs an identifier"),
            Match::Prefix => (identifier, "prefix needs an identifier"),
            Match::Dollar => (identifier && term.starts_with('$') && term.len() > 1, "dollar needs $ and a name"),
            Match::Qualified => (
                term.split("::").count() > 1 && term.split("::").all(is_name),
                "qualified needs two names or more, no keywords, with :: between them",
            ),
            Match::String => (
                term.split('.').all(|word| !word.is_empty() && word.bytes().all(is_word_byte)),
                "string needs a word, or words with dots between them",
            ),
            Match::SqlString => (
                word && !term.is_empty() && !term.bytes().any(|byte| byte.is_ascii_lowercase()),
                "sql_string needs one word without small letters",
            ),
        };
        if fits {
            return Ok(());
        }
        Err(Error::invalid(format!("candidate {term:?} of category {category:?} can never be found: match {rule}")))
    }
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..)
}

/// Whether `name` can be a name in a chain.
fn is_name(name: &str) -> bool {
    let word = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | 0x80..));
    word && !name.is_empty() && !name.as_bytes()[0].is_ascii_digit() && !is_keyword(name.as_bytes())
}

impl Morpheme {
    fn check(&self) -> Result<()> {
        let Self { morpheme, .. } = self;
        if !morpheme.is_empty() && morpheme.bytes().all(|byte| byte.is_ascii_lowercase()) {
            return Ok(());
        }
        Err(Error::invalid(format!("morpheme {morpheme:?} can never be found: write it in small letters a to z")))
    }
}
