//! The beginning and the end of a round of merging: from texts to their parts, and back.

use super::chunk::{Chunk, tokens};
use super::cuts::Cuts;
use super::held::Held;
use super::laid_out::Texts;
use super::pool::{Places, Pool};
use crate::Result;
use crate::train::engine::Engine;

/// Cuts the texts and lays out the parts, each once.
///
/// # Errors
/// `Invalid` if they are more than positions can hold.
pub(in crate::train) fn lay_out(texts: &Held, cuts: &Cuts) -> Result<(Texts, Places)> {
    Pool::new(texts, cuts).lay_out(texts.sizes().to_vec())
}

/// Replaces each part of the texts by what merging made of it.
pub(in crate::train) fn replace_parts(texts: &mut Held, cuts: &Cuts, places: &Places, engine: &Engine) {
    texts.replace(|(number, chunk)| {
        let (mut replaced, mut own, mut start) = (Chunk::default(), Vec::new(), 0);
        for (text, units) in chunk.texts() {
            own.clear();
            for (part, is_longer) in cuts.parts(number, start, units) {
                match is_longer.then(|| places.find(part, text.group)).flatten() {
                    Some(place) => own.extend(engine.tokens_at(place)),
                    None => own.extend(tokens(part)),
                }
            }
            start += units.len();
            if own.len() > 1 {
                replaced.push(&own, text);
            }
        }
        replaced.shrink();
        replaced
    });
}
