//! Splits one after another: each cuts every piece that those before it have left.

use super::category::Text;

/// What a split finds at a place.
pub(super) enum Found {
    /// A match up to here.
    Match(usize),
    /// No match that begins before this place.
    NotBefore(usize),
}

/// One split: what it finds at a place before the end of a piece.
pub(super) type Split = fn(Text<'_>, usize) -> Found;

/// Calls `each` with the ends of the pieces of `run[start..]`.
pub(super) fn ends(splits: &[Split], run: &[u8], start: usize, each: &mut dyn FnMut(usize)) {
    let Some((split, others)) = splits.split_first() else { return each(run.len()) };
    let text = Text::new(run);
    let (mut at, mut left) = (start, start);
    while at < run.len() {
        match split(text, at) {
            Found::NotBefore(next) => at = next,
            Found::Match(end) => {
                if left < at {
                    ends(others, &run[..at], left, each);
                }
                ends(others, &run[..end], at, each);
                (at, left) = (end, end);
            }
        }
    }
    if left < run.len() {
        ends(others, run, left, each);
    }
}

/// The first place behind `start` where every split cuts, and from where on none depends on what is before: behind an
/// ASCII letter, in front of ASCII white space or a digit. The end of the run if there is none.
pub(super) fn border(run: &[u8], start: usize) -> usize {
    let cuts = |pair: &[u8]| {
        pair[0].is_ascii_alphabetic() && (pair[1].is_ascii_digit() || matches!(pair[1], b' ' | b'\t' | b'\n' | b'\r'))
    };
    run[start..].windows(2).position(cuts).map_or(run.len(), |at| start + at + 1)
}
