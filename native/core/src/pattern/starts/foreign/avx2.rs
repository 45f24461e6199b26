//! The classes of bytes by AVX2, two vectors of 32 bytes per block.

#![allow(unsafe_code, reason = "instructions that not every processor has")]

use std::arch::x86_64::{__m256i, _mm256_andnot_si256, _mm256_cmpeq_epi8, _mm256_set1_epi8, _mm256_slli_epi16};

use super::super::avx2::{available, load};
use super::super::masks::{BYTES, Block, append as append_blocks};
use super::bytes::Bytes;
use super::words::{Known, Words};
use crate::blocks::vectors::{Table, look_up, mask, or};

/// Appends the starts of `text`. Only where AVX2 is [`available`].
pub(super) fn append<K: Known>(text: &[u8], out: &mut Vec<Block>) {
    assert!(available(), "the caller asks for AVX2 only where there is");
    // SAFETY: the processor has AVX2, BMI1 and BMI2.
    unsafe { append_known::<K>(text, out) }
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
fn append_known<K: Known>(text: &[u8], out: &mut Vec<Block>) {
    append_blocks(text, Words::<K>::default(), |bytes| masks(bytes), out);
}

#[target_feature(enable = "avx2")]
#[inline]
pub(in super::super) fn masks(bytes: &[u8; BYTES]) -> Bytes {
    let (low, high) = (half(load(&bytes[..BYTES / 2])), half(load(&bytes[BYTES / 2..])));
    let join = |class: usize| u64::from(low[class]) | (u64::from(high[class]) << 32);
    Bytes {
        letter: join(0),
        small: join(1),
        digit: join(2),
        newline: join(3),
        blank: join(4),
        space: join(5),
        apostrophe: join(6),
        slash: join(7),
        underscore: join(8),
        control: join(9),
        wide: join(10),
    }
}

/// The masks of 32 bytes, in the order of [`Bytes`]. A flag is tested by shifting it to the top of its byte.
#[target_feature(enable = "avx2")]
#[inline]
fn half(bytes: __m256i) -> [u32; 11] {
    let flags = look_up(&FLAGS, bytes);
    let newline = _mm256_slli_epi16::<4>(flags);
    let other_blank = _mm256_slli_epi16::<3>(flags);
    let space = _mm256_slli_epi16::<2>(flags);
    let delete = equal(bytes, 0x7f);
    let control = or(_mm256_andnot_si256(or(newline, other_blank), flags), delete);
    [
        mask(or(_mm256_slli_epi16::<7>(flags), _mm256_slli_epi16::<6>(flags))),
        mask(_mm256_slli_epi16::<2>(bytes)),
        mask(_mm256_slli_epi16::<5>(flags)),
        mask(newline),
        mask(or(other_blank, space)),
        mask(space),
        mask(_mm256_slli_epi16::<1>(flags)),
        mask(equal(bytes, b'/')),
        mask(equal(bytes, b'_')),
        mask(control),
        mask(bytes),
    ]
}

/// Which bytes are `byte`.
#[target_feature(enable = "avx2")]
#[inline]
fn equal(bytes: __m256i, byte: u8) -> __m256i {
    _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(byte.cast_signed()))
}

/// 1: `A-O`, `a-o`. 2: `P-Z`, `p-z`. 4: digits. 8: newlines. 16: tab, vertical tab and form feed. 32: space. 64:
/// apostrophe. 128: all below the space.
const FLAGS: Table = {
    let mut tables = [[0; 16]; 2];
    let mut low = 0;
    while low < 16 {
        let flags = match low {
            0 => 2 | 4 | 32,
            7 => 1 | 2 | 4 | 64,
            9 => 1 | 2 | 4 | 16,
            1..=8 => 1 | 2 | 4,
            10 => 1 | 2 | 8,
            11 | 12 => 1 | 16,
            13 => 1 | 8,
            _ => 1,
        };
        tables[0][low] = flags | 128;
        low += 1;
    }
    tables[1] = [8 | 16 | 128, 128, 32 | 64, 4, 1, 2, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0];
    tables
};
