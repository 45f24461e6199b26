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
    /// Sets `uses` to what the words are that start at `start` and end at `ends`; called for all words in order.
    fn uses(&mut self, start: usize, ends: &[u32], uses: &mut [Use]);

    /// The number of the name that a word is.
    fn number(&mut self, word: &[u8]) -> u32;

    /// Adds what the current document has of the name of that number: `hits`, of which so many are `leading`.
    fn add(&mut self, number: u32, hits: u32, leading: u32);
}

/// Of words that are only counted none is a name.
pub(super) struct Nameless;

impl Naming for Nameless {
    #[inline]
    fn uses(&mut self, _: usize, _: &[u32], uses: &mut [Use]) {
        uses.fill(Use::Word);
    }

    fn number(&mut self, _: &[u8]) -> u32 {
        0
    }

    fn add(&mut self, _: u32, _: u32, _: u32) {}
}
