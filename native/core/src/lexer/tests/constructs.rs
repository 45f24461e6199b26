//! Every construct that the lexer must know, as rows of a table: its name, a source, and that source's tokens.

use super::super::TokenKind::{self, *};
use super::{check, tokens};

type Row = (&'static str, &'static str, &'static [(TokenKind, &'static str)]);

const LITERALS: &[Row] = &[
    ("line splice in an identifier", "in\\\nt x", &[(Identifier, "int"), (Identifier, "x")]),
    ("line splice in a keyword, with spaces and CRLF", "in\\ \t\r\nt", &[(Identifier, "int")]),
    ("line splice in a string", "\"a\\\nb\"", &[(String, "\"ab\"")]),
    ("line splice in an escape", "\"\\\\\nn\"", &[(String, "\"\\n\"")]),
    ("line splice in a number", "1'0\\\n00", &[(Number, "1'000")]),
    ("line splice in a punctuator", "a -\\\n> b", &[(Identifier, "a"), (Punctuator, "->"), (Identifier, "b")]),
    ("line splice in a line comment", "// a\\\nb\nc", &[(LineComment, "// ab"), (Identifier, "c")]),
    ("line splice in a block comment's end", "/* a *\\\n/b", &[(BlockComment, "/* a */"), (Identifier, "b")]),
    ("line splice before a token", "a \\\nb", &[(Identifier, "a"), (Identifier, "b")]),
    ("line splice in a raw string is text", "R\"(a\\\nb)\"", &[(RawString, "R\"(a\\\nb)\"")]),
    ("raw string", "R\"(a \"b\" \\ // c)\"", &[(RawString, "R\"(a \"b\" \\ // c)\"")]),
    ("raw string over lines", "R\"(a\n#if\n)\"x", &[(RawString, "R\"(a\n#if\n)\""), (Identifier, "x")]),
    ("raw string with a delimiter", "R\"sql()\" )q\" )sql\"", &[(RawString, "R\"sql()\" )q\" )sql\"")]),
    ("raw string with an odd delimiter", "R\"-<#;'>()-<#;'>\"", &[(RawString, "R\"-<#;'>()-<#;'>\"")]),
    (
        "raw string with a delimiter of 16",
        "R\"0123456789abcdef()0123456789abcdef\"",
        &[(RawString, "R\"0123456789abcdef()0123456789abcdef\"")],
    ),
    (
        "raw string with quotes in its delimiter",
        "R\"\"\"\"(a)\"\"\" //)\"\"\"\"b",
        &[(RawString, "R\"\"\"\"(a)\"\"\" //)\"\"\"\""), (Identifier, "b")],
    ),
    ("no raw string: an empty string", "R\"\" \"(a)\"", &[(String, "R\"\""), (String, "\"(a)\"")]),
    (
        "no raw string: a delimiter of 17",
        "R\"0123456789abcdefg(\"a",
        &[(String, "R\"0123456789abcdefg(\""), (Identifier, "a")],
    ),
    ("prefix u8", "u8\"a\" u8'a'", &[(String, "u8\"a\""), (Char, "u8'a'")]),
    ("prefix u", "u\"a\" u'a'", &[(String, "u\"a\""), (Char, "u'a'")]),
    ("prefix U", "U\"a\" U'a'", &[(String, "U\"a\""), (Char, "U'a'")]),
    ("prefix L", "L\"a\" L'a'", &[(String, "L\"a\""), (Char, "L'a'")]),
    ("prefix u8R", "u8R\"x(a)x\"", &[(RawString, "u8R\"x(a)x\"")]),
    ("prefix uR", "uR\"x(a)x\"", &[(RawString, "uR\"x(a)x\"")]),
    ("prefix UR", "UR\"x(a)x\"", &[(RawString, "UR\"x(a)x\"")]),
    ("prefix LR", "LR\"x(a)x\"", &[(RawString, "LR\"x(a)x\"")]),
    ("no prefix: Ru8", "Ru8\"(a)\"", &[(Identifier, "Ru8"), (String, "\"(a)\"")]),
    ("no prefix: l", "l\"a\"", &[(Identifier, "l"), (String, "\"a\"")]),
    (
        "digit separators",
        "1'000'000 0xdead'beef 0b1'0 1'0.0'1e1'0",
        &[(Number, "1'000'000"), (Number, "0xdead'beef"), (Number, "0b1'0"), (Number, "1'0.0'1e1'0")],
    ),
    (
        "no digit separator: a character",
        "f(1,'0')",
        &[(Identifier, "f"), (Punctuator, "("), (Number, "1"), (Punctuator, ","), (Char, "'0'"), (Punctuator, ")")],
    ),
    (
        "user-defined literal of a number",
        "12_km 1.5_deg 0x1F_u",
        &[(Number, "12_km"), (Number, "1.5_deg"), (Number, "0x1F_u")],
    ),
    (
        "user-defined literal of a string",
        "\"a\"_s u8\"a\"sv R\"(a)\"_re",
        &[(String, "\"a\"_s"), (String, "u8\"a\"sv"), (RawString, "R\"(a)\"_re")],
    ),
    ("user-defined literal of a character", "'a'_c", &[(Char, "'a'_c")]),
    ("user-defined literal's operator", "operator\"\"_km", &[(Identifier, "operator"), (String, "\"\"_km")]),
    (
        "no user-defined literal: a macro",
        "\"%\"PRIu64\"x\"",
        &[(String, "\"%\""), (Identifier, "PRIu64"), (String, "\"x\"")],
    ),
];

