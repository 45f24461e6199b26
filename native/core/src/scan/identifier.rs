//! What an identifier looks like: its naming style and the components that make it up.

/// The naming style of an identifier that is not a keyword. Each identifier has exactly one, the first that fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// `__x`: reserved for the implementation.
    DoubleUnderscore,
    /// `m_x`: a member by prefix.
    MemberPrefix,
    /// `_x`.
    LeadingUnderscore,
    /// `x_`: a member by suffix.
    TrailingUnderscore,
    /// `T`: one capital letter.
    SingleCapital,
    /// `BLOCK_SIZE`: capitals, digits, underscores.
    ScreamingCase,
    /// `buffer`: one word of small letters and digits.
    SingleWord,
    /// `read_all`: small letters, digits, underscores.
    SnakeCase,
    /// `readAll`.
    CamelCase,
    /// `ReadAll`.
    PascalCase,
    /// Anything else: `Read_All`, `$x`, identifiers with other bytes than ASCII.
    Other,
}

impl Style {
    /// Every style.
    pub(super) const ALL: [Style; 11] = [
        Style::DoubleUnderscore,
        Style::MemberPrefix,
        Style::LeadingUnderscore,
        Style::TrailingUnderscore,
        Style::SingleCapital,
        Style::ScreamingCase,
        Style::SingleWord,
        Style::SnakeCase,
        Style::CamelCase,
        Style::PascalCase,
        Style::Other,
    ];

    /// The name in the statistics.
    pub(super) fn name(self) -> &'static str {
        match self {
            Style::DoubleUnderscore => "double_underscore",
            Style::MemberPrefix => "member_prefix",
            Style::LeadingUnderscore => "leading_underscore",
            Style::TrailingUnderscore => "trailing_underscore",
            Style::SingleCapital => "single_capital",
            Style::ScreamingCase => "screaming_case",
            Style::SingleWord => "single_word",
            Style::SnakeCase => "snake_case",
            Style::CamelCase => "camel_case",
            Style::PascalCase => "pascal_case",
            Style::Other => "other",
        }
    }

    /// The style of `identifier`.
    pub(super) fn of(identifier: &[u8]) -> Self {
        let any = |matches: fn(&u8) -> bool| identifier.iter().any(matches);
        let (upper, lower) = (any(u8::is_ascii_uppercase), any(u8::is_ascii_lowercase));
        let underscore = identifier.contains(&b'_');
        match identifier {
            _ if any(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_') => Style::Other,
            [b'_', b'_', ..] => Style::DoubleUnderscore,
            [b'm', b'_', _, ..] => Style::MemberPrefix,
            [b'_', ..] => Style::LeadingUnderscore,
            [.., b'_'] => Style::TrailingUnderscore,
            [_] if upper => Style::SingleCapital,
            _ if upper && !lower => Style::ScreamingCase,
            _ if !upper && !underscore => Style::SingleWord,
            _ if !upper => Style::SnakeCase,
            [b'a'..=b'z', ..] if !underscore => Style::CamelCase,
            [b'A'..=b'Z', ..] if !underscore => Style::PascalCase,
            _ => Style::Other,
        }
    }
}

/// Calls `each` with the components of `identifier` in small letters.
///
/// A component is a run of letters (bytes from 0x80 on are small letters), cut where a small letter is followed by a
/// capital (`read|All`) and before the last capital of a run that a small letter follows (`HTTP|Server`). Underscores,
/// dollars and digits separate components and belong to none. `buffer` is scratch space.
pub(super) fn components(identifier: &[u8], buffer: &mut Vec<u8>, mut each: impl FnMut(&[u8])) {
    buffer.clear();
    for (at, &byte) in identifier.iter().enumerate() {
        let letter = byte.is_ascii_alphabetic() || byte >= 0x80;
        if (!letter || begins_hump(identifier, at)) && !buffer.is_empty() {
            each(buffer);
            buffer.clear();
        }
        if letter {
            buffer.push(byte.to_ascii_lowercase());
        }
    }
    if !buffer.is_empty() {
        each(buffer);
    }
}

