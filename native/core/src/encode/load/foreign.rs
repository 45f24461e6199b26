//! What `tokenizer.json` of another program says, as far as the encoder does it exactly.
//!
//! The ids are those of `tokenizers` with `encode_special_tokens` on: the characters of a special token in text are
//! ordinary text, and any other added token is cut out of text. The normaliser NFC is left out, unless the tokenizer
//! was adopted as one that loses text. What the encoder does not know is refused by name, and the caller lets
//! `tokenizers` run the tokenizer.

use serde_json::Value;

use super::file::{AddedToken, TokenizerFile};
use crate::pattern::{Pattern, Step};

type Checked<T> = std::result::Result<T, String>;

/// The regular expression of `ByteLevel` with `use_regex`, as one step more.
fn gpt2_step() -> Option<Step<'static>> {
    Pattern::foreign().find_map(|pattern| match pattern.steps() {
        [step] if pattern.name() == "gpt2" => Some(*step),
        _ => None,
    })
}

/// Checks all settings and returns the pattern. There must be a normaliser if the tokenizer `normalizes`.
pub(super) fn check(file: &TokenizerFile, normalizes: bool) -> Checked<Pattern> {
    check_model(file)?;
    let has_nfc = has_nfc(&file.normalizer)?;
    if normalizes && !has_nfc {
        return Err("manifest.json says that text is lost, but no normalizer loses any".into());
    }
    file.added_tokens.iter().try_for_each(check_added)?;
    pattern_of(&file.pre_tokenizer)
}

fn check_model(file: &TokenizerFile) -> Checked<()> {
    let unset = [Value::Null, Value::Bool(false), Value::from("")];
    let names = ["dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback"];
    let set = names.iter().find(|name| file.model.setting(name).is_some_and(|value| !unset.contains(value)));
    match (set, file.model.setting("type")) {
        (Some(name), _) => Err(format!("`model.{name}` is set")),
        (None, None) => Ok(()),
        (None, Some(kind)) if kind == "BPE" => Ok(()),
        (None, Some(kind)) => Err(format!("the model is {kind}, not BPE")),
    }
}

/// Whether the normaliser is NFC, rather than none.
fn has_nfc(normalizer: &Value) -> Checked<bool> {
    match normalizer {
        Value::Null => Ok(false),
        found if found["type"] == "NFC" => Ok(true),
        found if found["type"] == "Sequence" => {
            let steps = found["normalizers"].as_array().ok_or("the normalizer is no list")?;
            steps.iter().try_fold(false, |found, step| Ok(has_nfc(step)? || found))
        }
        found => Err(format!("`normalizer` is {found}")),
    }
}

fn check_added(token: &AddedToken) -> Checked<()> {
    let flags = [(token.lstrip, "lstrip"), (token.rstrip, "rstrip"), (token.single_word, "single_word")];
    match flags.iter().find(|(is_set, _)| *is_set && !token.special) {
        Some((_, flag)) => Err(format!("the added token {:?} has `{flag}`", token.content)),
        None => Ok(()),
    }
}

fn pattern_of(pre_tokenizer: &Value) -> Checked<Pattern> {
    let mut steps = Steps { found: Vec::new(), keeps_all: true, is_complete: false };
    steps.add(pre_tokenizer)?;
    let known = || Pattern::by_steps(&steps.found, steps.keeps_all);
    steps.is_complete.then(known).flatten().ok_or_else(|| format!("`pre_tokenizer` is not known: {pre_tokenizer}"))
}

/// The steps in front of a `ByteLevel`.
struct Steps<'a> {
    found: Vec<Step<'a>>,
    /// Whether text between two matches is kept.
    keeps_all: bool,
    /// Whether the `ByteLevel` was there.
    is_complete: bool,
}

impl<'a> Steps<'a> {
    fn add(&mut self, step: &'a Value) -> Checked<()> {
        let unknown = || Err(format!("a step of `pre_tokenizer` is not known: {step}"));
        if self.is_complete {
            return unknown();
        }
        match step["type"].as_str() {
            Some("Sequence") => {
                let steps = step["pretokenizers"].as_array();
                return steps.map_or_else(unknown, |steps| steps.iter().try_for_each(|step| self.add(step)));
            }
            Some("ByteLevel")
                if step["add_prefix_space"] == false && step.get("use_regex").is_none_or(Value::is_boolean) =>
            {
                self.is_complete = true;
                if step["use_regex"] != false {
                    self.found.extend(gpt2_step());
                }
            }
            Some("Digits") if step["individual_digits"] == true => self.found.push(Step::Digits),
            Some("Split") => {
                let Some(regex) = step["pattern"]["Regex"].as_str() else { return unknown() };
                match (step["behavior"].as_str(), step["invert"].as_bool()) {
                    (Some("Isolated"), Some(false)) => {}
                    (Some("Removed"), Some(true)) => self.keeps_all = false,
                    _ => return unknown(),
                }
                self.found.push(Step::Regex(regex));
            }
            _ => return unknown(),
        }
        Ok(())
    }
}
