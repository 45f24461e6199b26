//! The kinds of tokens.

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TokenKind {
    /// Spaces, tabs, vertical tabs, form feeds and line splices between tokens.
    Whitespace,
    /// One line ending: `\n`, `\r\n` or a lone `\r`.
    Newline,
    /// `//` to the end of the logical line, without the line ending.
    LineComment,
    /// `/*` to `*/`.
    BlockComment,
    /// An identifier or keyword; the alternative operators (`and`) and directive names too.
    Identifier,
    /// A preprocessing number: `0x1p-3`, `1'000`, `12_km`.
    Number,
    /// A string literal with its prefix and suffix.
    String,
    /// A raw string literal with its prefix and suffix.
    RawString,
    /// A character literal with its prefix and suffix.
    Char,
    /// `<...>` or `"..."` after `#include`, `#include_next`, `#import`, `#embed`, or in a directive's `__has_include(`.
    HeaderName,
    /// An operator or punctuator, digraphs included.
    Punctuator,
    /// A byte that begins nothing: a stray backslash, `@`, a backtick, a control byte; or the byte order mark.
    Other,
}

impl TokenKind {
    /// Every kind, in the order of their declaration.
    pub const ALL: [TokenKind; 12] = [
        Self::Whitespace,
        Self::Newline,
        Self::LineComment,
        Self::BlockComment,
        Self::Identifier,
        Self::Number,
        Self::String,
        Self::RawString,
        Self::Char,
        Self::HeaderName,
        Self::Punctuator,
        Self::Other,
    ];

    /// Its name in a [`token_table`](super::token_table).
    pub fn name(self) -> &'static str {
        match self {
            Self::Whitespace => "whitespace",
            Self::Newline => "newline",
            Self::LineComment => "line_comment",
            Self::BlockComment => "block_comment",
            Self::Identifier => "identifier",
            Self::Number => "number",
            Self::String => "string",
            Self::RawString => "raw_string",
            Self::Char => "char",
            Self::HeaderName => "header_name",
            Self::Punctuator => "punctuator",
            Self::Other => "other",
        }
    }

    /// Whether it is spaces, a line ending or a comment: nothing that the grammar sees.
    #[inline]
    pub fn is_space(self) -> bool {
        matches!(self, TokenKind::Whitespace | TokenKind::Newline | TokenKind::LineComment | TokenKind::BlockComment)
    }
}
