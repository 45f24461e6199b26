//! The form of `tokenizer.json`, as far as it is read.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;

/// The parts of `tokenizer.json` that decide the tokens; `tokenizers` reads no file with others.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TokenizerFile {
    #[serde(default)]
    pub(super) version: Option<String>,
    #[serde(default)]
    pub(super) truncation: Value,
    #[serde(default)]
    pub(super) padding: Value,
    pub(super) added_tokens: Vec<AddedToken>,
    #[serde(default)]
    pub(super) normalizer: Value,
    #[serde(default)]
    pub(super) pre_tokenizer: Value,
    #[serde(default)]
    pub(super) post_processor: Value,
    #[serde(default)]
    pub(super) decoder: Value,
    pub(super) model: Model,
}

/// An added token of `tokenizer.json`.
#[allow(clippy::struct_excessive_bools, reason = "the file has these flags")]
#[derive(Deserialize)]
pub(crate) struct AddedToken {
    pub(crate) id: u32,
    pub(crate) content: String,
    pub(crate) special: bool,
    #[serde(default)]
    pub(crate) normalized: bool,
    #[serde(default)]
    pub(super) single_word: bool,
    #[serde(default)]
    pub(super) lstrip: bool,
    #[serde(default)]
    pub(super) rstrip: bool,
}

#[derive(Deserialize)]
pub(super) struct Model {
    pub(super) vocab: HashMap<String, u32>,
    pub(super) merges: Vec<Merge>,
    #[serde(flatten)]
    pub(super) settings: HashMap<String, Value>,
}

impl Model {
    /// A setting, if it is there and not null.
    pub(super) fn setting(&self, name: &str) -> Option<&Value> {
        self.settings.get(name).filter(|value| !value.is_null())
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Merge {
    Pair(String, String),
    Line(String),
}

/// How a merge that is one string begins if `tokenizers` leaves it out: as the first line of a `merges.txt`.
pub(super) const COMMENT: &str = "#version";

impl Merge {
    /// Whether `tokenizers` leaves it out.
    pub(super) fn is_comment(&self) -> bool {
        matches!(self, Self::Line(line) if line.starts_with(COMMENT))
    }

    pub(super) fn parts(&self) -> Option<(&str, &str)> {
        match self {
            Self::Pair(left, right) => Some((left, right)),
            Self::Line(line) => line.split_once(' '),
        }
    }
}
