//! Masks by AVX2, two vectors of 32 bytes per block.

#![allow(unsafe_code, reason = "instructions that not every processor has")]

use std::arch::x86_64::{__m256i, _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_set1_epi8, _mm256_slli_epi16};

use super::masks::{BYTES, Block, Masks, Ours, append as append_masks};
use crate::blocks::vectors::{Table, look_up, mask, or};

/// Whether this processor can do it.
#[inline]
pub(super) fn available() -> bool {
    std::arch::is_x86_feature_detected!("avx2")
        && std::arch::is_x86_feature_detected!("bmi1")
        && std::arch::is_x86_feature_detected!("bmi2")
}

/// Appends the starts of `text`; `JOINS` is for `cpp-words-2`. Only where [`available`].
pub(super) fn append<const JOINS: bool>(text: &[u8], out: &mut Vec<Block>) {
    assert!(available(), "the caller asks for AVX2 only where there is");
    // SAFETY: the processor has AVX2, BMI1 and BMI2.
    unsafe { append_blocks::<JOINS>(text, out) }
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
fn append_blocks<const JOINS: bool>(text: &[u8], out: &mut Vec<Block>) {
    append_masks(text, Ours::<JOINS>::default(), |bytes| masks(bytes), out);
}

#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn masks(bytes: &[u8; BYTES]) -> Masks {
    let (low, high) = (half(load(&bytes[..BYTES / 2])), half(load(&bytes[BYTES / 2..])));
    let join = |class: usize| u64::from(low[class]) | (u64::from(high[class]) << 32);
    Masks {
        word: join(0),
        mark: join(1),
        newline: join(2),
        blank: join(3),
        tab: join(4),
        digit: join(5),
        sign: join(6),
        plus: join(7),
        quote: join(8),
        prefix: join(9),
        closing: join(10),
        colon: join(11),
    }
}

/// The first 32 bytes of at least as many.
#[target_feature(enable = "avx2")]
#[inline]
#[allow(clippy::cast_ptr_alignment, reason = "the load needs no alignment")]
pub(super) fn load(bytes: &[u8]) -> __m256i {
    assert!(bytes.len() >= size_of::<__m256i>());
    // SAFETY: there are so many bytes.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

/// The masks of 32 bytes, in the order of [`Masks`].
///
/// A flag is tested by shifting it to the top of its byte: LLVM takes comparisons and logic on masks apart byte by
/// byte.
#[target_feature(enable = "avx2")]
#[inline]
fn half(bytes: __m256i) -> [u32; 12] {
    let (flags, singles) = (look_up(&FLAGS, bytes), look_up(&SINGLES, bytes));
    let letters = or(_mm256_slli_epi16::<7>(flags), _mm256_slli_epi16::<6>(flags));
    let digit = _mm256_slli_epi16::<5>(flags);
    let word = or(letters, or(digit, _mm256_slli_epi16::<4>(flags)));
    let newline = _mm256_slli_epi16::<3>(flags);
    let vertical = _mm256_slli_epi16::<2>(flags);
    let tab = _mm256_slli_epi16::<4>(singles);
    let blank = or(_mm256_slli_epi16::<1>(flags), tab);
    let backslash = _mm256_slli_epi16::<3>(singles);
    let prefix = or(or(_mm256_slli_epi16::<2>(singles), _mm256_slli_epi16::<1>(singles)), singles);
    let no_mark = or(or(or(word, newline), or(vertical, blank)), or(backslash, bytes));
    [
        mask(word),
        !mask(no_mark),
        mask(newline),
        mask(blank),
        mask(tab),
        mask(digit),
        mask(_mm256_slli_epi16::<7>(singles)),
        mask(_mm256_slli_epi16::<5>(singles)),
        mask(flags),
        mask(prefix),
        mask(_mm256_slli_epi16::<6>(singles)),
        mask(_mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(b':'.cast_signed()))),
    ]
}

/// 1: `A-O`, `a-o`. 2: `P-Z`, `p-z`. 4: digits. 8: `_`. 16: newlines. 32: vertical tab and form feed. 64: space. 128:
/// quotes.
const FLAGS: Table = {
    let mut tables = [[0; 16]; 2];
    let mut low = 0;
    while low < 16 {
        tables[0][low] = match low {
            0 => 2 | 4 | 64,
            2 | 7 => 1 | 2 | 4 | 128,
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

/// One flag a line: `-` and `.`, `)`, `+`, tab, backslash, `8`, `L`, and `U`, `u`, `R`, `r`.
const SINGLES: Table = {
    let mut tables = [[0; 16]; 2];
    let bytes = [b"-.", b"))", b"++", b"\t\t", b"\\\\", b"88", b"LL", b"Ur"];
    let mut flag = 0;
    while flag < 8 {
        let mut at = 0;
        while at < 2 {
            let byte = bytes[flag][at] as usize;
            tables[0][byte & 0x0f] |= 1 << flag;
            tables[1][byte >> 4] |= 1 << flag;
            at += 1;
        }
        flag += 1;
    }
    tables
};
