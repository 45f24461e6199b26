//! The classes of the bytes of a text: its blocks, made in the fastest way that the processor supports.

#[cfg(target_arch = "x86_64")]
use super::avx2;
use super::block::{BYTES, Block};
use super::fallback;
use std::ops::Range;

/// The classes of the bytes of a text. Made to be used again for the next text.
#[derive(Default)]
pub(crate) struct Classes {
    /// The blocks of the text; the last one is not full.
    blocks: Vec<Block>,
}

impl Classes {
    /// Classifies the bytes of `text`.
    pub(crate) fn classify(&mut self, text: &[u8]) {
        self.blocks.clear();
        self.blocks.reserve(text.len() / BYTES + 1);
        let (whole, rest) = text.as_chunks::<BYTES>();
        make_blocks(whole, rest.first().copied().unwrap_or(0), &mut self.blocks);
        let mut last = [0; BYTES];
        last[..rest.len()].copy_from_slice(rest);
        make_blocks(&[last], 0, &mut self.blocks);
        if let Some(block) = self.blocks.last_mut() {
            let mask = (1 << rest.len()) - 1;
            let Block { word, mark, newline, blank, tab, white, event } = block;
            for class in [word, mark, newline, blank, tab, white, event] {
                *class &= mask;
            }
        }
    }

    /// The positions where a token may begin.
    pub(crate) fn starts(&self) -> Starts<'_> {
        let mut starts = Starts { blocks: &self.blocks, block: 0, mask: 0 };
        starts.mask = starts.of_block();
        starts
    }

    /// The first position at or after `at` whose byte is none of a word.
    #[inline]
    pub(crate) fn word_end(&self, at: usize) -> usize {
        let offset = at % BYTES;
        let run = (!(self.blocks[at / BYTES].word >> offset)).trailing_zeros() as usize;
        if run + offset < BYTES { at + run } else { self.long_word_end(at / BYTES + 1) }
    }

    #[cold]
    fn long_word_end(&self, mut block: usize) -> usize {
        while self.blocks.get(block).is_some_and(|block| block.word == u64::MAX) {
            block += 1;
        }
        block * BYTES + self.blocks.get(block).map_or(0, |block| block.word.trailing_ones() as usize)
    }

    /// The blocks of the text; the last one is not full.
    pub(crate) fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The first event at or after `at`; the length of the text at least if there is none.
    #[inline]
    pub(crate) fn next_event(&self, at: usize) -> usize {
        let mut block = at / BYTES;
        let mut mask = self.blocks.get(block).map_or(0, |block| block.event & (u64::MAX << (at % BYTES)));
        while mask == 0 {
            block += 1;
            match self.blocks.get(block) {
                Some(next) => mask = next.event,
                None => return block * BYTES,
            }
        }
        block * BYTES + mask.trailing_zeros() as usize
    }

    /// How many bytes of `range` are white space.
    pub(crate) fn white_bytes(&self, range: Range<usize>) -> u64 {
        let first = range.start / BYTES;
        let mut from = u64::MAX << (range.start % BYTES);
        let mut bytes = 0;
        for (base, block) in (first * BYTES..range.end).step_by(BYTES).zip(&self.blocks[first..]) {
            let to = if range.end - base < BYTES { (1 << (range.end - base)) - 1 } else { u64::MAX };
            bytes += u64::from((block.white & from & to).count_ones());
            from = u64::MAX;
        }
        bytes
    }
}

/// The positions of a text where a token may begin: of a run of word bytes the first, and every byte that is a mark or
/// an event.
pub(crate) struct Starts<'a> {
    blocks: &'a [Block],
    block: usize,
    /// Those of the block that are still to come.
    mask: u64,
}

impl Starts<'_> {
    /// Leaves out the positions before `at`.
    pub(crate) fn skip_to(&mut self, at: usize) {
        if self.block != at / BYTES {
            self.block = at / BYTES;
            self.mask = self.of_block();
        }
        self.mask &= u64::MAX << (at % BYTES);
    }

    #[inline]
    fn of_block(&self) -> u64 {
        let Some(block) = self.blocks.get(self.block) else { return 0 };
        let before = self.block.checked_sub(1).map_or(0, |before| self.blocks[before].word >> (BYTES - 1));
        block.word & !(block.word << 1 | before) | block.mark | block.event
    }
}

