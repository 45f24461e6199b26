//! Which merges may be learned at all.

use std::fmt;

use hashbrown::HashSet;

use super::merges::Phase;
use super::options::SuperwordBounds;
use super::seed::{Seed, is_identifier_byte};
use crate::pattern::Pattern;

/// Why a merge is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It would join this atomic token to a byte that is not an identifier byte.
    Atomic(Vec<u8>),
    /// It would spell a string that no token may have.
    Forbidden,
    /// The token would be longer than the bound, in bytes.
    TooLong(usize),
    /// The superword would be longer than a bound.
    LongSuperword,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Atomic(token) => {
                let token = token.escape_ascii();
                write!(f, "\"{token}\" is atomic, so no merge may join it to a byte that is no identifier byte; ")?;
                write!(f, "drop the seed or make \"{token}\" pinned")
            }
            Self::LongSuperword => f.write_str("the result would be longer than a superword may be"),
            Self::Forbidden => f.write_str("the result is the name of a control or reserved id; drop the seed"),
            Self::TooLong(bound) => {
                write!(f, "the result is longer than max_token_bytes = {bound}; raise the bound or drop the seed")
            }
        }
    }
}

/// The rules that every merge must keep, seed or learned.
pub(super) struct Rules {
    atomic: HashSet<Vec<u8>>,
    forbidden: HashSet<Vec<u8>>,
    max_token_bytes: usize,
    superwords: Option<SuperwordBounds>,
}

impl Rules {
    /// Takes the atomic tokens from the seeds.
    pub(super) fn new(seeds: &[Seed], forbidden: &[Vec<u8>], max_token_bytes: Option<usize>) -> Self {
        Self {
            atomic: seeds.iter().filter(|seed| seed.atomic).map(|seed| seed.token.clone()).collect(),
            forbidden: forbidden.iter().cloned().collect(),
            max_token_bytes: max_token_bytes.unwrap_or(usize::MAX),
            superwords: None,
        }
    }

    /// Adds what bounds superwords.
    pub(super) fn with_superwords(self, superwords: Option<SuperwordBounds>) -> Self {
        Self { superwords, ..self }
    }

    /// Says why joining `left` and `right` is refused in a phase, if it is.
    pub(super) fn refusal(&self, left: &[u8], right: &[u8], phase: Phase) -> Option<Refusal> {
        let (last, first) = (left.last().copied()?, right.first().copied()?);
        if !is_identifier_byte(first) && self.atomic.contains(left) {
            return Some(Refusal::Atomic(left.to_vec()));
        }
        if !is_identifier_byte(last) && self.atomic.contains(right) {
            return Some(Refusal::Atomic(right.to_vec()));
        }
        let token = [left, right].concat();
        self.refuses_token(&token).or_else(|| match (phase, &self.superwords) {
            (Phase::Superword, Some(bounds)) => (!bounds.allow(&token)).then_some(Refusal::LongSuperword),
            _ => None,
        })
    }

    /// Says why no token may be `token`, if so.
    pub(super) fn refuses_token(&self, token: &[u8]) -> Option<Refusal> {
        if token.len() > self.max_token_bytes {
            return Some(Refusal::TooLong(self.max_token_bytes));
        }
        self.forbidden.contains(token).then_some(Refusal::Forbidden)
    }
}

impl SuperwordBounds {
    fn allow(&self, token: &[u8]) -> bool {
        token.len() <= self.max_bytes && count_words(self.pattern.words(), token) <= self.max_words
    }
}

fn count_words(pattern: Pattern, text: &[u8]) -> usize {
    let mut words = 0;
    pattern.split(text, |_| words += 1);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> Rules {
        let seeds = [Seed { token: b"INSERT".to_vec(), atomic: true }, Seed { token: b"in".to_vec(), atomic: false }];
        Rules::new(&seeds, &[b"<EOS>".to_vec()], Some(8))
    }

    #[test]
    fn atomic_tokens_join_identifier_bytes_only() {
        let refused = Some(Refusal::Atomic(b"INSERT".to_vec()));
        assert_eq!(rules().refusal(b"INSERT", b" ", Phase::Corpus), refused);
        assert_eq!(rules().refusal(b"\xa9", b"INSERT", Phase::Corpus), refused);
        assert_eq!(rules().refusal(b"INSERT", b"_", Phase::Corpus), None);
        assert_eq!(rules().refusal(b"0", b"INSERT", Phase::Corpus), None);
        assert_eq!(rules().refusal(b"in", b" ", Phase::Corpus), None);
    }

    #[test]
    fn superwords_have_so_many_words_and_bytes_and_other_tokens_may_have_more() {
        let pattern = Pattern::ALL[1];
        let rules = || {
            let bounds = SuperwordBounds { pattern, max_words: 3, max_bytes: 12 };
            Rules::new(&[], &[], None).with_superwords(Some(bounds))
        };
        let refusal = |left: &[u8], right: &[u8], phase| rules().refusal(left, right, phase);
        assert_eq!(refusal(b"std::", b"move(", Phase::Superword), Some(Refusal::LongSuperword));
        assert_eq!(refusal(b"std::", b"move", Phase::Superword), None);
        assert_eq!(refusal(b" = static", b"_cas", Phase::Superword), Some(Refusal::LongSuperword));
        assert_eq!(refusal(b"std::", b"move(", Phase::Corpus), None);
    }

    #[test]
    fn forbidden_and_long_results_are_refused() {
        assert_eq!(rules().refusal(b"<EO", b"S>", Phase::Corpus), Some(Refusal::Forbidden));
        assert_eq!(rules().refusal(b"<EO", b"S", Phase::Corpus), None);
        assert_eq!(rules().refusal(b"12345", b"6789", Phase::Corpus), Some(Refusal::TooLong(8)));
        assert_eq!(rules().refusal(b"12345", b"678", Phase::Corpus), None);
    }
}
