//! Some texts as tokens, in little memory: they can only be read in order.
//!
//! A token takes two bytes, or six if its number needs more than two. The length, the count and the group of a text are
//! numbers of as few bytes as they need (LEB128), apart from the tokens.

/// Stands before the two halves of a token that does not fit into one unit.
const ESCAPE: u16 = u16::MAX;

/// What is known of a text beside its tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Text {
    pub(super) count: u64,
    pub(super) group: u16,
}

/// Texts one after the other.
#[derive(Default)]
pub(super) struct Chunk {
    heads: Vec<u8>,
    units: Vec<u16>,
    tokens: usize,
}

impl Chunk {
    /// How many tokens there are.
    pub(super) fn tokens(&self) -> usize {
        self.tokens
    }

    /// How many units the tokens take.
    pub(super) fn units(&self) -> usize {
        self.units.len()
    }

    /// Adds a text.
    pub(super) fn push(&mut self, tokens: &[u32], Text { count, group }: Text) {
        let start = self.units.len();
        for &token in tokens {
            push_token(&mut self.units, token);
        }
        for number in [(self.units.len() - start) as u64, count, u64::from(group)] {
            push_number(&mut self.heads, number);
        }
        self.tokens += tokens.len();
    }

    /// The texts with their units.
    pub(super) fn texts(&self) -> impl Iterator<Item = (Text, &[u16])> {
        let (mut heads, mut units) = (self.heads.as_slice(), self.units.as_slice());
        std::iter::from_fn(move || {
            if heads.is_empty() {
                return None;
            }
            let [length, count, group] = std::array::from_fn(|_| take_number(&mut heads));
            let own = units.split_off(..length as usize)?;
            Some((Text { count, group: group as u16 }, own))
        })
    }

    /// Gives back what was reserved.
    pub(super) fn shrink(&mut self) {
        self.heads.shrink_to_fit();
        self.units.shrink_to_fit();
    }
}

fn push_token(units: &mut Vec<u16>, token: u32) {
    match u16::try_from(token) {
        Ok(unit) if unit != ESCAPE => units.push(unit),
        _ => units.extend([ESCAPE, (token >> u16::BITS) as u16, token as u16]),
    }
}

/// The first token of some units, and the units behind it.
#[inline]
pub(super) fn split_token(units: &[u16]) -> Option<(u32, &[u16])> {
    match units {
        [ESCAPE, high, low, rest @ ..] => Some((u32::from(*high) << u16::BITS | u32::from(*low), rest)),
        [unit, rest @ ..] => Some((u32::from(*unit), rest)),
        [] => None,
    }
}

/// Whether some units are one token.
#[inline]
pub(super) fn is_one_token(units: &[u16]) -> bool {
    matches!(units, [_] | [ESCAPE, _, _])
}

/// The tokens of some units.
#[inline]
pub(super) fn tokens(mut units: &[u16]) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let (token, rest) = split_token(units)?;
        units = rest;
        Some(token)
    })
}

fn push_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

#[inline]
fn take_number(bytes: &mut &[u8]) -> u64 {
    let (mut number, mut shift) = (0, 0);
    while let Some(&byte) = bytes.split_off_first() {
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
        shift += 7;
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_is_read_in_order() {
        let texts = [
            (vec![0, 1, 255], Text { count: 1, group: 0 }),
            (vec![65_534, 65_535, 65_536, 131_071, 7], Text { count: 127, group: 3 }),
            (vec![u32::MAX - 1, 0x1_0000 * 0xffff], Text { count: u64::MAX, group: u16::MAX }),
            (vec![5; 300], Text { count: 128, group: 128 }),
        ];
        let mut chunk = Chunk::default();
        for (own, text) in &texts {
            chunk.push(own, *text);
        }
        chunk.shrink();
        let read: Vec<_> = chunk.texts().map(|(text, units)| (tokens(units).collect::<Vec<_>>(), text)).collect();
        assert_eq!(read, texts);
        assert_eq!(chunk.tokens(), 3 + 5 + 2 + 300);
    }
}
