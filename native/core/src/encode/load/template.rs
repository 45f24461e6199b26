//! The template: what `tokenizers` puts around a text, as the post-processor of `tokenizer.json`.
//!
//! The encoder gives the ids of the text alone with any template. Only templates that put `<BOS>` before a text and
//! `<EOS>` after it are accepted, because what others add would be missing from the ids.

use serde_json::{Value, json};

/// The templates by the name that `manifest.json` records: the tokens before and after a text.
const TEMPLATES: [(&str, &[&str], &[&str]); 3] =
    [("none", &[], &[]), ("bos", &["<BOS>"], &[]), ("bos-eos", &["<BOS>"], &["<EOS>"])];

/// Checks a post-processor, which must be the template that the manifest records if it records one.
///
/// `id_of` gives the id of a special token.
pub(super) fn check(
    post_processor: &Value,
    recorded: Option<&str>,
    id_of: &impl Fn(&str) -> Option<u32>,
) -> Result<(), String> {
    let found = TEMPLATES.iter().find(|(_, before, after)| *post_processor == written(before, after, id_of));
    match (found, recorded) {
        (None, _) => Err(format!(
            "`post_processor` is {post_processor}, but the encoder knows only templates of <BOS> before a text and \
             <EOS> after it"
        )),
        (Some((name, ..)), Some(recorded)) if *name != recorded => {
            Err(format!("`post_processor` is the template {name:?}, but manifest.json says {recorded:?}"))
        }
        _ => Ok(()),
    }
}

/// A template as `tokenizer.json` has it.
fn written(before: &[&str], after: &[&str], id_of: &impl Fn(&str) -> Option<u32>) -> Value {
    if before.is_empty() && after.is_empty() {
        return Value::Null;
    }
    let token = |name: &&str, type_id: u32| json!({"SpecialToken": {"id": name, "type_id": type_id}});
    let document = |text: &str, type_id: u32| -> Vec<Value> {
        let sequence = json!({"Sequence": {"id": text, "type_id": type_id}});
        let (before, after) = (before.iter(), after.iter());
        before
            .map(|name| token(name, type_id))
            .chain([sequence])
            .chain(after.map(|name| token(name, type_id)))
            .collect()
    };
    let special = before
        .iter()
        .chain(after)
        .map(|name| ((*name).to_string(), json!({"id": name, "ids": [id_of(name)], "tokens": [name]})));
    let pair = [document("A", 0), document("B", 1)].concat();
    json!({
        "type": "TemplateProcessing",
        "single": document("A", 0),
        "pair": pair,
        "special_tokens": special.collect::<serde_json::Map<_, _>>(),
    })
}
