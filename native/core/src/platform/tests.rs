//! Table tests of each kind of evidence, of what is none, and of the cut.

use std::fmt::Write as _;

use super::PlatformDetector;
use super::document::Finder;

const RULES: &str = r##"{"max_ids": 20, "labels": [
    {"id": 1, "category": "os", "label": "a", "identifiers": ["_A", "a_*", "a_b_*", "_AB*"]},
    {"id": 2, "category": "os", "label": "b", "includes": ["b.h", "b/*", "<only>"]},
    {"id": 3, "category": "os", "label": "c", "paths": [".cu", "Win32"]},
    {"id": 4, "category": "gpu", "label": "d", "sequences":
        ["#pragma omp", "if constexpr", "[[likely", "<<< @name", "<<< (", "std::expected", "V >= 201703L", "v < @number",
         "#error x", "x #y", "y ;"]}
]}"##;

fn detect(path: &str, content: &str) -> (Vec<u16>, String) {
    let found = PlatformDetector::new(RULES).expect("the rules are right").detect_one(path, content.as_bytes());
    (found.ids, found.info)
}

#[track_caller]
fn check(content: &str, ids: &[u16]) {
    assert_eq!(detect("x.cpp", content).0, ids, "{content:?}");
}

#[test]
fn identifiers_match_whole_or_by_prefix() {
    for content in
        ["_A", "x(_A)", "#if defined(_A)\n", "#define X _A", "a_x", "a_b_x", "a_", "_ABC", "_\\\nA", "f(_A,a_)"]
    {
        check(content, &[1]);
    }
    for content in
        ["", "_", "_AC", "__A", "a", "ba_x", "// _A", "/* _A */", "\"_A\"", "'_A'", "R\"(_A)\"", "#error _A\n"]
    {
        check(content, &[]);
    }
    check("#error _B\n_A", &[1]);
}

