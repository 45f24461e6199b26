//! Masks by AVX-512, a block at once, and the places of bits.

#![allow(unsafe_code, reason = "instructions that not every processor has")]

use std::arch::x86_64::{
    __m512i, _mm512_add_epi32, _mm512_castsi512_si128, _mm512_cvtepu8_epi32, _mm512_extracti32x4_epi32,
    _mm512_maskz_compress_epi8, _mm512_maskz_permutex2var_epi8, _mm512_movepi8_mask, _mm512_set1_epi8,
    _mm512_set1_epi32, _mm512_test_epi8_mask,
};

use super::masks::{BYTES, Block, Masks, Ours, append as append_masks};

/// Whether this processor can do it.
#[inline]
pub(super) fn available() -> bool {
    std::arch::is_x86_feature_detected!("avx512f")
        && std::arch::is_x86_feature_detected!("avx512bw")
        && std::arch::is_x86_feature_detected!("avx512vbmi")
        && std::arch::is_x86_feature_detected!("avx512vbmi2")
        && std::arch::is_x86_feature_detected!("bmi1")
        && std::arch::is_x86_feature_detected!("bmi2")
        && std::arch::is_x86_feature_detected!("popcnt")
}

/// Appends the starts of `text`; `JOINS` is for `cpp-words-2`. Only where [`available`].
pub(super) fn append<const JOINS: bool>(text: &[u8], out: &mut Vec<Block>) {
    assert!(available(), "the caller asks for AVX-512 only where there is");
    // SAFETY: the processor has what it takes.
    unsafe { append_blocks::<JOINS>(text, out) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,bmi1,bmi2,popcnt")]
fn append_blocks<const JOINS: bool>(text: &[u8], out: &mut Vec<Block>) {
    append_masks(text, Ours::<JOINS>::default(), |bytes| masks(bytes), out);
}

/// Writes `base` plus the place of each bit to the first of `places`, and anything behind them.
///
/// # Safety
/// Only where [`available`].
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,popcnt")]
pub(super) fn put(base: u32, bits: u64, places: &mut [u32; BYTES]) -> usize {
    let count = bits.count_ones() as usize;
    let found = _mm512_maskz_compress_epi8(bits, vector(&PLACES));
    let quarters = [
        _mm512_castsi512_si128(found),
        _mm512_extracti32x4_epi32::<1>(found),
        _mm512_extracti32x4_epi32::<2>(found),
        _mm512_extracti32x4_epi32::<3>(found),
    ];
    for (quarter, places) in quarters.into_iter().zip(places.as_chunks_mut().0).take(count.div_ceil(BYTES / 4)) {
        *places = numbers(_mm512_add_epi32(_mm512_cvtepu8_epi32(quarter), _mm512_set1_epi32(base.cast_signed())));
    }
    count
}

/// The masks of 64 bytes.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
#[inline]
pub(super) fn masks(bytes: &[u8; BYTES]) -> Masks {
    let bytes = vector(bytes);
    let ascii = !_mm512_movepi8_mask(bytes);
    let look_up = |table: &Table| _mm512_maskz_permutex2var_epi8(ascii, vector(&table[0]), bytes, vector(&table[1]));
    let (flags, singles) = (look_up(&FLAGS), look_up(&SINGLES));
    let test = |flags: __m512i, flag: u8| _mm512_test_epi8_mask(flags, _mm512_set1_epi8(flag.cast_signed()));
    Masks {
        word: test(flags, 1),
        mark: test(flags, 2),
        newline: test(flags, 4),
        blank: test(flags, 8),
        tab: test(flags, 16),
        digit: test(flags, 32),
        sign: test(flags, 64),
        plus: test(flags, 128),
        quote: test(singles, 1),
        prefix: test(singles, 2),
        closing: test(singles, 4),
        colon: test(singles, 8),
    }
}

#[target_feature(enable = "avx512f")]
#[inline]
fn vector(bytes: &[u8; BYTES]) -> __m512i {
    // SAFETY: as many bytes, of which any are valid.
    unsafe { std::mem::transmute(*bytes) }
}

#[target_feature(enable = "avx512f")]
#[inline]
fn numbers(vector: __m512i) -> [u32; BYTES / 4] {
    // SAFETY: as many bytes, of which any are valid.
    unsafe { std::mem::transmute(vector) }
}

/// The numbers from 0 on.
const PLACES: [u8; BYTES] = {
    let mut places = [0; BYTES];
    let mut at = 0;
    while at < BYTES {
        places[at] = at as u8;
        at += 1;
    }
    places
};

/// For each ASCII byte its flags.
type Table = [[u8; BYTES]; 2];

/// The flags of the first eight of [`Masks`].
const FLAGS: Table = {
    let words = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";
    let mut table = table(&[words, b"", b"\r\n", b" \t", b"\t", b"0123456789", b"-.", b"+"]);
    let mut byte = 0;
    while byte < 2 * BYTES {
        let flags = &mut table[byte / BYTES][byte % BYTES];
        if *flags & (1 | 4 | 8) == 0 && !matches!(byte as u8, b'\\' | 0x0b | 0x0c) {
            *flags |= 2;
        }
        byte += 1;
    }
    table
};

/// The flags of the others.
const SINGLES: Table = table(&[b"\"'", b"8uULRr", b")", b":"]);

/// The table in which each of `classes` has its bytes.
const fn table(classes: &[&[u8]]) -> Table {
    let mut table = [[0; BYTES]; 2];
    let mut class = 0;
    while class < classes.len() {
        let mut at = 0;
        while at < classes[class].len() {
            let byte = classes[class][at] as usize;
            table[byte / BYTES][byte % BYTES] |= 1 << class;
            at += 1;
        }
        class += 1;
    }
    table
}
