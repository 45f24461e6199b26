use super::{BYTES, Level, Starts, cpp_words, fallback};

const PIECES: [&str; 48] = [
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
    let (mut state, mut starts) = (1, Starts::default());
    let levels = levels();
    for round in 0..60_000 {
        starts.level = levels[round / 3 % levels.len()];
        let count = 1 + random(&mut state, if round % 8 == 0 { 120 } else { 12 });
        let kinds = [5, 20, PIECES.len()][round % 3];
        let shift = random(&mut state, PIECES.len());
        let text: String = (0..count).map(|_| PIECES[(random(&mut state, kinds) + shift) % PIECES.len()]).collect();
        starts.find(text.as_bytes());
        let (mut found, mut expected, mut at) = (Vec::new(), Vec::new(), 0);
        starts.words(text.as_bytes(), 0, |ends| {
            let mut places = [0; BYTES];
            let count = ends.put(&mut places);
            found.extend(places[..count].iter().map(|&end| end as usize));
        });
        while at < text.len() {
            at = cpp_words::word_end(text.as_bytes(), at);
            expected.push(at);
        }
        assert_eq!(found, expected, "{text:?}");
        let [mut lines, mut expected_lines, mut words] = [const { Vec::new() }; 3];
        starts.words_of_lines(text.as_bytes(), 0, |end, ends_line| {
            words.push(end);
            lines.extend(ends_line.then_some(end));
        });
        crate::pattern::lines(text.as_bytes(), 0, |end| expected_lines.push(end));
        assert_eq!(lines, expected_lines, "{text:?}");
        lines.clear();
        starts.lines(text.as_bytes(), 0, |end| lines.push(end));
        assert_eq!(lines, expected_lines, "{text:?}");
        assert!(expected.iter().all(|end| words.contains(end) || lines.iter().any(|line| line < end)), "{text:?}");
    }
}

#[test]
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
