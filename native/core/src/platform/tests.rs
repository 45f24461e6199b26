//! Table tests of each kind of evidence, of what is none, and of the cut.

use std::fmt::Write as _;

use super::PlatformDetector;

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
    for content in
        ["#include \"only\"", "#include <x/b.h>", "#include <only.h>", "// #include <b.h>", "b.h", "f(\"b.h\")"]
    {
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
