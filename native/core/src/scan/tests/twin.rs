//! A readable twin of the scanner, without any care for speed, and random documents that it must agree on.

use std::collections::BTreeMap;

use super::super::identifier::components;
use super::super::keywords::KEYWORDS;
use super::super::strings;
use super::{Counts, Table, scan, table};
use crate::lexer::{Lexer, Token, TokenKind};
use crate::pattern::Pattern;

/// The hits of one document by table: 0 terms, 1 morphemes, 2 namespaces.
type Hits = [BTreeMap<Vec<String>, u64>; 3];

const IDENTIFIERS: [(&str, &str); 5] =
    [("CHECK", "test"), ("enum", "proto"), ("include", "proto"), ("cudaMalloc", "cuda"), ("$match", "mongo")];
const QUOTED: [(&str, &str); 3] = [("SELECT", "sql"), ("CHECK", "sql"), ("$match", "mongo")];

fn hit(table: &mut BTreeMap<Vec<String>, u64>, row: &[&str]) {
    *table.entry(row.iter().map(|&text| text.to_owned()).collect()).or_insert(0) += 1;
}

fn hits(source: &[u8]) -> Hits {
    let mut hits = Hits::default();
    let tokens: Vec<_> = Lexer::new(source).collect();
    // The conditionals that are open; true for one that an `#if 0` began.
    let mut open: Vec<bool> = Vec::new();
    for part in tokens.chunk_by(|a, b| a.in_directive == b.in_directive) {
        let mut part: Vec<_> = part.iter().filter(|token| !token.kind.is_space()).collect();
        let was_disabled = open.contains(&true);
        if part.first().is_some_and(|token| token.in_directive) {
            part.remove(0);
            let texts: Vec<_> = part.iter().map(|token| token.text(source).into_owned()).collect();
            follow(&texts.iter().map(Vec::as_slice).collect::<Vec<_>>(), &mut open);
            if part.first().is_some_and(|token| token.kind == TokenKind::Identifier) {
                part.remove(0);
            }
        }
        if was_disabled && open.contains(&true) {
            continue;
        }
        let texts: Vec<_> = part.iter().map(|token| token.text(source).into_owned()).collect();
        for at in 0..part.len() {
            count_token(&part, &texts, at, &mut hits);
        }
        count_chains(&part, &texts, &mut hits[0]);
    }
    hits
}

/// Follows a directive of these texts, without its `#`.
fn follow(directive: &[&[u8]], open: &mut Vec<bool>) {
    let disabled = open.contains(&true);
    match directive {
        [b"if", b"0"] if !disabled => open.push(true),
        [b"if" | b"ifdef" | b"ifndef", ..] if disabled => open.push(false),
        [b"else" | b"elif" | b"elifdef" | b"elifndef", ..] if open.last() == Some(&true) => open.clear(),
        [b"endif", ..] => {
            open.pop();
        }
        _ => {}
    }
}

fn count_chains(part: &[&Token], texts: &[Vec<u8>], terms: &mut BTreeMap<Vec<String>, u64>) {
    let is_name = |at: usize| {
        part[at].kind == TokenKind::Identifier && !KEYWORDS.iter().any(|keyword| keyword.as_bytes() == texts[at])
    };
    let is_scope = |at: usize| texts.get(at).is_some_and(|text| text == b"::");
    for start in (0..part.len()).filter(|&at| is_name(at)) {
        if start >= 2
            && is_scope(start - 1)
            && (is_name(start - 2) || texts[start - 2].iter().all(|&byte| byte == b'>'))
        {
            continue;
        }
        let mut end = start;
        while is_scope(end + 1) && end + 2 < part.len() && is_name(end + 2) {
            end += 2;
        }
        let whole = texts[start..=end].concat();
        if !is_scope(end + 1) && [&b"std::read"[..], b"std::detail::x"].contains(&&*whole) {
            hit(terms, &[str::from_utf8(&whole).unwrap(), "chain"]);
        }
    }
}

fn count_token(part: &[&Token], texts: &[Vec<u8>], at: usize, [terms, morphemes, namespaces]: &mut Hits) {
    let is_name = |at: usize| {
        part[at].kind == TokenKind::Identifier && !KEYWORDS.iter().any(|keyword| keyword.as_bytes() == texts[at])
    };
    let is_scope = |at: usize| texts.get(at).is_some_and(|text| text == b"::");
    let find = |candidates: &[(&str, &str)], text: &[u8], terms: &mut BTreeMap<_, _>| {
        for (term, category) in candidates.iter().filter(|(term, _)| term.as_bytes() == text) {
            hit(terms, &[term, category]);
        }
    };
    match part[at].kind {
        TokenKind::Identifier => find(&IDENTIFIERS, &texts[at], terms),
        TokenKind::String | TokenKind::RawString => {
            strings::words(&texts[at], part[at].kind, |word| find(&QUOTED, word, terms));
        }
        _ => {}
    }
    if is_name(at) {
        let name = str::from_utf8(&texts[at]).unwrap_or_default();
        let is_word = |rest: &str| !rest.starts_with(|next: char| next.is_ascii_lowercase());
        if name.strip_prefix("read").is_some_and(is_word) {
            hit(terms, &["read", "begin"]);
        }
        if name.starts_with("READER_") {
            hit(terms, &["READER_", "begin"]);
        }
        components(&texts[at], &mut Vec::new(), |component| count_morphemes(component, morphemes));
        let continues =
            at >= 2 && is_scope(at - 1) && (is_name(at - 2) || texts[at - 2].iter().all(|&byte| byte == b'>'));
        if is_scope(at + 1) && !continues {
            hit(namespaces, &[str::from_utf8(&texts[at]).unwrap()]);
        }
    }
}

