//! The words inside string literals.

use crate::lexer::{TokenKind, continues_identifier};

/// Calls `each` with every word in the string literal `literal`, a maximal run of identifier bytes between its quotes,
/// and with every chain of words with single dots between them (`mhlo.add`), from its first word to its last. An escape
/// (a backslash and the byte after it) separates words, except in raw strings, which have none.
pub(super) fn words(literal: &[u8], kind: TokenKind, mut each: impl FnMut(&[u8])) {
    let raw = kind == TokenKind::RawString;
    let content = if raw { raw_content(literal) } else { after(literal, b'"') };
    let (mut at, mut chain) = (0, 0);
    while let Some(&byte) = content.get(at) {
        let start = at;
        while content.get(at).is_some_and(|&byte| continues_identifier(byte)) {
            at += 1;
        }
        match byte {
            _ if at > start => {
                each(&content[start..at]);
                if content.get(at) == Some(&b'.') && content.get(at + 1).is_some_and(|&byte| continues_identifier(byte))
                {
                    at += 1;
                    continue;
                }
                if chain < start {
                    each(&content[chain..at]);
                }
            }
            b'"' if !raw => return,
            b'\\' if !raw => at += 2,
            _ => at += 1,
        }
        chain = at;
    }
}

/// What follows the first `byte`.
fn after(literal: &[u8], byte: u8) -> &[u8] {
    memchr::memchr(byte, literal).map_or(&[], |at| &literal[at + 1..])
}

/// What is between the parentheses; of a literal that is not closed, what follows the first.
fn raw_content(literal: &[u8]) -> &[u8] {
    let content = after(literal, b'(');
    let opening = after(&literal[..literal.len() - content.len()], b'"');
    let delimiter = opening.strip_suffix(b"(").unwrap_or(opening);
    let closing = memchr::memrchr(b'"', content).map(|at| &content[..at]);
    closing.and_then(|text| text.strip_suffix(delimiter)?.strip_suffix(b")")).unwrap_or(content)
}

#[cfg(test)]
mod tests {
    use super::words;
    use crate::lexer::TokenKind::{RawString, String};

    #[test]
    fn words_of_strings_are_runs_of_identifier_bytes_between_the_quotes() {
        let table: [(&str, _, &[&str]); 15] = [
            (r#""SELECT * FROM t_1""#, String, &["SELECT", "FROM", "t_1"]),
            (r#"u8"\nSELECT\tx"_sql"#, String, &["SELECT", "x"]),
            (r#""{$match: \"a\"}""#, String, &["$match", "a"]),
            (r#""""#, String, &[]),
            (r#""a\"#, String, &["a"]),
            (r#""a"#, String, &["a"]),
            (r#""a\"b"#, String, &["a", "b"]),
            (r#""a\\" "#, String, &["a"]),
            (r#"R"x(\nSELECT "a" )y")x"_s"#, RawString, &["nSELECT", "a", "y"]),
            (r#"R"()""#, RawString, &[]),
            (r#"LR"(a )"#, RawString, &["a"]),
            (r#"R"(a ) " b"#, RawString, &["a", "b"]),
            (r#""%0 = mhlo.add a.b.c""#, String, &["0", "mhlo", "add", "mhlo.add", "a", "b", "c", "a.b.c"]),
            (r#""a..b .c d. e.\n.f""#, String, &["a", "b", "c", "d", "e", "f"]),
            (r#"R"(a.b\nc.)""#, RawString, &["a", "b", "a.b", "nc"]),
        ];
        for (literal, kind, expected) in table {
            let mut found = Vec::new();
            words(literal.as_bytes(), kind, |word| found.push(std::string::String::from_utf8_lossy(word).into_owned()));
            assert_eq!(found, expected, "{literal}");
        }
    }
}
