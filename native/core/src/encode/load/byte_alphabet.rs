//! The byte alphabet of byte-level BPE: each byte as one printable character.
//!
//! As in GPT-2, a printable Latin-1 character represents its own byte, and the other bytes, in order, are the
//! characters from U+0100 on.

/// Whether the byte's own character represents it.
const fn is_printable(byte: u32) -> bool {
    matches!(byte, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF)
}

/// The byte that each character below U+0144 represents, or 256.
static BYTES: [u16; 0x144] = bytes();

const fn bytes() -> [u16; 0x144] {
    let mut table = [256; 0x144];
    let (mut byte, mut others) = (0, 0);
    while byte < 256 {
        if is_printable(byte) {
            table[byte as usize] = byte as u16;
        } else {
            table[0x100 + others] = byte as u16;
            others += 1;
        }
        byte += 1;
    }
    table
}

/// Returns the bytes that `token` spells, or none if it has a character outside the alphabet.
pub(crate) fn decode(token: &str) -> Option<Vec<u8>> {
    token.chars().map(|char| BYTES.get(char as usize).and_then(|&byte| u8::try_from(byte).ok())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_alphabet_has_each_byte_once_and_spells_as_published() {
        let mut found: Vec<u16> = BYTES.iter().copied().filter(|&byte| byte < 256).collect();
        found.sort_unstable();
        assert_eq!(found, (0..256).collect::<Vec<u16>>());
        assert_eq!(decode("ĠintĊ").as_deref(), Some(&b" int\n"[..]));
        assert_eq!(decode("Ã©").as_deref(), Some("é".as_bytes()));
        assert_eq!(decode("名"), None);
    }
}
