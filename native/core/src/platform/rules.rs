//! The rules: their JSON form, the checks, and what they are compiled to.

use hashbrown::HashSet;
use serde::Deserialize;

use super::beginnings::Beginnings;
use super::names::{Builder, Names};
use super::sequences::Sequences;
use crate::{Error, ErrorKind, Result};

/// The longest that one piece of evidence may be, so that what a document keeps of them is bounded.
const MAX_EVIDENCE_BYTES: usize = 64;

/// The JSON form.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    max_ids: usize,
    labels: Vec<LabelConfig>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LabelConfig {
    id: u16,
    category: String,
    label: String,
    #[serde(default)]
    identifiers: Vec<String>,
    #[serde(default)]
    includes: Vec<String>,
    #[serde(default)]
    paths: Vec<String>,
    #[serde(default)]
    sequences: Vec<String>,
}

/// A platform that documents can have.
pub(super) struct Label {
    pub(super) id: u16,
    pub(super) category: String,
    pub(super) name: String,
}

/// One piece of evidence: its label, by its place in [`Rules::labels`], and how the rules write it.
pub(super) struct Evidence {
    pub(super) label: usize,
    pub(super) text: String,
}

/// Compiled rules. Evidence is numbered by its place in `evidence`, where labels ascend by id.
pub(super) struct Rules {
    pub(super) max_ids: usize,
    pub(super) labels: Vec<Label>,
    pub(super) evidence: Vec<Evidence>,
    pub(super) identifiers: Names,
    /// Lower case; those for `<...>` alone begin with `<`, and none ends with `>`.
    pub(super) includes: Names,
    /// Lower case; extensions begin with a dot, the others are folders.
    pub(super) paths: Names,
    pub(super) sequences: Sequences,
    pub(super) beginnings: Beginnings,
}

impl Rules {
    /// Compiles the JSON form of the rules.
    ///
    /// # Errors
    ///
    /// If it is not JSON of that form, an id or a label occurs twice, or a piece of evidence cannot be used.
    pub(super) fn new(json: &str) -> Result<Self> {
        let mut config: Config = serde_json::from_str(json)
            .map_err(|error| Error::new(ErrorKind::Invalid, format!("platform rules: {error}")))?;
        config.labels.sort_by_key(|label| label.id);
        check_labels(&config.labels)?;
        let mut evidence = Vec::new();
        let identifiers = names(&config, &mut evidence, |label| &label.identifiers, str::to_owned)?;
        let identifier_count = evidence.len();
        let includes = names(&config, &mut evidence, |label| &label.includes, header)?;
        let paths = names(&config, &mut evidence, |label| &label.paths, str::to_ascii_lowercase)?;
        let first = evidence.len();
        collect(&config, &mut evidence, |label| &label.sequences)?;
        let sequences = Sequences::new((first..).zip(&evidence[first..]).map(|(at, one)| (&*one.text, at as u32)))?;
        let spelled = evidence[..identifier_count].iter().map(|one| &*one.text);
        let beginnings = Beginnings::new(spelled, sequences.openings());
        let labels = config.labels.into_iter().map(Label::from).collect();
        Ok(Self { max_ids: config.max_ids, labels, evidence, identifiers, includes, paths, sequences, beginnings })
    }
}

impl From<LabelConfig> for Label {
    fn from(config: LabelConfig) -> Self {
        Self { id: config.id, category: config.category, name: config.label }
    }
}

fn check_labels(labels: &[LabelConfig]) -> Result<()> {
    let mut names = HashSet::new();
    let mut ids = HashSet::new();
    for label in labels {
        let (category, name, id) = (&*label.category, &*label.label, label.id);
        if !names.insert((category, name)) {
            return Err(Error::invalid(format!("platform rules: {category}.{name} is there twice")));
        }
        if id == 0 || !ids.insert(id) {
            return Err(Error::invalid(format!(
                "platform rules: {category}.{name} has the id {id}, which is padding or another label's"
            )));
        }
    }
    Ok(())
}

/// Appends one kind of evidence of every label.
fn collect<'a>(
    config: &'a Config,
    evidence: &mut Vec<Evidence>,
    kind: impl Fn(&'a LabelConfig) -> &'a [String],
) -> Result<()> {
    for (at, label) in config.labels.iter().enumerate() {
        for text in kind(label) {
            check_text(label, text)?;
            evidence.push(Evidence { label: at, text: text.clone() });
        }
    }
    Ok(())
}

fn check_text(label: &LabelConfig, text: &str) -> Result<()> {
    let printable = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    if printable && !matches!(text, "" | "*" | "<*") && text.len() <= MAX_EVIDENCE_BYTES {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "platform rules: {}.{}: {text:?} is no evidence; give 1 to {MAX_EVIDENCE_BYTES} printable ASCII characters, \
         not a star alone",
        label.category, label.label
    )))
}

fn names<'a>(
    config: &'a Config,
    evidence: &mut Vec<Evidence>,
    kind: impl Fn(&'a LabelConfig) -> &'a [String],
    spell: impl Fn(&str) -> String,
) -> Result<Names> {
    let first = evidence.len();
    collect(config, evidence, kind)?;
    let mut builder = Builder::default();
    for (at, one) in (first..).zip(&evidence[first..]) {
        builder.add(&spell(&one.text), at as u32);
    }
    Ok(builder.build())
}

/// A header rule as it is looked up: `<print>` is `<print`, which no name in quotes is.
fn header(text: &str) -> String {
    text.strip_suffix('>').unwrap_or(text).to_ascii_lowercase()
}