const TOKENS: &[Row] = &[
    (
        "alternative operators",
        "a and_eq not b bitor compl c",
        &[
            (Identifier, "a"),
            (Identifier, "and_eq"),
            (Identifier, "not"),
            (Identifier, "b"),
            (Identifier, "bitor"),
            (Identifier, "compl"),
            (Identifier, "c"),
        ],
    ),
    (
        "alternative punctuators",
        "<: :> <% %> %: %:%:",
        &[
            (Punctuator, "<:"),
            (Punctuator, ":>"),
            (Punctuator, "<%"),
            (Punctuator, "%>"),
            (Punctuator, "%:"),
            (Punctuator, "%:%:"),
        ],
    ),
    (
        "alternative punctuator that gives way",
        "a<::b>",
        &[(Identifier, "a"), (Punctuator, "<"), (Punctuator, "::"), (Identifier, "b"), (Punctuator, ">")],
    ),
    (
        "attribute [[...]]",
        "[[gnu::hot, deprecated(\"a\")]]",
        &[
            (Punctuator, "["),
            (Punctuator, "["),
            (Identifier, "gnu"),
            (Punctuator, "::"),
            (Identifier, "hot"),
            (Punctuator, ","),
            (Identifier, "deprecated"),
            (Punctuator, "("),
            (String, "\"a\""),
            (Punctuator, ")"),
            (Punctuator, "]"),
            (Punctuator, "]"),
        ],
    ),
    (
        "attribute <:<:...:>:>",
        "<:<:a:>:>",
        &[(Punctuator, "<:"), (Punctuator, "<:"), (Identifier, "a"), (Punctuator, ":>"), (Punctuator, ":>")],
    ),
    (
        "attribute __attribute__",
        "__attribute__((aligned(8)))",
        &[
            (Identifier, "__attribute__"),
            (Punctuator, "("),
            (Punctuator, "("),
            (Identifier, "aligned"),
            (Punctuator, "("),
            (Number, "8"),
            (Punctuator, ")"),
            (Punctuator, ")"),
            (Punctuator, ")"),
        ],
    ),
    (
        "attribute __declspec",
        "__declspec(dllexport)",
        &[(Identifier, "__declspec"), (Punctuator, "("), (Identifier, "dllexport"), (Punctuator, ")")],
    ),
    (
        "CUDA launch",
        "k<T><<<g, b, 0>>>(x);",
        &[
            (Identifier, "k"),
            (Punctuator, "<"),
            (Identifier, "T"),
            (Punctuator, ">"),
            (Punctuator, "<<<"),
            (Identifier, "g"),
            (Punctuator, ","),
            (Identifier, "b"),
            (Punctuator, ","),
            (Number, "0"),
            (Punctuator, ">>>"),
            (Punctuator, "("),
            (Identifier, "x"),
            (Punctuator, ")"),
            (Punctuator, ";"),
        ],
    ),
    (
        "SQL in a string",
        "q(\"SELECT 'a' -- \\\"b\\\" /* $1\");",
        &[
            (Identifier, "q"),
            (Punctuator, "("),
            (String, "\"SELECT 'a' -- \\\"b\\\" /* $1\""),
            (Punctuator, ")"),
            (Punctuator, ";"),
        ],
    ),
    (
        "SQL in strings one after the other",
        "\"SELECT a \"\n\"FROM b\"",
        &[(String, "\"SELECT a \""), (String, "\"FROM b\"")],
    ),
    (
        "SQL in a raw string",
        "R\"sql(\nSELECT \"a\" -- it's\n)sql\"",
        &[(RawString, "R\"sql(\nSELECT \"a\" -- it's\n)sql\"")],
    ),
    ("$name", "$match a$b $1", &[(Identifier, "$match"), (Identifier, "a$b"), (Identifier, "$1")]),
    ("$name in a string", "\"$match\"", &[(String, "\"$match\"")]),
];