impl Iterator for Starts<'_> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        while self.mask == 0 {
            self.block += 1;
            if self.block >= self.blocks.len() {
                return None;
            }
            self.mask = self.of_block();
        }
        let bit = self.mask.trailing_zeros() as usize;
        self.mask &= self.mask - 1;
        Some(self.block * BYTES + bit)
    }
}

/// Appends the blocks of `chunks`; `next` is the byte after the last.
fn make_blocks(chunks: &[[u8; BYTES]], next: u8, out: &mut Vec<Block>) {
    #[cfg(target_arch = "x86_64")]
    if avx2::available() {
        return avx2::blocks(chunks, next, out);
    }
    fallback::blocks(chunks, next, out);
}

#[cfg(test)]
mod tests {
    use super::{BYTES, Block, Classes, fallback, make_blocks};

    #[test]
    fn every_byte_has_the_class_of_the_table_wherever_it_stands() {
        let classes =
            |block: Block| [block.word, block.mark, block.newline, block.blank, block.tab, block.white, block.event];
        for byte in 0..=u8::MAX {
            let expected = [
                byte.is_ascii_alphanumeric() || byte == b'_',
                matches!(byte, 0..=8 | 14..=31 | 127) || (byte.is_ascii_punctuation() && !matches!(byte, b'_' | b'\\')),
                matches!(byte, b'\n' | b'\r'),
                matches!(byte, b' ' | b'\t'),
                byte == b'\t',
                matches!(byte, b' ' | 9..=13),
                matches!(byte, b'"' | b'\'' | b'#' | b'$' | b'\\' | 0x80..),
            ];
            for at in [0, 31, 32, 63, 64, 100] {
                let mut text = vec![b'a'; 130];
                text[at] = byte;
                let mut found = Classes::default();
                found.classify(&text);
                let found = classes(found.blocks()[at / BYTES]).map(|mask| mask >> (at % BYTES) & 1 == 1);
                assert_eq!(found, expected, "{byte:#x} at {at}");
            }
        }
    }

    #[test]
    fn the_fast_blocks_are_those_of_the_table() {
        let mut state = 3_u32;
        let mut byte = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            if state & 0x100 == 0 { b"/*%:\\#\n \tA_9\"'$+"[(state >> 16) as usize % 16] } else { (state >> 16) as u8 }
        };
        let chunks: Vec<[u8; BYTES]> = (0..2000).map(|_| std::array::from_fn(|_| byte())).collect();
        for next in [0, b'/', b'*', b':', b'\\', b'x'] {
            let [mut found, mut expected]: [Vec<Block>; 2] = Default::default();
            make_blocks(&chunks, next, &mut found);
            fallback::blocks(&chunks, next, &mut expected);
            assert_eq!(found, expected, "next byte {next}");
        }
    }

    #[test]
    fn searches_cross_blocks() {
        for length in 0..200 {
            for tail in ["", " ", "\"", "//", "/", "::", ":"] {
                let text = [&vec![b'x'; length], tail.as_bytes()].concat();
                let mut classes = Classes::default();
                classes.classify(&text);
                for at in (0..=length).step_by(7) {
                    let event = classes.next_event(at);
                    match tail {
                        "\"" | "//" | "::" => assert_eq!(event, length),
                        _ => assert!(event >= text.len()),
                    }
                }
            }
        }
    }

    #[test]
    fn white_space_is_counted_in_any_range() {
        let text: Vec<u8> = (0..200).map(|at| b" x\t\n\x0b\x0c\rabc"[at * at % 10]).collect();
        let mut classes = Classes::default();
        classes.classify(&text);
        for start in 0..=text.len() {
            for end in start..=text.len() {
                let expected = text[start..end].iter().filter(|byte| matches!(byte, b' ' | 9..=13)).count() as u64;
                assert_eq!(classes.white_bytes(start..end), expected, "{start}..{end}");
            }
        }
    }
}
