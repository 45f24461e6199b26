//! Texts and control tokens, one after another.

use std::sync::Arc;

use arrow_array::{ArrayRef, PrimitiveArray};

use super::batch::{Id, Workers};
use super::encoder::Encoder;
use crate::{Result, Stop};

/// A part of what is encoded.
#[derive(Clone, Copy, Debug)]
pub enum Part<'a> {
    /// A text, which is encoded by itself.
    Text(&'a [u8]),
    /// The name of a control token, with its angle brackets or without.
    Control(&'a str),
}

/// Encodes parts; `control_id` gives the ids of control tokens.
pub(super) fn encode_parts<T: Id>(
    encoder: &Encoder,
    workers: &Workers<T>,
    parts: &[Part<'_>],
    control_id: &dyn Fn(&str) -> Result<u32>,
    stop: &Stop,
) -> Result<ArrayRef> {
    let mut ids = Vec::new();
    workers.with(|worker| {
        for part in parts {
            match part {
                Part::Text(text) => encoder.encode(worker, text, stop, &mut ids)?,
                Part::Control(name) => ids.push(T::new(control_id(name)?)),
            }
        }
        Ok(Arc::new(PrimitiveArray::<T::Arrow>::new(ids.into(), None)) as ArrayRef)
    })
}

/// How many letters must be changed, put in or left out to make one name of another, whatever their case.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.to_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, char) in one.to_lowercase().chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], line + 1);
        for (at, &second) in other.iter().enumerate() {
            let changed = diagonal + usize::from(char != second);
            diagonal = row[at + 1];
            row[at + 1] = changed.min(row[at] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

/// The three names that are most like `name`.
pub(super) fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut names: Vec<&str> = names.collect();
    names.sort_by_key(|known| distance(name.trim_matches(['<', '>']), known.trim_matches(['<', '>'])));
    names.truncate(3);
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_names_are_those_with_the_fewest_changes() {
        assert_eq!(["", "a", "abc"].map(|other| distance("abc", other)), [3, 2, 0]);
        assert_eq!(["ABD", "ac", "xabc", "bca"].map(|other| distance("abc", other)), [1, 1, 1, 2]);
        let names = ["<PAD>", "<EOS>", "<FIM_SUFFIX>", "<FIM_PREFIX>", "<FIM_MIDDLE>"];
        assert_eq!(nearest("fim-prefix", names.into_iter())[0], "<FIM_PREFIX>");
        assert_eq!(nearest("<EOT>", names.into_iter())[0], "<EOS>");
    }
}
