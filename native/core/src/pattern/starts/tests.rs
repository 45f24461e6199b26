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
    for lines in ["cpp-lines-1", "cpp-lines-2"] {
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
        starts.words(run, 0, |ends| {
            let mut places = [0; BYTES];
            let count = ends.put(&mut places);
            found.extend(places[..count].iter().map(|&end| end as usize));
        });
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
#[allow(unsafe_code, reason = "instructions that not every processor has")]
fn the_fast_masks_are_those_of_the_table() {
    for byte in 0..=u8::MAX {
        let bytes: [u8; BYTES] = std::array::from_fn(|at| byte.wrapping_add(at as u8));
        let expected = fallback::masks(&bytes);
        #[cfg(target_arch = "x86_64")]
        if super::avx2::available() {
            // SAFETY: the processor has AVX2.
            assert_eq!(unsafe { super::avx2::masks(&bytes) }, expected);
        }
        #[cfg(target_arch = "x86_64")]
        if super::avx512::available() {
            // SAFETY: the processor has AVX-512.
            assert_eq!(unsafe { super::avx512::masks(&bytes) }, expected);
        }
    }
}
