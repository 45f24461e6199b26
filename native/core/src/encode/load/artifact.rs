//! Reads a tokenizer directory: `manifest.json`, the files that it names, and `tokenizer.json`.
//!
//! Only what the encoder does exactly is accepted. A setting that would make `tokenizers` give other tokens is refused
//! by name.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::file::{AddedToken, COMMENT, Merge, TokenizerFile};
use super::{foreign, template};
use crate::digest::sha256_hex;
use crate::pattern::Pattern;
use crate::{Error, ErrorKind, Result};

/// The format of manifests that this version knows.
const FORMAT: &str = "cppmill-tokenizer-1";
/// The version of `tokenizer.json`.
const VERSION: &str = "1.0";
/// The kind of manifests of byte-level BPE of other programs.
const FOREIGN: &str = "hugging-face";

/// The part of `manifest.json` that says how to read the rest.
#[derive(Deserialize)]
struct Format {
    format: String,
}

/// What `manifest.json` says that an encoder needs.
#[derive(Deserialize)]
pub(crate) struct Manifest {
    pub(crate) vocab_size: u32,
    files: HashMap<String, String>,
    #[serde(default)]
    pub(crate) reserved: Vec<(u32, u32)>,
    #[serde(default)]
    tokens: Vec<FixedToken>,
    superwords: Option<Superwords>,
    hf_template: Option<String>,
    kind: Option<String>,
    run: Option<String>,
    /// Why an adopted tokenizer loses text; a lossless one has none.
    lossy: Option<Vec<String>>,
    /// Other names of control tokens, by their ids.
    #[serde(default)]
    pub(crate) roles: HashMap<String, u32>,
}

impl Manifest {
    /// Whether the tokenizer is one of another program that need not have the form of ours.
    fn is_foreign(&self) -> bool {
        self.kind.as_deref() == Some(FOREIGN) && self.run.as_deref() != Some("native")
    }
}

#[derive(Deserialize)]
struct Superwords {
    first_merge: usize,
}

#[derive(Deserialize)]
struct FixedToken {
    id: u32,
    token: String,
    strength: String,
}

/// A tokenizer directory that has passed the checks.
pub(crate) struct Artifact {
    pub(crate) manifest: Manifest,
    /// The SHA-256 of `manifest.json`.
    pub(crate) digest: String,
    pub(crate) pattern: Pattern,
    /// The added tokens; of a tokenizer of ours all are special.
    pub(crate) added: Vec<AddedToken>,
    /// Whether a word that is a token becomes it without merging.
    pub(crate) ignore_merges: bool,
    /// Whether it is of another program: tokens may be missing, or spell no bytes.
    pub(crate) is_foreign: bool,
    /// Whether text is put in NFC: it is of another program, and was adopted as one that loses text.
    pub(crate) normalizes: bool,
    pub(crate) vocab: HashMap<String, u32>,
    /// The merges in the order of their ranks, as strings of the byte alphabet.
    pub(crate) merges: Vec<(String, String)>,
    /// The number of the first merge that was not learned within words.
    pub(crate) first_superword: usize,
}

impl Artifact {
    /// The names of the special added tokens with their ids.
    pub(crate) fn special(&self) -> impl Iterator<Item = (&str, u32)> {
        self.added.iter().filter(|token| token.special).map(|token| (token.content.as_str(), token.id))
    }
}

pub(crate) fn corrupt(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Corrupt, message)
}

/// Reads and checks the directory, which must have the manifest of that digest if there is one.
pub(crate) fn read(dir: &Path, digest: Option<&str>) -> Result<Artifact> {
    let (found, manifest) = read_manifest(dir)?;
    if let Some(digest) = digest.filter(|digest| *digest != found) {
        return Err(corrupt(format!("{}: this is the tokenizer {found}, not {digest}", dir.display())));
    }
    check_files(dir, &manifest)?;
    let path = dir.join("tokenizer.json");
    let file: TokenizerFile =
        serde_json::from_slice(&read_file(&path)?).map_err(|error| corrupt(format!("{}: {error}", path.display())))?;
    let refused = |what: String| Error::invalid(format!("{}: {what}", path.display()));
    check_form(&file).map_err(refused)?;
    let is_foreign = manifest.is_foreign();
    let normalizes = is_foreign && manifest.lossy.is_some();
    let check = if is_foreign { foreign::check(&file, normalizes) } else { check_own(&file, &manifest) };
    let artifact = Artifact {
        digest: found,
        pattern: check.map_err(refused)?,
        ignore_merges: file.model.setting("ignore_merges").is_some_and(|value| *value == true),
        is_foreign,
        normalizes,
        first_superword: manifest
            .superwords
            .as_ref()
            .map_or(file.model.merges.len(), |superwords| superwords.first_merge),
        merges: merges_of(&file.model.merges).map_err(refused)?,
        vocab: file.model.vocab,
        added: file.added_tokens,
        manifest,
    };
    if !is_foreign {
        check_control(&artifact).map_err(refused)?;
        check_superwords(&artifact).map_err(refused)?;
    }
    Ok(artifact)
}

