//! Added tokens that are not special: wherever their characters are in text, they are one token.
//!
//! As in `tokenizers`, tokens that are not to be normalised are cut out first, then the others out of what is left.
//! Special tokens are found too, and left in the text, because what they hide is not found.

use aho_corasick::{AhoCorasick, MatchKind};

use super::load::Artifact;
use crate::{Error, Result};

/// Finds added tokens in text; nothing at all if all are special.
#[derive(Default)]
pub(crate) struct AddedTokens(Vec<Finder>);

struct Finder {
    automaton: AhoCorasick,
    /// The ids; none of special tokens.
    ids: Vec<Option<u32>>,
}

impl AddedTokens {
    /// Takes the added tokens of a tokenizer.
    ///
    /// # Errors
    /// `Invalid` if they are too many.
    pub(crate) fn new(artifact: &Artifact) -> Result<Self> {
        let finders = [false, true].map(|is_normalized| {
            let tokens = || artifact.added.iter().filter(move |token| token.normalized == is_normalized);
            if tokens().all(|token| token.special) {
                return Ok(None);
            }
            let automaton = AhoCorasick::builder()
                .match_kind(MatchKind::LeftmostLongest)
                .build(tokens().map(|token| &token.content))
                .map_err(|error| Error::invalid(format!("added tokens: {error}")))?;
            let ids = tokens().map(|token| (!token.special).then_some(token.id)).collect();
            Ok(Some(Finder { automaton, ids }))
        });
        let found: Result<Vec<_>> = finders.into_iter().collect();
        Ok(Self(found?.into_iter().flatten().collect()))
    }

    /// Calls `each` with the start and the end of each part of `run[start..]`, and with the token that it is.
    #[inline]
    pub(crate) fn parts(&self, run: &[u8], start: usize, each: &mut dyn FnMut(usize, usize, Option<u32>)) {
        cut(&self.0, run, start, each);
    }
}

fn cut(finders: &[Finder], run: &[u8], start: usize, each: &mut dyn FnMut(usize, usize, Option<u32>)) {
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
