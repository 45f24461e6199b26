//! Steps on vectors of 32 bytes, by AVX2, that masks are made with.

#![allow(unsafe_code, reason = "instructions that not every processor has")]

use std::arch::x86_64::{
    __m256i, _mm_loadu_si128, _mm256_and_si256, _mm256_broadcastsi128_si256, _mm256_movemask_epi8, _mm256_or_si256,
    _mm256_set1_epi8, _mm256_shuffle_epi8, _mm256_srli_epi16,
};

/// The top bit of each byte.
#[target_feature(enable = "avx2")]
#[inline]
pub(crate) fn mask(bytes: __m256i) -> u32 {
    _mm256_movemask_epi8(bytes).cast_unsigned()
}

#[target_feature(enable = "avx2")]
#[inline]
pub(crate) fn or(left: __m256i, right: __m256i) -> __m256i {
    _mm256_or_si256(left, right)
}

/// Flags by the lower and by the upper four bits of a byte: a byte has those that are in both.
pub(crate) type Table = [[u8; 16]; 2];

/// The flags of each byte.
#[target_feature(enable = "avx2")]
#[inline]
pub(crate) fn look_up(table: &Table, bytes: __m256i) -> __m256i {
    let nibble = _mm256_set1_epi8(0x0f);
    let high = _mm256_and_si256(_mm256_srli_epi16::<4>(bytes), nibble);
    let low = _mm256_and_si256(bytes, nibble);
    _mm256_and_si256(shuffle(&table[0], low), shuffle(&table[1], high))
}

#[target_feature(enable = "avx2")]
#[inline]
fn shuffle(table: &[u8; 16], indices: __m256i) -> __m256i {
    // SAFETY: the table is 16 bytes long, and the load needs no alignment.
    let table = unsafe { _mm_loadu_si128(table.as_ptr().cast()) };
    _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table), indices)
}
