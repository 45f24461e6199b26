//! How many of a text's first tokens stay the same whatever text follows.
//!
//! A text is cut into pre-tokens, and the tokens of a pre-token are the result of merging it. The pre-tokens that the
//! pattern cuts the same whatever follows ([`Pattern::tail`]) keep their tokens. Only the beginning of the next
//! pre-token is known yet. **Any run of a text's tokens is the result of merging that run's text**, because the tokens
//! of a merged text are the same as if any two neighbours had been merged alone (van Antwerpen and Neubeck,
//! `rust-gems/bpe`). So the known beginning becomes the tokens of some prefix of it, and then one token that extends
//! past the end of the text. This last token begins with the rest of the known beginning. Few prefixes are possible:
//! those whose rest is the beginning of a longer token. The tokens that all of them share are stable.

use super::encoder::Encoder;
use crate::encode::load::Vocabulary;
use crate::pattern::Pattern;
use crate::{Result, Stop};

/// How much of a long pre-token is merged again at first.
const MIN_WINDOW: usize = 512;

/// The tokens in the order of their bytes.
pub(crate) struct TokenPrefixes {
    sorted: Box<[u32]>,
    longest: usize,
}

impl TokenPrefixes {
    pub(crate) fn new(vocabulary: &Vocabulary) -> Self {
        let mut sorted: Vec<u32> = (0..vocabulary.len()).filter(|&id| !bytes(vocabulary, id).is_empty()).collect();
        sorted.sort_unstable_by_key(|&id| bytes(vocabulary, id));
        let longest = sorted.iter().map(|&id| bytes(vocabulary, id).len()).max().unwrap_or(0);
        Self { sorted: sorted.into(), longest }
    }

    /// Whether a token begins with `text` and is longer.
    fn begin(&self, vocabulary: &Vocabulary, text: &[u8]) -> bool {
        let next = self.sorted.partition_point(|&id| bytes(vocabulary, id) <= text);
        self.sorted.get(next).is_some_and(|&id| bytes(vocabulary, id).starts_with(text))
    }
}

fn bytes(vocabulary: &Vocabulary, id: u32) -> &[u8] {
    vocabulary.bytes(id).unwrap_or_default()
}

/// What [`StablePrefixFinder::stable_prefix`] needs of a tokenizer.
pub(crate) struct StablePrefixFinder<'a> {
    pub(crate) vocabulary: &'a Vocabulary,
    pub(crate) encoder: &'a Encoder,
    pub(crate) prefixes: &'a TokenPrefixes,
    pub(crate) pattern: Pattern,
    pub(crate) stop: &'a Stop,
}

impl StablePrefixFinder<'_> {
    /// How many of `ids`, of which none is a control token, lead the ids of `text` whatever bytes follow it. `encode`
    /// encodes.
    pub(crate) fn stable_prefix(
        &self,
        ids: &[u32],
        text: &[u8],
        encode: impl Fn(&[u8]) -> Result<Vec<u32>>,
    ) -> Result<usize> {
        let (text, run) = last_run(text);
        let tail = self.pattern.tail(&text[run..]);
        let start = run + tail.start;
        let encoded = encode(text)?;
        let before = self.count_until(&encoded, start);
        let same = common(ids, &encoded[..before]);
        if same < before {
            return Ok(same);
        }
        let ends = tail.ends.iter().map(|end| end - tail.start);
        let stable = before + self.stable_in_pretoken(&ids[before..], &text[start..], ends);
        self.stop.check().map(|()| stable)
    }

    /// How many of `ids` lead the tokens of every pre-token that begins with `part` or ends at one of `ends`, places in
    /// it.
    fn stable_in_pretoken(&self, ids: &[u32], part: &[u8], ends: impl Iterator<Item = usize>) -> usize {
        let least = part.len().saturating_sub(self.prefixes.longest);
        let crossed = (least..part.len()).filter(|&place| self.prefixes.begin(self.vocabulary, &part[place..]));
        let places: Vec<usize> = ends.chain(crossed).chain([part.len()]).collect();
        let whole = self.merge(part);
        let mut window = MIN_WINDOW.max(4 * self.prefixes.longest);
        loop {
            let kept = self.count_until(&whole, part.len().saturating_sub(window));
            let start = whole[..kept].iter().map(|&id| bytes(self.vocabulary, id).len()).sum();
            let mut alike = common(ids, &whole);
            let merged = |place: usize| self.merge(&part[start..place]);
            let joins = places.iter().all(|&place| {
                let tokens = merged(place);
                alike = alike.min(kept + common(&whole[kept..], &tokens));
                kept == 0 || tokens.first() == Some(&whole[kept])
            });
            if joins {
                return alike;
            }
            window *= 4;
        }
    }

    /// How many of `tokens` it takes to come to the byte `end` or beyond.
    fn count_until(&self, tokens: &[u32], end: usize) -> usize {
        let mut at = 0;
        let reached = |token: &u32| {
            let before = at;
            at += bytes(self.vocabulary, *token).len();
            before >= end
        };
        tokens.iter().position(reached).unwrap_or(tokens.len())
    }

    fn merge(&self, text: &[u8]) -> Vec<u32> {
        let mut tokens = Vec::new();
        self.encoder.merge_fragment(text, self.stop, &mut tokens);
        tokens
    }
}

/// `text` without a character that is not whole at its end, and where its last run of valid UTF-8 starts.
fn last_run(text: &[u8]) -> (&[u8], usize) {
    let (mut start, mut end) = (0, 0);
    for chunk in text.utf8_chunks() {
        let begun = std::str::from_utf8(chunk.invalid()).is_err_and(|error| error.error_len().is_none());
        (start, end) = (end, end + chunk.valid().len());
        let next = end + chunk.invalid().len();
        if next > end && !(begun && next == text.len()) {
            (start, end) = (next, next);
        }
    }
    (&text[..end], start)
}

/// How many elements two slices begin with alike.
fn common(some: &[u32], others: &[u32]) -> usize {
    some.iter().zip(others).take_while(|(one, other)| one == other).count()
}
