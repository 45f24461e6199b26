//! Tests of every form of token by rule, and properties over any bytes; `constructs` has a table by construct.

mod constructs;

use super::TokenKind::{self, *};
use super::{Lexer, Token};

fn tokens(source: &[u8]) -> Vec<Token> {
    let tokens: Vec<_> = Lexer::new(source).collect();
    let mut at = 0;
    for token in &tokens {
        assert_eq!(token.start, at, "a gap in {:?}", source.escape_ascii().to_string());
        assert!(token.end > token.start, "an empty token in {:?}", source.escape_ascii().to_string());
        at = token.end;
    }
    assert_eq!(at, source.len(), "the end of {:?}", source.escape_ascii().to_string());
    tokens
}

/// Kind and text of every token but spaces and line endings.
fn lex(source: &str) -> Vec<(TokenKind, std::string::String)> {
    tokens(source.as_bytes())
        .into_iter()
        .filter(|token| !matches!(token.kind, Whitespace | Newline))
        .map(|token| (token.kind, std::string::String::from_utf8_lossy(&token.text(source.as_bytes())).into_owned()))
        .collect()
}

#[track_caller]
fn check(source: &str, expected: &[(TokenKind, &str)]) {
    let expected: Vec<_> = expected.iter().map(|&(kind, text)| (kind, text.to_owned())).collect();
    assert_eq!(lex(source), expected, "{source:?}");
}

/// Each source is one token as a whole.
#[track_caller]
fn check_whole(kind: TokenKind, sources: &[&str]) {
    for source in sources {
        check(source, &[(kind, source)]);
    }
}

#[test]
fn line_comments_end_with_their_logical_line() {
    check("a // b\nc", &[(Identifier, "a"), (LineComment, "// b"), (Identifier, "c")]);
    check("//", &[(LineComment, "//")]);
    check("// b\r\nc", &[(LineComment, "// b"), (Identifier, "c")]);
    check("// b\rc", &[(LineComment, "// b"), (Identifier, "c")]);
    check("// b\\\nc\nd", &[(LineComment, "// bc"), (Identifier, "d")]);
    check("// b\\ \t\r\nc\\\n\nd", &[(LineComment, "// bc"), (Identifier, "d")]);
    check("/\\\n/ b\nc", &[(LineComment, "// b"), (Identifier, "c")]);
    check("// b \\x\nc", &[(LineComment, "// b \\x"), (Identifier, "c")]);
    check("// b /* c\nd", &[(LineComment, "// b /* c"), (Identifier, "d")]);
}

#[test]
fn block_comments_end_at_the_first_star_slash() {
    check("a/* // \n * b\n */c", &[(Identifier, "a"), (BlockComment, "/* // \n * b\n */"), (Identifier, "c")]);
    check_whole(BlockComment, &["/**/", "/***/", "/*/*/", "/* / */", "/* \" ' */"]);
    check("/*/ a", &[(BlockComment, "/*/ a")]);
    check("/*\\\n/*/a", &[(BlockComment, "/*/*/"), (Identifier, "a")]);
    check("/* a *\\\r\n\\ \n/b", &[(BlockComment, "/* a */"), (Identifier, "b")]);
    check("/\\\n* a */b", &[(BlockComment, "/* a */"), (Identifier, "b")]);
    check("/* a \\\n b */", &[(BlockComment, "/* a  b */")]);
    check("/* a\n/ */b", &[(BlockComment, "/* a\n/ */"), (Identifier, "b")]);
}

