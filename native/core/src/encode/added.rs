//! Added tokens that are not special: wherever their characters are in text, they are one token.
//!
//! As in `tokenizers`, tokens that are not to be normalised are cut out first, then the others out of what is left.
//! Special tokens are found too, and left in the text, because what they hide is not found.

use std::borrow::Cow;

use aho_corasick::{AhoCorasick, MatchKind};

use super::load::Artifact;
use super::nfc::nfc;
use crate::{Error, Result};

/// Finds added tokens in text; nothing at all if all are special.
pub(crate) struct AddedTokens {
    finders: Vec<Finder>,
    /// How many of the finders look at text before it is normalised.
    raw: usize,
}

pub(crate) struct Finder {
    automaton: AhoCorasick,
    /// The ids; none of special tokens.
    ids: Vec<Option<u32>>,
}

impl AddedTokens {
    /// Takes the added tokens of a tokenizer. If it normalises text, it normalises the tokens that it finds there, too.
    ///
    /// # Errors
    /// `Invalid` if they are too many.
    pub(crate) fn new(artifact: &Artifact) -> Result<Self> {
        let (raw, normalized) = (Finder::new(artifact, false)?, Finder::new(artifact, true)?);
        Ok(Self { raw: usize::from(raw.is_some()), finders: raw.into_iter().chain(normalized).collect() })
    }

    /// The finders of all tokens, for text that is normalised or need not be.
    pub(crate) fn all(&self) -> &[Finder] {
        &self.finders
    }

    /// The finders for text before it is normalised, and those for what they leave, once that is normalised.
    pub(crate) fn around_normalizer(&self) -> (&[Finder], &[Finder]) {
        self.finders.split_at(self.raw)
    }
}

impl Finder {
    /// Makes the finder of the tokens that are, or are not, to be normalised; none if all of them are special.
    fn new(artifact: &Artifact, is_normalized: bool) -> Result<Option<Self>> {
        let tokens = || artifact.added.iter().filter(move |token| token.normalized == is_normalized);
        if tokens().all(|token| token.special) {
            return Ok(None);
        }
        let spelled = |content| if is_normalized && artifact.normalizes { nfc(content) } else { Cow::from(content) };
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(tokens().map(|token| spelled(token.content.as_bytes())))
            .map_err(|error| Error::invalid(format!("added tokens: {error}")))?;
        let ids = tokens().map(|token| (!token.special).then_some(token.id)).collect();
        Ok(Some(Self { automaton, ids }))
    }
}

/// Calls `each` with the start and the end of each part of `run[start..]`, and with the token that it is.
pub(crate) fn cut(finders: &[Finder], run: &[u8], start: usize, each: &mut dyn FnMut(usize, usize, Option<u32>)) {
    if start == run.len() {
        return;
    }
    let Some((finder, others)) = finders.split_first() else { return each(start, run.len(), None) };
    let mut left = start;
    for found in finder.automaton.find_iter(&run[start..]) {
        let Some(id) = finder.ids[found.pattern().as_usize()] else { continue };
        let (from, to) = (start + found.start(), start + found.end());
        cut(others, &run[..from], left, each);
        each(from, to, Some(id));
        left = to;
    }
    cut(others, run, left, each);
}
