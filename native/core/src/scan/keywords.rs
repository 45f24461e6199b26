//! The keywords of C++26, the alternative operators among them. Contextual ones (`final`, `override`, `import`,
//! `module`, `pre`, `post`) are identifiers.

/// Whether `name` is a keyword.
#[inline]
pub(super) fn is_keyword(name: &[u8]) -> bool {
    let possible = (2..=LONGEST).contains(&name.len()) && name[0].is_ascii_lowercase();
    possible && KEYWORDS.binary_search_by(|keyword| keyword.as_bytes().cmp(name)).is_ok()
}

/// The length of `reinterpret_cast`.
const LONGEST: usize = 16;

/// Every keyword, in byte order. Source: [lex.key] and [lex.digraph].
pub(super) const KEYWORDS: [&str; 93] = [
    "alignas",
    "alignof",
    "and",
    "and_eq",
    "asm",
    "auto",
    "bitand",
    "bitor",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "char16_t",
    "char32_t",
    "char8_t",
    "class",
    "co_await",
    "co_return",
    "co_yield",
    "compl",
    "concept",
    "const",
    "const_cast",
    "consteval",
    "constexpr",
    "constinit",
    "continue",
    "contract_assert",
    "decltype",
    "default",
    "delete",
    "do",
    "double",
    "dynamic_cast",
    "else",
    "enum",
    "explicit",
    "export",
    "extern",
    "false",
    "float",
    "for",
    "friend",
    "goto",
    "if",
    "inline",
    "int",
    "long",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "not_eq",
    "nullptr",
    "operator",
    "or",
    "or_eq",
    "private",
    "protected",
    "public",
    "register",
    "reinterpret_cast",
    "requires",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "static_assert",
    "static_cast",
    "struct",
    "switch",
    "template",
    "this",
    "thread_local",
    "throw",
    "true",
    "try",
    "typedef",
    "typeid",
    "typename",
    "union",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "wchar_t",
    "while",
    "xor",
    "xor_eq",
];

#[cfg(test)]
mod tests {
    use super::{KEYWORDS, LONGEST, is_keyword};

    #[test]
    fn every_keyword_is_one_and_nothing_else() {
        assert!(KEYWORDS.is_sorted());
        assert_eq!(KEYWORDS.iter().map(|keyword| keyword.len()).max(), Some(LONGEST));
        assert!(KEYWORDS.iter().all(|keyword| is_keyword(keyword.as_bytes())));
        for name in ["", "i", "If", "iff", "override", "reinterpret_castx", "zzz"] {
            assert!(!is_keyword(name.as_bytes()), "{name}");
        }
    }
}