#[test]
fn every_prefix_of_a_name_is_evidence() {
    assert_eq!(detect("", "a_b_c _A _ABC").1, r#"{"os":{"a":["_A","a_*","a_b_*","_AB*"]}}"#);
}

#[test]
fn includes_match_header_names_only() {
    for content in
        ["#include <b.h>", "#include \"B.H\"", "#include <b/x.h>", "#if __has_include(<b\\c>)", "#include <only>"]
    {
        check(content, &[2]);
    }
    for content in [
        "#include \"only\"",
        "#include \"<only\"",
        "#include <<only>",
        "#include <x/b.h>",
        "#include <only.h>",
        "// #include <b.h>",
        "b.h",
        "f(\"b.h\")",
    ] {
        check(content, &[]);
    }
}

#[test]
fn paths_match_whole_folders_and_extensions() {
    for path in ["x.cu", "a/x.CU", "win32/x.h", "a/WIN32/b/x.h"] {
        assert_eq!(detect(path, "").0, [3], "{path}");
    }
    for path in ["", "cu", ".cu", "x.cuh", "x.cu/y", "win32", "win32.h", "a/win32x/y.h", "x.cu.h"] {
        assert!(detect(path, "").0.is_empty(), "{path}");
    }
}

#[test]
fn sequences_match_tokens_with_any_space_between() {
    for content in [
        "#pragma omp parallel",
        " # /* */ pragma omp",
        "if constexpr (x)",
        "if\n// y\nconstexpr",
        "[[likely]]",
        "[ [ likely ] ]",
        "k<<<g, b>>>()",
        "k<<<(g), b>>>()",
        "std::expected<a>",
        "std :: std::expected",
        "#if V >= 201703L\n",
        "v < v < 0x1",
        "if if constexpr",
    ] {
        check(content, &[4]);
    }
    for content in [
        "# define omp",
        "pragma omp",
        "if (constexpr)",
        "if \"\" constexpr",
        "likely",
        "<<<<<<< HEAD",
        "std::unexpected",
        "xstd::expected",
        "std::x::expected",
        "std::\n#if 0\nexpected",
        "#if V >= 201703\n",
        "v < v",
        "x\n#y",
        "#if y\n;",
        "// if constexpr",
        "\"if constexpr\"",
    ] {
        check(content, &[]);
    }
}

#[test]
fn rules_that_cannot_match_are_refused_with_their_text() {
    let rules = |kind: &str, text: &str| {
        format!(r#"{{"max_ids":1,"labels":[{{"id":1,"category":"os","label":"a","{kind}":["{text}"]}}]}}"#)
    };
    for (kind, text) in [
        ("identifiers", ""),
        ("identifiers", "*"),
        ("includes", "<*"),
        ("paths", "\\u00e9"),
        ("sequences", "a // b"),
        ("sequences", "@name a"),
        ("sequences", "a @other"),
        ("sequences", "a @"),
        ("sequences", " "),
        ("sequences", "'a'"),
        ("kind", "a"),
    ] {
        assert!(PlatformDetector::new(&rules(kind, text)).is_err(), "{kind} {text:?}");
    }
    let error = PlatformDetector::new(&rules("sequences", "a @other")).err().map(|error| error.to_string());
    assert!(error.is_some_and(|message| message.contains("\"a @other\"")));
}

#[test]
fn a_label_or_an_id_stands_there_once() {
    for labels in [
        r#"{"id":1,"category":"os","label":"a"},{"id":2,"category":"os","label":"a"}"#,
        r#"{"id":1,"category":"os","label":"a"},{"id":1,"category":"os","label":"b"}"#,
        r#"{"id":0,"category":"os","label":"a"}"#,
    ] {
        assert!(PlatformDetector::new(&format!(r#"{{"max_ids":1,"labels":[{labels}]}}"#)).is_err(), "{labels}");
    }
    let labels = r#"{"id":1,"category":"os","label":"a"},{"id":2,"category":"gpu","label":"a"}"#;
    assert!(PlatformDetector::new(&format!(r#"{{"max_ids":1,"labels":[{labels}]}}"#)).is_ok());
}

#[test]
fn most_distinct_evidence_then_the_lower_id_is_kept() {
    let mut labels = String::new();
    for id in (1..=9).rev() {
        let comma = if labels.is_empty() { "" } else { "," };
        let _ =
            write!(labels, r#"{comma}{{"id":{id},"category":"os","label":"l{id}","identifiers":["a{id}","b{id}"]}}"#);
    }
    let detector = PlatformDetector::new(&format!(r#"{{"max_ids":3,"labels":[{labels}]}}"#)).expect("rules");
    let find = |content: &str| detector.detect_one("", content.as_bytes()).ids;
    assert_eq!(find("a1 a2 a3 a4 a5 a9 b9"), [1, 2, 9]);
    assert_eq!(find("a1 a1 a1 a2 a3 b3 a4 b4 a5 b5"), [3, 4, 5]);
    assert_eq!(find("a2 a9"), [2, 9]);
}

#[test]
fn evidence_written_down_is_bounded() {
    let names: Vec<_> = (0..70).map(|at| format!("\"n{at}\"")).collect();
    let labels = format!(r#"{{"id":1,"category":"os","label":"a","identifiers":[{}]}}"#, names.join(","));
    let detector = PlatformDetector::new(&format!(r#"{{"max_ids":3,"labels":[{labels}]}}"#)).expect("rules");
    let content = (0..70).rev().map(|at| format!("n{at}")).collect::<Vec<_>>().join(" ");
    assert_eq!(detector.detect_one("", content.as_bytes()).info, r#"{"os":{"a":["n0","n1","n2","n3","n4"]}}"#);
    assert_eq!(detector.detect_one("", b"").info, "{}");
}

/// Evidence of every form, also where plain code is anything but plain.
const ODD_RULES: &str = r##"{"max_ids": 99, "labels": [
    {"id": 1, "category": "os", "label": "names", "identifiers": ["_A", "a_*", "_ABCDEFGHIJ", "_AB*", "x", "$d", "L", "u8"]},
    {"id": 2, "category": "os", "label": "includes", "includes": ["b.h", "b/*", "<only>"]},
    {"id": 3, "category": "os", "label": "words", "sequences":
        ["if constexpr", "std::move", "std :: @name (", "v < @number", "_A _A", "x @name x", "throw", "x #y"]},
    {"id": 4, "category": "os", "label": "marks", "sequences":
        ["<<< @name", "<<< (", "<=>", "[[likely", ") over", "= de;", ", ^^@name", "/ x", "% x", ": : x", "( @number", "??"]},
    {"id": 5, "category": "os", "label": "numbers", "sequences": ["1 x", ".5 x", "1e+5 , x"]},
    {"id": 6, "category": "os", "label": "directives", "sequences": ["#pragma omp", "# x", "%: x", "V >= 2"]}
]}"##;

/// What documents are put together from: pieces of evidence, what hides them, and what is in the way of a short look.
const PIECES: [&str; 84] = [
    " ",
    "\n",
    "\r\n",
    "\r",
    "\t",
    "\x0b",
    "\\\n",
    "\\ \r\n",
    "\\",
    "/",
    "/*",
    "*/",
    "//",
    "/\\\n/",
    "\"",
    "'",
    "R\"(",
    ")\"",
    "u8R\"x(",
    ")x\"",
    "L\"",
    "u8'",
    "1'0",
    "'_",
    "#",
    "##",
    "%:",
    "%",
    "#include ",
    "#include <b.h>",
    "\"b/x\"",
    "<only>",
    "#pragma ",
    "omp",
    "#error ",
    "#if ",
    "__has_include(",
    "V",
    ">=",
    "2",
    "_A",
    "_AB",
    "_ABCDEFGHIJ",
    "a_",
    "a_bcdefgh",
    "x",
    "xx",
    "$",
    "$d",
    "d",
    "L",
    "u8",
    "\u{e9}",
    "\u{feff}",
    "if",
    "constexpr",
    "std",
    "::",
    ":",
    "move",
    "m",
    "(",
    ")",
    "<",
    "<<",
    "<<<",
    "<=",
    "<=>",
    "=",
    "v",
    "1",
    "1.",
    ".5",
    ".",
    "1e+",
    "5",
    ",",
    "^^",
    "[[",
    "likely",
    "over",
    "de;",
    "throw",
    "?",
];

#[test]
fn a_short_look_finds_what_a_look_at_every_token_finds() {
    let detector = PlatformDetector::new(ODD_RULES).expect("the rules are right");
    let (mut fast, mut slow) = (Finder::new(&detector.rules), Finder::new(&detector.rules));
    let mut check = |text: &[u8]| {
        let (found, expected) = (fast.find("", text), slow.find_by_token("", text));
        assert_eq!(found, expected, "{:?}", String::from_utf8_lossy(text));
    };
    let mut text = Vec::new();
    for (one, two, three) in (0..PIECES.len().pow(3)).map(|at| (at / 84 / 84, at / 84 % 84, at % 84)) {
        text.clear();
        for at in [one, two, three] {
            text.extend_from_slice(PIECES[at].as_bytes());
        }
        check(&text);
    }
    let mut state = 7_u64;
    let mut draw = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for _ in 0..200_000 {
        text.clear();
        for _ in 0..draw(40) {
            match draw(12) {
                0 => text.push(draw(256) as u8),
                1..=3 => text.push(b' '),
                _ => text.extend_from_slice(PIECES[draw(PIECES.len())].as_bytes()),
            }
        }
        check(&text);
    }
}