/// Checks what `tokenizers` would not read: another version, merges of two forms, or one that it takes for a comment,
/// settings that are neither true nor false.
fn check_form(file: &TokenizerFile) -> std::result::Result<(), String> {
    if let Some(version) = file.version.as_deref().filter(|version| *version != VERSION) {
        return Err(format!("its version is {version:?}, and `tokenizers` knows {VERSION:?}"));
    }
    let pairs = file.model.merges.iter().filter(|merge| matches!(merge, Merge::Pair(..))).count();
    if pairs > 0 && pairs < file.model.merges.len() {
        return Err("some merges are pairs and some are strings".into());
    }
    if let Some(rank) = file.model.merges.iter().position(Merge::is_comment) {
        return Err(format!("merge {rank} begins with {COMMENT:?}, and `tokenizers` leaves out such a line"));
    }
    let flags = ["fuse_unk", "byte_fallback", "ignore_merges"];
    match flags.iter().find(|name| file.model.setting(name).is_some_and(|value| !value.is_boolean())) {
        Some(name) => Err(format!("`model.{name}` is neither true nor false")),
        None => Ok(()),
    }
}

/// Checks the settings of a tokenizer of ours, and returns its pattern.
fn check_own(file: &TokenizerFile, manifest: &Manifest) -> std::result::Result<Pattern, String> {
    check_settings(file)?;
    check_template(file, manifest)?;
    let pattern = pattern_of(&file.pre_tokenizer)?;
    Pattern::by_regex(&pattern).map_err(|error| error.to_string())
}

/// Reads a file; a pipe or a device might never end.
fn read_file(path: &Path) -> Result<Vec<u8>> {
    if fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        return Err(Error::new(ErrorKind::Io, format!("{}: no regular file", path.display())));
    }
    fs::read(path).map_err(|error| Error::of_file(path, &error))
}

/// The digest of the manifest, and what it says.
fn read_manifest(dir: &Path) -> Result<(String, Manifest)> {
    let path = dir.join("manifest.json");
    if dir.is_dir() && !path.exists() {
        return Err(Error::new(ErrorKind::Io, no_manifest(dir)));
    }
    let bytes = read_file(&path)?;
    let unreadable = |error| corrupt(format!("{}: {error}", path.display()));
    let Format { format } = serde_json::from_slice(&bytes).map_err(unreadable)?;
    if format != FORMAT {
        return Err(Error::invalid(format!(
            "{}: its format is {format:?}, and this version knows {FORMAT:?}: \
             install the cppmill-core that goes with it",
            path.display()
        )));
    }
    let manifest: Manifest = serde_json::from_slice(&bytes).map_err(unreadable)?;
    if let Some(kind) = manifest.kind.as_deref().filter(|kind| *kind != FOREIGN) {
        return Err(Error::invalid(format!(
            "{}: the core does not run tokenizers of the kind {kind:?}",
            path.display()
        )));
    }
    check_reserved(&manifest).map_err(|what| corrupt(format!("{}: {what}", path.display())))?;
    Ok((sha256_hex(&bytes), manifest))
}

/// Checks that the reserved ranges ascend and hold only ids that there are, each once.
fn check_reserved(manifest: &Manifest) -> std::result::Result<(), String> {
    let mut next = 0;
    for &(first, last) in &manifest.reserved {
        if first < next || last < first || last >= manifest.vocab_size {
            return Err(format!("the reserved range [{first}, {last}] is out of place"));
        }
        next = last + 1;
    }
    Ok(())
}

fn no_manifest(dir: &Path) -> String {
    let found = if dir.join("tokenizer.json").exists() {
        "it has a tokenizer.json, but other programs' tokenizers cannot be loaded"
    } else if dir.join("tokenizer").is_dir() {
        "give the folder `tokenizer` in it"
    } else {
        "give the folder `tokenizer` that a build has written"
    };
    format!("{}: there is no manifest.json: {found}", dir.display())
}

fn check_files(dir: &Path, manifest: &Manifest) -> Result<()> {
    if !manifest.files.contains_key("tokenizer.json") {
        return Err(corrupt(format!("{}: manifest.json has no digest of tokenizer.json in `files`", dir.display())));
    }
    for (name, expected) in &manifest.files {
        if name.contains(['/', '\\']) {
            return Err(corrupt(format!(
                "{}: manifest.json names {name:?}, which is not a plain file name",
                dir.display()
            )));
        }
        let path = dir.join(name);
        if !path.is_file() && dir.is_dir() {
            return Err(corrupt(format!("{}: there is no such file, and manifest.json names it", path.display())));
        }
        let found = sha256_hex(&read_file(&path)?);
        if found != *expected {
            return Err(corrupt(format!("{}: SHA-256 is {found}, manifest.json says {expected}", path.display())));
        }
    }
    Ok(())
}

