//! The tokens made so far, in creation order.

use crate::encode::MAX_IDS;
use crate::{Error, Result};

/// How many tokens there are before the first merge.
pub(super) const BYTES: u32 = 256;

/// How many bytes keep their own code point in the byte-level alphabet and therefore come first in it.
const PRINTABLE: [std::ops::RangeInclusive<u8>; 3] = [33..=126, 161..=172, 174..=255];

/// The bytes in the order of the byte-level alphabet's characters by code point, which is how Hugging Face's
/// trainer numbers its `initial_alphabet`: the printable Latin-1 bytes, then all others, each ascending.
fn alphabet() -> Vec<u8> {
    let printable = |byte: &u8| PRINTABLE.iter().any(|range| range.contains(byte));
    let (mut first, rest): (Vec<u8>, Vec<u8>) = (0..=u8::MAX).partition(printable);
    first.extend(rest);
    first
}

/// The number of each byte's token: its place in the alphabet.
pub(super) fn byte_numbers() -> [u32; BYTES as usize] {
    let mut numbers = [0; BYTES as usize];
    for (number, byte) in (0..).zip(alphabet()) {
        numbers[usize::from(byte)] = number;
    }
    numbers
}

/// Token number → bytes. Numbers 0 to 255 are the single bytes in alphabet order; a merge adds the next number.
///
/// A merge never spells a token that exists. While texts are segmented exactly as the merges so far would encode
/// them, what happens between two borders that no merge crosses does not depend on what is outside; a stretch that
/// spells an existing token is therefore that token already. So a token is made by one merge, a pair of tokens
/// comes into being during one step only, and its count never grows afterwards.
pub(super) struct Tokens {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    merges: Vec<(u32, u32)>,
}

impl Tokens {
    /// Makes the 256 single bytes.
    pub(super) fn new() -> Self {
        Self { bytes: alphabet(), ends: (1..=BYTES as usize).collect(), merges: Vec::new() }
    }

    /// The bytes of a token.
    pub(super) fn bytes(&self, token: u32) -> &[u8] {
        let token = token as usize;
        let start = if token == 0 { 0 } else { self.ends[token - 1] };
        &self.bytes[start..self.ends[token]]
    }

    /// The number that the next merge will make.
    pub(super) fn next(&self) -> u32 {
        self.ends.len() as u32
    }

    /// Checks that texts can be cut into them.
    ///
    /// # Errors
    /// `Invalid` if they are more than the encoder knows.
    pub(super) fn check_number(&self) -> Result<()> {
        match self.next() {
            ..=MAX_IDS => Ok(()),
            found => Err(Error::invalid(format!("{found} tokens: the encoder knows up to {MAX_IDS}"))),
        }
    }

    /// Makes the token that joins two others.
    pub(super) fn merge(&mut self, left: u32, right: u32) -> u32 {
        let token = self.next();
        let joined = [self.bytes(left), self.bytes(right)].concat();
        self.bytes.extend(joined);
        self.ends.push(self.bytes.len());
        self.merges.push((left, right));
        token
    }

    /// The merges in rank order, each with the token that it makes.
    pub(super) fn merges(&self) -> impl Iterator<Item = (u32, u32, u32)> + '_ {
        self.merges.iter().zip(BYTES..).map(|(&(left, right), token)| (left, right, token))
    }

    /// Splits `text` as the merges so far encode it: the pair of the lowest rank first, the leftmost among equals.
    /// Quadratic: for the few short texts that an error message is about.
    pub(super) fn encode(&self, text: &[u8]) -> Vec<u32> {
        let numbers = byte_numbers();
        let ranks: hashbrown::HashMap<(u32, u32), u32> =
            self.merges().map(|(left, right, token)| ((left, right), token)).collect();
        let mut pieces: Vec<u32> = text.iter().map(|&byte| numbers[usize::from(byte)]).collect();
        loop {
            let candidates = pieces.windows(2).enumerate();
            let ranked = candidates.filter_map(|(at, pair)| Some((*ranks.get(&(pair[0], pair[1]))?, at)));
            let Some((token, at)) = ranked.min() else { return pieces };
            pieces[at] = token;
            pieces.remove(at + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alphabet_starts_with_printable_bytes_and_holds_each_byte_once() {
        let alphabet = alphabet();
        assert_eq!((alphabet[0], alphabet[93], alphabet[94], alphabet[188]), (b'!', b'~', 161, 0));
        assert_eq!(alphabet[255], 173);
        let mut sorted = alphabet;
        sorted.sort_unstable();
        assert_eq!(sorted, (0..=255).collect::<Vec<u8>>());
    }

    #[test]
    fn more_tokens_than_the_encoder_knows_are_an_error() {
        let mut tokens = Tokens::new();
        while tokens.next() < MAX_IDS {
            tokens.merge(0, 1);
        }
        assert!(tokens.check_number().is_ok());
        tokens.merge(0, 1);
        let error = tokens.check_number().err().map(|error| error.to_string());
        assert_eq!(error.as_deref(), Some("2097152 tokens: the encoder knows up to 2097151"));
    }

    #[test]
    fn encode_takes_the_lowest_rank_first() {
        let mut tokens = Tokens::new();
        let number = |byte: u8| byte_numbers()[usize::from(byte)];
        let bc = tokens.merge(number(b'b'), number(b'c'));
        let ab = tokens.merge(number(b'a'), number(b'b'));
        assert_eq!(tokens.encode(b"abcab"), [number(b'a'), bc, ab]);
        assert_eq!(tokens.bytes(bc), b"bc");
    }
}
