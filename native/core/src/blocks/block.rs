//! The masks of 64 bytes, one for each class.

/// Bytes in a block.
pub(crate) const BYTES: usize = 64;

/// The masks of 64 bytes: bit `i` is for byte `i`. A byte after the end of the text is in no class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Block {
    /// ASCII letters, digits and the underscore.
    pub(crate) word: u64,
    /// ASCII control bytes and punctuation, the backslash and what C calls white space excluded.
    pub(crate) mark: u64,
    /// `\r` and `\n`.
    pub(crate) newline: u64,
    /// Space and tab.
    pub(crate) blank: u64,
    pub(crate) tab: u64,
    /// Space, tab, newlines, vertical tab and form feed.
    pub(crate) white: u64,
    /// Bytes at which plain code can end for a lexer: quotes, `#`, `$`, `\`, bytes from 0x80, a `/` or `%` that begins
    /// a comment or directive, and a `:` before another one.
    pub(crate) event: u64,
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
