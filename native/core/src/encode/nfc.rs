//! Normalization Form C, as `tokenizers` has it: by the same crate, and so by the same version of Unicode.

use std::borrow::Cow;

use unicode_normalization_alignments::{IsNormalized, UnicodeNormalization, is_nfc_quick};

/// The first byte of U+0300: NFC keeps every character before it, whatever is beside it.
const FIRST_BYTE: u8 = 0xCC;

/// Whether NFC keeps a text; false if that takes more than a look at each character.
///
/// Bytes that are not UTF-8 are taken for U+FFFD, which stays as it is.
pub(crate) fn is_surely_kept(text: &[u8]) -> bool {
    let largest = text.iter().fold(0, |largest, byte| largest.max(*byte));
    largest < FIRST_BYTE || is_nfc_quick(String::from_utf8_lossy(text).chars()) == IsNormalized::Yes
}

/// A text in NFC; as it is if it is not UTF-8.
pub(crate) fn nfc(text: &[u8]) -> Cow<'_, [u8]> {
    match std::str::from_utf8(text) {
        Ok(valid) if !is_surely_kept(text) => {
            Cow::Owned(valid.nfc().map(|(letter, _)| letter).collect::<String>().into_bytes())
        }
        _ => Cow::Borrowed(text),
    }
}
