#![allow(clippy::unwrap_used)]

use super::class::{LETTER, MARK, NUMBER, SPACE, class_at};
use super::{Pattern, Starts};

fn words(text: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    Pattern::ALL[0].split(text, |word| found.push(word.escape_ascii().to_string()));
    found
}

#[test]
fn words_are_those_of_the_table() {
    let table: &[(&str, &[&str])] = &[
        ("int main()", &["int", " main", "()"]),
        ("x = -1.0f;", &["x", " =", " -1.0f", ";"]),
        ("1'000'000ull + 0x1.8p-3f", &["1\\'000\\'000ull", " +", " 0x1.8p-3f"]),
        ("u8R\"ab(c)\")ab\"", &["u8R\\\"ab(", "c", ")\\\")", "ab", "\\\""]),
        ("R\"x(y)x\"", &["R\\\"x(", "y", ")x\\\""]),
        ("(L\"wide\"", &["(L\\\"", "wide", "\\\""]),
        ("R\"01234567890123456(", &["R", "\\\"", "01234567890123456", "("]),
        ("\"%d\\n\\n\"", &["\\\"%", "d", "\\\\n\\\\n", "\\\""]),
        ("a.\\n\\nb", &["a", ".", "\\\\n", "\\\\nb"]),
        (") {\n    return", &[")", " {\\n    ", "return"]),
        ("\t \r\n  x  y", &["\\t \\r\\n  ", "x", " ", " y"]),
        ("#include <a.h>", &["#include", " <", "a", ".h", ">"]),
    ];
    for (text, expected) in table {
        assert_eq!(words(text.as_bytes()), *expected, "{text:?}");
    }
}

#[test]
fn lines_end_behind_the_next_indentation() {
    let mut found = Vec::new();
    Pattern::by_name("cpp-lines-1").unwrap().split(b"a {\r\n\r\n\tb\xff\n \nc", |line| found.push(line.to_vec()));
    assert_eq!(found, [&b"a {\r\n\r\n\t"[..], b"b", b"\xff", b"\n ", b"\n", b"c"]);
}

#[test]
fn invalid_bytes_are_words_of_one_byte_between_runs_split_alone() {
    assert_eq!(words(b"ab\xE2\x82cd  \xFF x"), ["ab", "\\xe2", "\\x82", "cd", "  ", "\\xff", " x"]);
}

#[test]
fn words_tile_any_bytes_and_are_those_of_the_starts() {
    let (mut state, mut starts) = (7_u32, Starts::default());
    for length in 0..400 {
        let text: Vec<u8> = (0..length)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                if state >> 31 == 0 {
                    b"\\n r'\"R(_)-.1eE+\t\x0bu8"[(state >> 8) as usize % 20]
                } else {
                    (state >> 16) as u8
                }
            })
            .collect();
        for pattern in Pattern::ALL {
            let (mut joined, [mut ends, mut found]) = (Vec::new(), [const { Vec::new() }; 2]);
            pattern.split(&text, |word| {
                assert!(!word.is_empty());
                joined.extend_from_slice(word);
                ends.push(joined.len());
            });
            assert_eq!(joined, text);
            starts.find(pattern, &text);
            if pattern.is_lines() {
                starts.all_lines(&text, |end| found.push(end));
            } else {
                starts.all_words(&text, |ends| ends.each(&mut |end| found.push(end)));
            }
            assert_eq!(found, ends, "{pattern:?} {}", text.escape_ascii());
        }
    }
}

#[test]
fn classes_follow_the_generated_table() {
    let table = [
        ("é", LETTER),
        ("名", LETTER),
        ("²", NUMBER),
        ("\u{2028}", SPACE),
        ("\u{a0}", SPACE),
        ("😀", MARK),
        ("\u{10ffff}", MARK),
    ];
    for (text, class) in table {
        assert_eq!(class_at(text.as_bytes(), 0), (class, text.len()), "{text:?}");
    }
}

#[test]
fn patterns_are_found_by_name_and_by_regex_and_others_are_refused_with_the_known_ones() {
    for pattern in Pattern::ALL {
        assert_eq!(Pattern::by_name(pattern.name()).unwrap(), pattern);
        assert_eq!(Pattern::by_regex(pattern.regex()).unwrap(), pattern);
    }
    for error in [Pattern::by_name("gpt2").unwrap_err(), Pattern::by_regex(r"\w+").unwrap_err()] {
        assert!(error.to_string().contains("cpp-words-1"), "{error}");
    }
}
