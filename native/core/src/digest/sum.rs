//! Sums of SHA-256 digests, modulo 2^256.

/// A sum of 32-byte big-endian numbers, modulo 2^256.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DigestSum {
    /// Least significant first.
    limbs: [u64; 4],
}

impl DigestSum {
    /// Adds one digest.
    pub fn add(&mut self, digest: [u8; 32]) {
        let mut carry = false;
        let (chunks, _) = digest.as_chunks::<8>();
        for (limb, chunk) in self.limbs.iter_mut().zip(chunks.iter().rev()) {
            let (sum, over) = limb.overflowing_add(u64::from_be_bytes(*chunk));
            let (sum, over_carry) = sum.overflowing_add(u64::from(carry));
            *limb = sum;
            carry = over || over_carry;
        }
    }

    /// The sum as a 32-byte big-endian number.
    pub fn to_bytes(self) -> [u8; 32] {
        let mut bytes = [0; 32];
        for (chunk, limb) in bytes.chunks_exact_mut(8).zip(self.limbs.iter().rev()) {
            chunk.copy_from_slice(&limb.to_be_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_carry_over_all_limbs_and_wrap() {
        let mut sum = DigestSum::default();
        sum.add([0xFF; 32]);
        assert_eq!(sum.to_bytes(), [0xFF; 32]);
        let mut two = [0; 32];
        two[31] = 2;
        sum.add(two);
        two[31] = 1;
        assert_eq!(sum.to_bytes(), two);
    }

    #[test]
    fn bytes_are_big_endian() {
        let mut sum = DigestSum::default();
        let digest = std::array::from_fn(|index| index as u8);
        sum.add(digest);
        assert_eq!(sum.to_bytes(), digest);
    }
}
