#![allow(clippy::unwrap_used)]

use super::{BYTES, Level, Starts, fallback};
use crate::pattern::Pattern;

const PIECES: [&str; 58] = [
    ", ",
    " = ",
    "((",
    "(((",
    "((((",
    ":",
    "std",
    "(-",
    "  ",
    "- ",
    " ",
    "  ",
    "\t",
    " \t",
    "\n",
    "\r\n",
    "\n\n",
    "\n    ",
    ";\n",
    "a",
    "x1",
    "foo_bar",
    "L",
    "u8",
    "R",
    "u8R",
    "\"",
    "'",
    "(",
    ")",
    "0",
    "12",
    "0x1F",
    "1e",
    "e",
    ".",
    "-",
    "+",
    "->",
    "::",
    ",",
    "\\",
    "\\n",
    "\\r\\t",
    "\u{b}",
    "\u{c}",
    "é",
    "名",
    "\u{2028}",
    "²",
    "😀",
    "#",
    "R\"(",
    ")x\"",
    "{",
    "\0",
    "//",
    "aVeryLongIdentifierOfMoreThanSixtyFourBytesWhichGoesOnAndOnAndOnAndOn",
];

fn random(state: &mut u64, below: usize) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    (*state >> 40) as usize % below
}

/// What this processor has.
fn levels() -> Vec<Level> {
    let mut levels = vec![Level::Fallback];
    #[cfg(target_arch = "x86_64")]
    levels.extend(super::avx2::available().then_some(Level::Avx2));
    #[cfg(target_arch = "x86_64")]
    levels.extend(super::avx512::available().then_some(Level::Avx512));
    levels
}

#[test]
fn words_are_those_of_the_splitter() {
    for lines in ["cpp-lines-1", "cpp-lines-2", "text-sentences-1"] {
        words_and_lines_are_those_of(Pattern::by_name(lines).unwrap());
    }
}

fn words_and_lines_are_those_of(pattern: Pattern) {
    let (mut state, mut starts) = (1, Starts::default());
    let levels = levels();
    for round in 0..60_000 {
        starts.level = levels[round / 3 % levels.len()];
        let count = 1 + random(&mut state, if round % 8 == 0 { 120 } else { 12 });
        let kinds = [5, 20, PIECES.len()][round % 3];
        let shift = random(&mut state, PIECES.len());
        let text: String = (0..count).map(|_| PIECES[(random(&mut state, kinds) + shift) % PIECES.len()]).collect();
        let run = text.as_bytes();
        starts.find(pattern, run);
        let [mut found, mut expected, mut lines, mut expected_lines, mut words] = [const { Vec::new() }; 5];
        starts.words(run, 0, |ends| ends.each(&mut |end| found.push(end)));
        pattern.words().ends(run, 0, |end| expected.push(end));
        assert_eq!(found, expected, "{pattern:?} {text:?}");
        starts.lines(run, 0, |end| lines.push(end));
        pattern.ends(run, 0, |end| expected_lines.push(end));
        assert_eq!(lines, expected_lines, "{pattern:?} {text:?}");
        let mut start = 0;
        for &line in &lines {
            words.clear();
            starts.words_of_line(&run[..line], start, |end, ends_line| {
                words.push(end);
                assert_eq!(ends_line, end == line, "{pattern:?} {text:?}");
            });
            expected.clear();
            pattern.words().ends(&run[..line], start, |end| expected.push(end));
            assert_eq!(words, expected, "{pattern:?} {text:?} {line}");
            start = line;
        }
    }
}

#[test]
fn words_before_a_byte_that_is_no_text_are_those_of_the_splitter_where_a_block_begins_with_it() {
    let (mut state, mut starts, levels) = (1, Starts::default(), levels());
    for pattern in ["cpp-words-1", "cpp-words-2", "text-words-1"].map(|name| Pattern::by_name(name).unwrap()) {
        for round in 0..20_000 {
            starts.level = levels[round / 3 % levels.len()];
            let (kinds, shift) = ([5, 20, PIECES.len()][round % 3], random(&mut state, PIECES.len()));
            let pieces = (0..=BYTES).map(|_| PIECES[(random(&mut state, kinds) + shift) % PIECES.len()]);
            let mut text = pieces.collect::<String>().into_bytes();
            text[BYTES] = 0xFF;
            text.truncate(2 * BYTES);
            let [mut found, mut expected] = [const { Vec::new() }; 2];
            starts.find(pattern, &text);
            starts.all_words(&text, |ends| ends.each(&mut |end| found.push(end)));
            pattern.split(&text, |word| expected.push(expected.last().map_or(0, |end| *end) + word.len()));
            assert_eq!(found, expected, "{pattern:?} \"{}\"", text.escape_ascii());
        }
    }
}

#[test]
fn words_of_other_programs_are_those_of_their_splitters() {
    let more =
        ["'s", "'LL", "//", "/", "\n/", "HTTPServer", "fooBar", "1234567", "'", "名五", "\u{a0}", "\u{3000}", "\u{85}"];
    let wide = [" ".repeat(70), "\t\n".repeat(40), "7".repeat(131)];
    let pieces: Vec<&str> = PIECES.into_iter().chain(more).chain(wide.iter().map(String::as_str)).collect();
    let (mut state, mut starts, levels) = (1, Starts::default(), levels());
    for pattern in Pattern::foreign().chain(Pattern::by_name("text-words-1")) {
        for round in 0..30_000 {
            starts.level = levels[round / 3 % levels.len()];
            let count = 1 + random(&mut state, if round % 8 == 0 { 120 } else { 12 });
            let (kinds, shift) = ([5, 20, pieces.len()][round % 3], random(&mut state, pieces.len()));
            let text: String = (0..count).map(|_| pieces[(random(&mut state, kinds) + shift) % pieces.len()]).collect();
            let run = text.as_bytes();
            let [mut found, mut expected] = [const { Vec::new() }; 2];
            starts.find(pattern, run);
            starts.words(run, 0, |ends| ends.each(&mut |end| found.push(end)));
            pattern.ends(run, 0, |end| expected.push(end));
            assert_eq!(found, expected, "{pattern:?} {text:?}");
        }
    }
}

#[test]
#[allow(unsafe_code, reason = "instructions that not every processor has")]
fn the_fast_masks_are_those_of_the_table() {
    for byte in 0..=u8::MAX {
        let bytes: [u8; BYTES] = std::array::from_fn(|at| byte.wrapping_add(at as u8));
        let expected = fallback::masks(&bytes);
        #[cfg(target_arch = "x86_64")]
        if super::avx2::available() {
            // SAFETY: the processor has AVX2.
            assert_eq!(unsafe { super::avx2::masks(&bytes) }, expected);
            // SAFETY: as above.
            assert_eq!(unsafe { super::foreign::avx2::masks(&bytes) }, super::foreign::bytes::of(&bytes));
        }
        #[cfg(target_arch = "x86_64")]
        if super::avx512::available() {
            // SAFETY: the processor has AVX-512.
            assert_eq!(unsafe { super::avx512::masks(&bytes) }, expected);
        }
    }
}