fn count_morphemes(component: &[u8], morphemes: &mut BTreeMap<Vec<String>, u64>) {
    let component = str::from_utf8(component).unwrap();
    if component.starts_with("re") && component != "re" {
        hit(morphemes, &["re", "prefix"]);
    }
    if component.ends_with("er") && component != "er" {
        hit(morphemes, &["er", "suffix"]);
    }
    if component.starts_with("read") {
        hit(morphemes, &["read", "cpp_stem"]);
    }
    if ["read", "buffer"].contains(&component) {
        hit(morphemes, &[component, "component"]);
    }
}

fn twin_words(pattern: &str, documents: &[(&str, &[u8])]) -> BTreeMap<Vec<u8>, u64> {
    let mut words = BTreeMap::new();
    let pattern = Pattern::by_name(pattern).unwrap();
    for (_, source) in documents {
        pattern.split(source, |word| *words.entry(word.to_vec()).or_insert(0) += 1);
    }
    words
}

fn twin_tables(documents: &[(&str, &[u8])]) -> [Table; 3] {
    let mut tables = [Table::new(), Table::new(), Table::new()];
    for (project, source) in documents {
        for (table, hits) in tables.iter_mut().zip(hits(source)) {
            for (mut row, hits) in hits {
                row.push((*project).to_owned());
                let total = table.entry(row).or_insert((0, 0));
                *total = (total.0 + hits, total.1 + 1);
            }
        }
    }
    tables
}

#[track_caller]
fn assert_same<K: Ord + std::fmt::Debug, V: PartialEq + std::fmt::Debug>(
    left: &BTreeMap<K, V>,
    right: &BTreeMap<K, V>,
    source: &[u8],
) {
    let only = |a: &BTreeMap<K, V>, b: &BTreeMap<K, V>| {
        a.iter().filter(|(key, value)| b.get(key) != Some(value)).map(|it| format!("{it:?}")).collect::<Vec<_>>()
    };
    assert!(left == right, "{:?} != {:?} in {}", only(left, right), only(right, left), source.escape_ascii());
}

fn check(counts: &Counts, documents: &[(&str, &[u8])]) {
    let source = if let [(_, source)] = documents { *source } else { b"all documents" };
    assert_same(&counts.words, &twin_words("cpp-words-1", documents), source);
    assert_same(&counts.lines, &twin_words("cpp-lines-1", documents), source);
    let found = [&counts.terms, &counts.morphemes, &counts.namespaces].map(table);
    for (found, expected) in found.iter().zip(&twin_tables(documents)) {
        assert_same(found, expected, source);
    }
}

#[rustfmt::skip]
const PIECES: [&str; 70] = [
    "SELECT", "CHECK", "enum", "cudaMalloc", "$match", "read", "readBuffer", "re", "READER_T", "buffer", "std", "::",
    "::", "::", "detail", "return", ">", "<", " ", " ", " ", "\n", "\n", "\t", "\r\n", "\\\n", "\"", "\"", "R\"(", ")\"",
    "// ", "/* ", " */", "\n#include ", "\n#define ", "\n#if ", "\\", "'", "(", ")", ";", "->", "x", "0x1F", "u8",
    "a_very_long_name_of_a_reader", "1'0", "_", "\n#if 0\n", "\n# if 0 // why\n", "\n#else\n", "\n#endif\n", "\n#elif x\n",
    "std::read", "std::detail::x", "#", "\u{e9}", "L\"", "\n##", "\n %:if 0", "\"R\",x", "read(", ">= ", "\u{feff}", ">>", ")read'", "1e+", "3.", "+", "'a'",
];

/// Documents of random pieces, each with its project.
pub(super) fn documents(seed: u64, number: usize) -> Vec<(String, Vec<u8>)> {
    let mut state = seed;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as usize % below
    };
    let mut document = || (0..random(60)).map(|_| PIECES[random(PIECES.len())]).collect::<String>().into_bytes();
    (0..number).map(|at| (format!("project-{}", at % 3), document())).collect()
}

#[test]
fn counts_of_one_document_equal_those_of_the_readable_twin() {
    for (project, source) in documents(0x9e37_79b9, 1000) {
        let documents = [(project.as_str(), source.as_slice())];
        check(&scan(&documents, 1, 1), &documents);
    }
}

#[test]
fn counts_of_many_documents_equal_those_of_the_readable_twin() {
    let owned = documents(7, 20_000);
    let documents: Vec<_> = owned.iter().map(|(project, source)| (project.as_str(), source.as_slice())).collect();
    check(&scan(&documents, 2, 777), &documents);
}

/// More short names than are kept near, most of them several times in a document, and each with and without a mark.
#[test]
fn counts_of_documents_with_many_names_equal_those_of_the_readable_twin() {
    let document = |at: usize| {
        let name = |word: usize| format!("read{}", (word * word * 7 + at * 31) % 30_011);
        let code = |word| format!("{0} .{0}({1}::{0}) ", name(word), name(word / 3));
        (format!("project-{}", at % 2), (0..9_000).map(code).collect::<String>().into_bytes())
    };
    let owned: Vec<_> = (0..4).map(document).collect();
    let documents: Vec<_> = owned.iter().map(|(project, source)| (project.as_str(), source.as_slice())).collect();
    for threads in [1, 2] {
        check(&scan(&documents, threads, 1), &documents);
    }
}