const DIRECTIVES: &[Row] = &[
    (
        "conditional #if",
        "#if defined(A) && B > 1'0\n",
        &[
            (Punctuator, "#"),
            (Identifier, "if"),
            (Identifier, "defined"),
            (Punctuator, "("),
            (Identifier, "A"),
            (Punctuator, ")"),
            (Punctuator, "&&"),
            (Identifier, "B"),
            (Punctuator, ">"),
            (Number, "1'0"),
        ],
    ),
    (
        "conditionals by definition",
        "#ifdef A\n#elifdef B\n#elifndef C\n#else\n#endif\n#ifndef D\n",
        &[
            (Punctuator, "#"),
            (Identifier, "ifdef"),
            (Identifier, "A"),
            (Punctuator, "#"),
            (Identifier, "elifdef"),
            (Identifier, "B"),
            (Punctuator, "#"),
            (Identifier, "elifndef"),
            (Identifier, "C"),
            (Punctuator, "#"),
            (Identifier, "else"),
            (Punctuator, "#"),
            (Identifier, "endif"),
            (Punctuator, "#"),
            (Identifier, "ifndef"),
            (Identifier, "D"),
        ],
    ),
    (
        "__has_include <...>",
        "#if __has_include(<a/b>)\n",
        &[
            (Punctuator, "#"),
            (Identifier, "if"),
            (Identifier, "__has_include"),
            (Punctuator, "("),
            (HeaderName, "<a/b>"),
            (Punctuator, ")"),
        ],
    ),
    (
        "__has_include \"...\"",
        "#elif __has_include ( \"a\\b\" )\n",
        &[
            (Punctuator, "#"),
            (Identifier, "elif"),
            (Identifier, "__has_include"),
            (Punctuator, "("),
            (HeaderName, "\"a\\b\""),
            (Punctuator, ")"),
        ],
    ),
];

#[test]
fn every_construct_is_cut_as_its_row_says() {
    for (construct, source, expected) in [LITERALS, TOKENS, DIRECTIVES].into_iter().flatten() {
        println!("{construct}");
        check(source, expected);
    }
}

#[test]
fn every_token_of_a_conditional_is_in_its_directive() {
    for (construct, source, _) in DIRECTIVES {
        for line in source.split_inclusive('\n') {
            let outside: Vec<_> = tokens(line.as_bytes()).into_iter().filter(|token| !token.in_directive).collect();
            assert!(matches!(outside[..], [token] if token.kind == Newline), "{construct}: {outside:?}");
        }
    }
}

#[test]
fn a_skipped_region_is_lexed_as_any_text() {
    let source = "#if 0\nint a; // b\n\"c\"\n#else\nd\n#endif\n";
    let skipped = tokens(source.as_bytes());
    let begin = "#if 0\n".len();
    let text = tokens(&source.as_bytes()[begin..]);
    let shifted = text.iter().map(|token| (token.kind, token.start + begin, token.in_directive));
    let after = skipped.iter().filter(|token| token.start >= begin);
    assert!(after.map(|token| (token.kind, token.start, token.in_directive)).eq(shifted));
}