fn check_settings(file: &TokenizerFile) -> std::result::Result<(), String> {
    let model = |name: &str| file.model.settings.get(name).unwrap_or(&Value::Null).clone();
    let unset = [Value::Null, Value::Bool(false), Value::from("")];
    let must_be_unset = [
        ("normalizer", file.normalizer.clone()),
        ("truncation", file.truncation.clone()),
        ("padding", file.padding.clone()),
        ("model.dropout", model("dropout")),
        ("model.unk_token", model("unk_token")),
        ("model.continuing_subword_prefix", model("continuing_subword_prefix")),
        ("model.end_of_word_suffix", model("end_of_word_suffix")),
        ("model.fuse_unk", model("fuse_unk")),
        ("model.byte_fallback", model("byte_fallback")),
        ("model.ignore_merges", model("ignore_merges")),
    ];
    if let Some((name, value)) = must_be_unset.iter().find(|(_, value)| !unset.contains(value)) {
        return Err(format!("`{name}` is {value}, but the encoder knows only tokenizers without it"));
    }
    if model("type") != "BPE" || file.decoder["type"] != "ByteLevel" {
        return Err("the model must be BPE and the decoder ByteLevel".into());
    }
    match file.added_tokens.iter().find(|token| !token.special) {
        Some(token) => Err(format!("the added token {:?} is not special: it would be cut out of text", token.content)),
        None => Ok(()),
    }
}

fn check_template(file: &TokenizerFile, manifest: &Manifest) -> std::result::Result<(), String> {
    let special = |name: &str| file.added_tokens.iter().find(|token| token.content == name).map(|token| token.id);
    template::check(&file.post_processor, manifest.hf_template.as_deref(), &special)
}

/// The regular expression of `Sequence[Split(Regex, Isolated), ByteLevel]`.
fn pattern_of(pre_tokenizer: &Value) -> std::result::Result<String, String> {
    let shape = "`pre_tokenizer` must be Sequence[Split(Regex, Isolated, invert false), \
                 ByteLevel(add_prefix_space false, use_regex false)]";
    let (split, bytes) = match pre_tokenizer["pretokenizers"].as_array().map(Vec::as_slice) {
        Some([split, bytes]) if pre_tokenizer["type"] == "Sequence" => (split, bytes),
        _ => return Err(shape.into()),
    };
    let splits = split["type"] == "Split" && split["behavior"] == "Isolated" && split["invert"] == false;
    let levels = bytes["type"] == "ByteLevel" && bytes["add_prefix_space"] == false && bytes["use_regex"] == false;
    match split["pattern"]["Regex"].as_str() {
        Some(regex) if splits && levels => Ok(regex.into()),
        _ => Err(shape.into()),
    }
}

fn merges_of(merges: &[Merge]) -> std::result::Result<Vec<(String, String)>, String> {
    let parts = merges.iter().enumerate().map(|(rank, merge)| {
        let (left, right) = merge.parts().ok_or_else(|| format!("merge {rank} is no pair"))?;
        Ok((left.into(), right.into()))
    });
    parts.collect()
}

/// Every token that the manifest calls control is a special added token of the same id, and every special token is in
/// the vocabulary.
fn check_control(artifact: &Artifact) -> std::result::Result<(), String> {
    let special: HashMap<&str, u32> = artifact.special().collect();
    let control = artifact.manifest.tokens.iter().filter(|token| token.strength == "control");
    if let Some(token) = control.into_iter().find(|token| special.get(token.token.as_str()) != Some(&token.id)) {
        return Err(format!("the control token {:?}, id {}, is no special added token", token.token, token.id));
    }
    match artifact.special().find(|(name, id)| artifact.vocab.get(*name) != Some(id)) {
        Some((name, id)) => {
            Err(format!("the added token {name:?}, id {id}, is not in the model's vocabulary under that id"))
        }
        None => Ok(()),
    }
}

fn check_superwords(artifact: &Artifact) -> std::result::Result<(), String> {
    let (first, merges) = (artifact.first_superword, artifact.merges.len());
    if first > merges {
        return Err(format!("manifest.json says that superwords begin with merge {first}, but there are {merges}"));
    }
    if first < merges && !artifact.pattern.is_lines() {
        let pattern = artifact.pattern.name();
        return Err(format!("manifest.json says that merges from {first} on are superwords, but {pattern} cuts words"));
    }
    Ok(())
}