/// Where the families of `identifier` end: before its second and before its third component, if it has them.
///
/// Components are those of [`components`]; what separates two of them belongs to the family.
pub(super) fn family_ends(identifier: &[u8]) -> [Option<usize>; 2] {
    let (mut ends, mut found, mut in_component) = ([None; 2], 0, false);
    for (at, &byte) in identifier.iter().enumerate() {
        let letter = byte.is_ascii_alphabetic() || byte >= 0x80;
        if letter && (!in_component || begins_hump(identifier, at)) {
            if found > 0 {
                ends[found - 1] = Some(at);
            }
            found += 1;
            if found > ends.len() {
                break;
            }
        }
        in_component = letter;
    }
    ends
}

fn begins_hump(identifier: &[u8], at: usize) -> bool {
    let small = |at: usize| identifier.get(at).is_some_and(|byte| byte.is_ascii_lowercase() || *byte >= 0x80);
    identifier[at].is_ascii_uppercase() && at > 0 && (small(at - 1) || small(at + 1))
}

#[cfg(test)]
mod tests {
    use super::{Style, components, family_ends};

    #[test]
    fn components_are_cut_at_underscores_humps_acronyms_and_digits() {
        let table: [(&str, &[&str]); 14] = [
            ("read_all", &["read", "all"]),
            ("readAll", &["read", "all"]),
            ("ReadAll", &["read", "all"]),
            ("READ_ALL", &["read", "all"]),
            ("HTTPServer", &["http", "server"]),
            ("parseHTTP", &["parse", "http"]),
            ("getXMLHttpRequest", &["get", "xml", "http", "request"]),
            ("float32x4_t", &["float", "x", "t"]),
            ("UTF8Decoder", &["utf", "decoder"]),
            ("vec3D", &["vec", "d"]),
            ("__m128i", &["m", "i"]),
            ("$match", &["match"]),
            ("A", &["a"]),
            ("_1", &[]),
        ];
        for (identifier, expected) in table {
            let mut found = Vec::new();
            components(identifier.as_bytes(), &mut Vec::new(), |it| {
                found.push(String::from_utf8_lossy(it).into_owned());
            });
            assert_eq!(found, expected, "{identifier}");
        }
    }

    #[test]
    fn families_end_before_the_second_and_the_third_component() {
        let table: [(&str, [Option<&str>; 2]); 11] = [
            ("cudnnBackendCreateDescriptor", [Some("cudnn"), Some("cudnnBackend")]),
            ("cudnnCreate", [Some("cudnn"), None]),
            ("CUDNN_BACKEND_TENSOR_MODE", [Some("CUDNN_"), Some("CUDNN_BACKEND_")]),
            ("nng_http_client", [Some("nng_"), Some("nng_http_")]),
            ("HTTPServer", [Some("HTTP"), None]),
            ("H5Tcreate", [Some("H5"), None]),
            ("__foo_bar_baz", [Some("__foo_"), Some("__foo_bar_")]),
            ("buffer", [None, None]),
            ("buffer_", [None, None]),
            ("_1", [None, None]),
            ("", [None, None]),
        ];
        for (identifier, expected) in table {
            assert_eq!(family_ends(identifier.as_bytes()).map(|end| end.map(|end| &identifier[..end])), expected);
        }
    }

    #[test]
    fn each_identifier_has_one_style() {
        let table = [
            ("__global__", Style::DoubleUnderscore),
            ("m_size", Style::MemberPrefix),
            ("m_", Style::TrailingUnderscore),
            ("_size", Style::LeadingUnderscore),
            ("_", Style::LeadingUnderscore),
            ("size_", Style::TrailingUnderscore),
            ("T", Style::SingleCapital),
            ("T1", Style::ScreamingCase),
            ("BLOCK_SIZE", Style::ScreamingCase),
            ("EOF", Style::ScreamingCase),
            ("x", Style::SingleWord),
            ("vec3", Style::SingleWord),
            ("read_all", Style::SnakeCase),
            ("readAll", Style::CamelCase),
            ("mSize", Style::CamelCase),
            ("ReadAll", Style::PascalCase),
            ("Read_All", Style::Other),
            ("read_All", Style::Other),
            ("$x", Style::Other),
            ("na\u{ef}ve", Style::Other),
        ];
        for (identifier, style) in table {
            assert_eq!(Style::of(identifier.as_bytes()), style, "{identifier}");
        }
        assert!(Style::ALL.iter().enumerate().all(|(at, &style)| style as usize == at));
    }
}
