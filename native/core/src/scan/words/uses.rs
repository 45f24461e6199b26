//! What words are used as, and what becomes of those that are names.

/// What a word of a document is.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::scan) enum Use {
    /// A word.
    #[default]
    Word,
    /// A word that is an identifier or keyword in code, with or without one byte in front.
    Name,
    /// The same, leading a chain `a::b`.
    Leading,
}

/// What finds the names among words, and counts them.
pub(in crate::scan) trait Naming {
    /// Whether the word that starts at `start` may be a name.
    fn may_be_name(&self, start: usize) -> bool;

    /// What a word is that may be a name; called for all of these in order.
    fn use_of(&mut self, start: usize, end: usize) -> Use;

    /// Asks for where the number of the name is that a word is.
    fn prefetch(&self, word: &[u8]);

    /// The number of the name that a word is.
    fn number(&mut self, word: &[u8]) -> u32;

    /// Adds what the current document has of the name of that number: `hits`, of which so many are `leading`.
    fn add(&mut self, number: u32, hits: u32, leading: u32);
}

/// Of words that are only counted none is a name.
pub(super) struct Nameless;

impl Naming for Nameless {
    #[inline]
    fn may_be_name(&self, _: usize) -> bool {
        false
    }

    fn use_of(&mut self, _: usize, _: usize) -> Use {
        Use::Word
    }

    fn prefetch(&self, _: &[u8]) {}

    fn number(&mut self, _: &[u8]) -> u32 {
        0
    }

    fn add(&mut self, _: u32, _: u32, _: u32) {}
}
