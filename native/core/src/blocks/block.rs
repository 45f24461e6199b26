//! The masks of 64 bytes, one for each class.

/// Bytes in a block.
pub(super) const BYTES: usize = 64;

/// The masks of 64 bytes: bit `i` is for byte `i`. A byte after the end of the text is in no class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Block {
    /// ASCII letters, digits and the underscore.
    pub(super) word: u64,
    /// ASCII control bytes and punctuation, the backslash and what C calls white space excluded.
    pub(super) mark: u64,
    /// `\r` and `\n`.
    pub(super) newline: u64,
    /// Space and tab.
    pub(super) blank: u64,
    /// Bytes at which plain code can end for a lexer: quotes, `#`, `$`, `\`, bytes from 0x80, a `/` or `%` that begins
    /// a comment or directive, and a `:` before another one.
    pub(super) event: u64,
}

/// A class of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    Word,
    Mark,
    Newline,
    Blank,
    Event,
}

impl Block {
    #[inline]
    pub(super) fn of(&self, class: Class) -> u64 {
        match class {
            Class::Word => self.word,
            Class::Mark => self.mark,
            Class::Newline => self.newline,
            Class::Blank => self.blank,
            Class::Event => self.event,
        }
    }
}

/// Where each byte of a block is one of a few.
#[derive(Clone, Copy)]
pub(super) struct Singles {
    pub(super) slash: u64,
    pub(super) star: u64,
    pub(super) percent: u64,
    pub(super) colon: u64,
    pub(super) backslash: u64,
}

impl Singles {
    /// Each `/`, `%` and `:` that has a partner behind it; `next` is the first byte of the following block.
    #[inline]
    pub(super) fn with_partners(self, next: u8) -> u64 {
        let Self { slash, star, percent, colon, backslash } = self;
        let behind = |mask: u64, matches: bool| (mask >> 1) | (u64::from(matches) << 63);
        (slash & behind(slash | star | backslash, matches!(next, b'/' | b'*' | b'\\')))
            | (percent & behind(colon | backslash, matches!(next, b':' | b'\\')))
            | (colon & behind(colon, next == b':'))
    }
}
