//! Masks by AVX2, two vectors of 32 bytes per block.

#![allow(unsafe_code, reason = "instructions that not every processor has")]

use std::arch::x86_64::{__m256i, _mm256_loadu_si256, _mm256_slli_epi16};

use super::block::{BYTES, Block, Singles};
use super::vectors::{Table, look_up, mask, or};

/// Whether this processor can do it.
#[inline]
pub(super) fn available() -> bool {
    std::arch::is_x86_feature_detected!("avx2")
}

/// Appends the blocks of `chunks`; `next` is the byte after the last. Only where [`available`].
pub(super) fn blocks(chunks: &[[u8; BYTES]], next: u8, out: &mut Vec<Block>) {
    assert!(available(), "the caller asks for AVX2 only where there is");
    // SAFETY: the processor has AVX2.
    unsafe { make_blocks(chunks, next, out) }
}

#[target_feature(enable = "avx2")]
fn make_blocks(chunks: &[[u8; BYTES]], next: u8, out: &mut Vec<Block>) {
    for (at, chunk) in chunks.iter().enumerate() {
        let next = chunks.get(at + 1).map_or(next, |chunk| chunk[0]);
        out.push(block(chunk, next));
    }
}

#[target_feature(enable = "avx2")]
#[inline]
fn block(bytes: &[u8; BYTES], next: u8) -> Block {
    let (low, high) = (half(load(&bytes[..BYTES / 2])), half(load(&bytes[BYTES / 2..])));
    let join = |class: usize| u64::from(low[class]) | (u64::from(high[class]) << 32);
    let singles = Singles { slash: join(7), star: join(8), percent: join(9), colon: join(10), backslash: join(11) };
    let event = join(6) | singles.with_partners(next);
    Block { word: join(0), mark: join(1), newline: join(2), blank: join(3), tab: join(4), white: join(5), event }
}

/// The first 32 bytes of at least as many.
#[target_feature(enable = "avx2")]
#[inline]
#[allow(clippy::cast_ptr_alignment, reason = "the load needs no alignment")]
fn load(bytes: &[u8]) -> __m256i {
    assert!(bytes.len() >= size_of::<__m256i>());
    // SAFETY: there are so many bytes.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

/// The classes of 32 bytes, in the order of [`Block`] and then of [`Singles`].
///
/// A flag is tested by shifting it to the top of its byte. Comparisons and logic on masks read better, but LLVM takes
/// them apart byte by byte.
#[target_feature(enable = "avx2")]
#[inline]
fn half(bytes: __m256i) -> [u32; 12] {
    let (flags, singles) = (look_up(&FLAGS, bytes), look_up(&SINGLES, bytes));
    let letters = or(_mm256_slli_epi16::<7>(flags), _mm256_slli_epi16::<6>(flags));
    let word = or(letters, or(_mm256_slli_epi16::<5>(flags), _mm256_slli_epi16::<4>(flags)));
    let newline = _mm256_slli_epi16::<3>(flags);
    let vertical = _mm256_slli_epi16::<2>(flags);
    let tab = _mm256_slli_epi16::<2>(singles);
    let blank = or(_mm256_slli_epi16::<1>(flags), tab);
    let [slash, star] = [singles, _mm256_slli_epi16::<1>(singles)];
    let [percent, colon] = [_mm256_slli_epi16::<3>(singles), _mm256_slli_epi16::<4>(singles)];
    let backslash = _mm256_slli_epi16::<5>(singles);
    let white = or(or(newline, vertical), blank);
    let no_mark = or(or(word, white), or(backslash, bytes));
    [
        mask(word),
        !mask(no_mark),
        mask(newline),
        mask(blank),
        mask(tab),
        mask(white),
        mask(or(or(flags, bytes), backslash)),
        mask(slash),
        mask(star),
        mask(percent),
        mask(colon),
        mask(backslash),
    ]
}

/// 1: `A-O`, `a-o`. 2: `P-Z`, `p-z`. 4: digits. 8: `_`. 16: newlines. 32: vertical tab and form feed. 64: space.
/// 128: quotes, `#`, `$`.
const FLAGS: Table = {
    let mut tables = [[0; 16]; 2];
    let mut low = 0;
    while low < 16 {
        tables[0][low] = match low {
            0 => 2 | 4 | 64,
            2..=4 | 7 => 1 | 2 | 4 | 128,
            1..=9 => 1 | 2 | 4,
            10 => 1 | 2 | 16,
            11 | 12 => 1 | 32,
            13 => 1 | 16,
            14 => 1,
            _ => 1 | 8,
        };
        low += 1;
    }
    tables[1][0] = 16 | 32;
    tables[1][2] = 64 | 128;
    tables[1][3] = 4;
    tables[1][4] = 1;
    tables[1][5] = 2 | 8;
    tables[1][6] = 1;
    tables[1][7] = 2;
    tables
};

/// One flag a byte. 128: `/`. 64: `*`. 32: tab. 16: `%`. 8: `:`. 4: backslash.
const SINGLES: Table = {
    let mut tables = [[0; 16]; 2];
    let bytes = [b'/', b'*', b'\t', b'%', b':', b'\\'];
    let mut at = 0;
    while at < bytes.len() {
        tables[0][(bytes[at] & 0x0f) as usize] |= 128 >> at;
        tables[1][(bytes[at] >> 4) as usize] |= 128 >> at;
        at += 1;
    }
    tables
};