#[test]
fn strings_and_characters_hold_their_escapes() {
    check_whole(String, &[r#""""#, r#""a\"b""#, r#""\\""#, r#""a // b /* c""#, r#""it's""#, r#""\x41\u00e9""#]);
    check_whole(Char, &["'a'", r"'\''", r"'\\'", "'\"'", "'abcd'", "''"]);
    check("\"a\\\nb\"c", &[(String, "\"ab\""), (Identifier, "c")]);
    check("\"a\\\\\n\nb\"", &[(String, "\"a\\"), (Identifier, "b"), (String, "\"")]);
    check("\"a\\\\\r\n\"b\"", &[(String, "\"a\\\"b\"")]);
}

#[test]
fn unterminated_literals_end_before_the_line_ending() {
    check("\"abc\nd", &[(String, "\"abc"), (Identifier, "d")]);
    check("'a\r\nd", &[(Char, "'a"), (Identifier, "d")]);
    check(
        "#error don't\nd",
        &[(Punctuator, "#"), (Identifier, "error"), (Identifier, "don"), (Char, "'t"), (Identifier, "d")],
    );
    check_whole(String, &["\"", "\"\\", "\"a\\\"", "u8\"a"]);
    check_whole(RawString, &["R\"(", "R\"x()\"", "R\"x(\n\")x"]);
    check_whole(BlockComment, &["/*", "/* a *", "/*/"]);
}

#[test]
fn literal_prefixes_belong_to_the_literal() {
    check_whole(String, &["u8\"a\"", "u\"a\"", "U\"a\"", "L\"a\""]);
    check_whole(Char, &["u8'a'", "u'a'", "U'a'", "L'a'"]);
    check_whole(RawString, &["R\"(a)\"", "u8R\"(a)\"", "uR\"(a)\"", "UR\"(a)\"", "LR\"(a)\""]);
    check("u9\"a\"", &[(Identifier, "u9"), (String, "\"a\"")]);
    check("xL'a'", &[(Identifier, "xL"), (Char, "'a'")]);
    check("R'a'", &[(Identifier, "R"), (Char, "'a'")]);
    check("L \"a\"", &[(Identifier, "L"), (String, "\"a\"")]);
    check("u\\\n8\\\n\"a\"", &[(String, "u8\"a\"")]);
    check("u8\\\nx", &[(Identifier, "u8x")]);
}

#[test]
fn raw_strings_end_at_their_own_delimiter() {
    check_whole(
        RawString,
        &["R\"(a\"b\\)\"", "R\"x()\" )y\" )x\"", "R\"=*(\n// )\"\n)=*\"", "R\"0123456789abcdef()0123456789abcdef\""],
    );
    check("R\"x(\\\n)x\"a", &[(RawString, "R\"x(\\\n)x\""), (Identifier, "a")]);
    check("L\\\nR\"(\\\n)\"_\\\nx y", &[(RawString, "LR\"(\\\n)\"_x"), (Identifier, "y")]);
    check(
        "#define A R\"(\n)\" b\nc",
        &[
            (Punctuator, "#"),
            (Identifier, "define"),
            (Identifier, "A"),
            (RawString, "R\"(\n)\""),
            (Identifier, "b"),
            (Identifier, "c"),
        ],
    );
    check("R\"a b(c)\"", &[(String, "R\"a b(c)\"")]);
    check("R\"0123456789abcdefg()0123456789abcdefg\"", &[(String, "R\"0123456789abcdefg()0123456789abcdefg\"")]);
    check("R\"a\\(\"b", &[(String, "R\"a\\(\""), (Identifier, "b")]);
}

#[test]
fn user_defined_suffixes_belong_to_the_literal() {
    check_whole(String, &["\"a\"_s", "u8\"a\"sv", "\"\"_\u{e9}", "\"\"min"]);
    check_whole(RawString, &["R\"(a)\"_json"]);
    check_whole(Char, &["'a'_c"]);
    check_whole(Number, &["12_km", "1.5e3_deg", "0x1FuLL", "1min"]);
    check("\"%\"PRId64", &[(String, "\"%\""), (Identifier, "PRId64")]);
    check("'a's", &[(Char, "'a'"), (Identifier, "s")]);
    check("\"a\"\\\n_s", &[(String, "\"a\"_s")]);
    check("\"a\" _s", &[(String, "\"a\""), (Identifier, "_s")]);
}

#[test]
fn preprocessing_numbers_are_whole() {
    check_whole(
        Number,
        &[
            "0",
            "1'000'000",
            "0xdead'BEEF",
            "0b1010'0101u",
            "1e+10",
            "1E-5f",
            "0x1.8p-3",
            ".5",
            ".5e-1L",
            "1.",
            "1..2",
            "0xe+1",
            "1_a",
            "08x",
            "1\u{e9}",
        ],
    );
    check("1+2", &[(Number, "1"), (Punctuator, "+"), (Number, "2")]);
    check("1f+2", &[(Number, "1f"), (Punctuator, "+"), (Number, "2")]);
    check("1''a", &[(Number, "1"), (Char, "''"), (Identifier, "a")]);
    check("1'", &[(Number, "1"), (Char, "'")]);
    check("1\\\n2'\\\n3e\\\n+4", &[(Number, "12'3e+4")]);
    check(".\\\n5", &[(Number, ".5")]);
    check("a.5", &[(Identifier, "a"), (Number, ".5")]);
    check("a.b", &[(Identifier, "a"), (Punctuator, "."), (Identifier, "b")]);
}

#[test]
fn identifiers_take_dollars_and_bytes_from_0x80() {
    check_whole(Identifier, &["a", "_", "$match", "a$b", "na\u{ef}ve", "\u{53d8}\u{91cf}", "and", "co_await", "a1"]);
    check("a\\\nb", &[(Identifier, "ab")]);
    check("a\\\n b", &[(Identifier, "a"), (Identifier, "b")]);
    check("a\\ \\\nb", &[(Identifier, "a"), (Other, "\\"), (Identifier, "b")]);
    check("\\u00e9", &[(Other, "\\"), (Identifier, "u00e9")]);
    assert_eq!(tokens(b"\xff\x80a\xc3 b")[0].end, 4);
}

#[test]
fn a_byte_order_mark_is_no_identifier() {
    check(
        "\u{feff}#include <a>",
        &[(Other, "\u{feff}"), (Punctuator, "#"), (Identifier, "include"), (HeaderName, "<a>")],
    );
    check("\u{feff}a", &[(Other, "\u{feff}"), (Identifier, "a")]);
}

#[test]
fn punctuators_are_as_long_as_possible() {
    check_whole(
        Punctuator,
        &[
            "%:%:", "<=>", "<<=", ">>=", "->*", "...", "<<<", ">>>", "::", ".*", "->", "++", "--", "<<", ">>", "<=",
            ">=", "==", "!=", "&&", "||", "+=", "-=", "*=", "/=", "%=", "^=", "&=", "|=", "##", "<:", ":>", "<%", "%>",
            "%:", "{", "}", "[", "]", "#", "(", ")", ";", ":", "?", ".", "~", "!", "+", "-", "*", "/", "%", "^", "&",
            "|", "=", "<", ">", ",",
        ],
    );
    check(
        "k<<<1,2>>>()",
        &[
            (Identifier, "k"),
            (Punctuator, "<<<"),
            (Number, "1"),
            (Punctuator, ","),
            (Number, "2"),
            (Punctuator, ">>>"),
            (Punctuator, "("),
            (Punctuator, ")"),
        ],
    );
    check(">\\\n>\\\r\n=", &[(Punctuator, ">>=")]);
    check(">\\\n\\\n", &[(Punctuator, ">")]);
    check("..", &[(Punctuator, "."), (Punctuator, ".")]);
}

#[test]
fn a_digraph_bracket_gives_way_to_a_scope() {
    check("v<::a>", &[(Identifier, "v"), (Punctuator, "<"), (Punctuator, "::"), (Identifier, "a"), (Punctuator, ">")]);
    check("a<:::b", &[(Identifier, "a"), (Punctuator, "<:"), (Punctuator, "::"), (Identifier, "b")]);
    check("<::>", &[(Punctuator, "<:"), (Punctuator, ":>")]);
}

#[test]
fn directives_last_to_the_end_of_their_logical_line() {
    let source = b" /* a */ # define A \\\r\n b /* c\n */ d // e \\\n f\ng #h";
    let inside: Vec<_> = tokens(source)
        .iter()
        .filter(|token| token.in_directive && token.kind == Identifier)
        .map(|token| token.text(source).into_owned())
        .collect();
    assert_eq!(inside, [&b"define"[..], b"A", b"b", b"d"]);
    let newlines = tokens(b"#a\n\n").iter().filter(|token| token.in_directive).count();
    assert_eq!(newlines, 2, "`#` and `a`, no line ending");
    assert!(tokens(b"%:define").iter().all(|token| token.in_directive));
    assert!(tokens(b"#\\\ndefine\\\n").iter().all(|token| token.in_directive));
    assert!(tokens(b"x /*\n*/ #a").iter().all(|token| !token.in_directive));
}

/// A megabyte of names without an end, which would take minutes if each were looked for up to the end of the line.
#[test]
fn header_names_that_do_not_end_are_looked_for_once() {
    let source = format!("#if {}\n#include <a>", "__has_include(<".repeat(1 << 17));
    let kinds: Vec<_> = Lexer::new(source.as_bytes()).map(|token| token.kind).collect();
    assert_eq!(kinds.iter().filter(|&&kind| kind == HeaderName).count(), 1);
    assert_eq!(kinds.last(), Some(&HeaderName));
    assert_eq!(
        lex("#if __has_include(<a) || __has_include(<b>)")[4],
        (HeaderName, "<a) || __has_include(<b>".to_owned())
    );
}

#[test]
fn header_names_follow_includes_only() {
    for name in ["<a/b.h>", "\"a\\b.h\"", "<it's>", "<a//b>"] {
        for directive in ["#include ", "#include_next/**/", "# import", "%:include", "#embed ", "#inc\\\nlude "] {
            assert_eq!(
                lex(&format!("{directive}{name}\n")).last(),
                Some(&(HeaderName, name.to_owned())),
                "{directive}{name}"
            );
        }
    }
    assert_eq!(lex("#if __has_include ( <a> )")[4], (HeaderName, "<a>".to_owned()));
    assert_eq!(lex("#if x && __has_include(\"a\")")[6], (HeaderName, "\"a\"".to_owned()));
    check(
        "#include <a\n>",
        &[(Punctuator, "#"), (Identifier, "include"), (Punctuator, "<"), (Identifier, "a"), (Punctuator, ">")],
    );
    check("#include \"a", &[(Punctuator, "#"), (Identifier, "include"), (String, "\"a")]);
    check(
        "#include M <a>",
        &[
            (Punctuator, "#"),
            (Identifier, "include"),
            (Identifier, "M"),
            (Punctuator, "<"),
            (Identifier, "a"),
            (Punctuator, ">"),
        ],
    );
    check("include <a>", &[(Identifier, "include"), (Punctuator, "<"), (Identifier, "a"), (Punctuator, ">")]);
    check("#include <a\\\nb>", &[(Punctuator, "#"), (Identifier, "include"), (HeaderName, "<ab>")]);
}

#[test]
fn stray_bytes_stand_alone() {
    check("\\", &[(Other, "\\")]);
    check("@a`", &[(Other, "@"), (Identifier, "a"), (Other, "`")]);
    check("\0\x01", &[(Other, "\0"), (Other, "\x01")]);
    check("??/\na", &[(Punctuator, "?"), (Punctuator, "?"), (Punctuator, "/"), (Identifier, "a")]);
}

/// Bytes that mean something to the lexer, so that random strings of them reach every rule.
const PIECES: [&[u8]; 40] = [
    b"\\",
    b"\\\n",
    b"\\\r\n",
    b"\\ \n",
    b"\n",
    b"\r",
    b" ",
    b"\t",
    b"a",
    b"e",
    b"R",
    b"u8",
    b"L",
    b"_s",
    b"0",
    b".",
    b"'",
    b"\"",
    b"(",
    b")",
    b"/",
    b"*",
    b"//",
    b"/*",
    b"*/",
    b"#",
    b"include",
    b"__has_include",
    b"<",
    b">",
    b":",
    b"%",
    b"=",
    b"+",
    b"-",
    b"x(",
    b")x\"",
    b"\xef\xbb\xbf",
    b"\xff",
    b"\0",
];

#[test]
fn any_bytes_are_tiled_and_splices_change_no_text() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as usize % below
    };
    for _ in 0..200_000 {
        let source: Vec<u8> = (0..random(24)).flat_map(|_| PIECES[random(PIECES.len())]).copied().collect();
        for token in tokens(&source) {
            let raw = &source[token.start..token.end];
            assert_eq!(
                token.spliced,
                *token.text(&source) != *raw,
                "{:?} {token:?}",
                source.escape_ascii().to_string()
            );
        }
    }
}

#[test]
fn splices_anywhere_outside_raw_strings_leave_the_same_tokens() {
    let source =
        "#include <a/b.h>\n/* c * */ // d\nstd::x<::y> += .5e-3_s \"q\\\"r\"sv 'z' u8\"k\" 1'000 a->*b %: <<< ...\n";
    let expected = lex(source);
    for splice in ["\\\n", "\\\r\n", "\\ \t\n", "\\\n\\\n"] {
        for at in 0..source.len() {
            let spliced = [&source[..at], splice, &source[at..]].concat();
            assert_eq!(lex(&spliced), expected, "{splice:?} at {at}");
        }
    }
}
