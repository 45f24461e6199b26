//! Masks from a table, for processors without AVX2, and as the reference in the tests.

use super::block::{BYTES, Block, Singles};

const NEWLINE: u8 = 1;
const BLANK: u8 = 2;
const TAB: u8 = 4;
const WHITE: u8 = 8;
const EVENT: u8 = 16;
const WORD: u8 = 32;
const MARK: u8 = 64;

static FLAGS: [u8; 256] = flag_table();

const fn flag_table() -> [u8; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'_' => WORD,
            b'\n' | b'\r' => NEWLINE | WHITE,
            b'\t' => BLANK | TAB | WHITE,
            b' ' => BLANK | WHITE,
            0x0b | 0x0c => WHITE,
            b'\\' | 0x80.. => EVENT,
            b'"' | b'\'' | b'#' | b'$' => MARK | EVENT,
            _ => MARK,
        };
        byte += 1;
    }
    table
}

/// Appends the blocks of `chunks`; `next` is the byte after the last.
pub(super) fn blocks(chunks: &[[u8; BYTES]], next: u8, out: &mut Vec<Block>) {
    let following = chunks.iter().skip(1).map(|chunk| chunk[0]).chain([next]);
    out.extend(chunks.iter().zip(following).map(|(chunk, next)| block(chunk, next)));
}

fn block(chunk: &[u8; BYTES], next: u8) -> Block {
    let mask =
        |holds: &dyn Fn(u8) -> bool| chunk.iter().rev().fold(0, |mask, &byte| (mask << 1) | u64::from(holds(byte)));
    let of = |flag: u8| mask(&|byte| FLAGS[byte as usize] & flag != 0);
    let is = |single: u8| mask(&|byte| byte == single);
    let singles = Singles { slash: is(b'/'), star: is(b'*'), percent: is(b'%'), colon: is(b':'), backslash: is(b'\\') };
    Block {
        word: of(WORD),
        mark: of(MARK),
        newline: of(NEWLINE),
        blank: of(BLANK),
        tab: of(TAB),
        white: of(WHITE),
        event: of(EVENT) | singles.with_partners(next),
    }
}
