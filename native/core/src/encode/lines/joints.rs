//! Which two bytes a merge can join, so that most borders of words need no check.

use crate::encode::bpe::{Merge, Merges};

/// For each byte, the bytes that a merge joins to it from the right.
pub(crate) struct Joints(Box<[[u64; 4]; 256]>);

impl Joints {
    /// Takes the merges in the order of their ranks; `table` is made of them.
    pub(crate) fn new(table: &Merges, merges: &[Merge]) -> Self {
        let mut ends = vec![[0_u8; 2]; table.tokens()];
        for byte in 0..=u8::MAX {
            ends[table.byte_id(byte) as usize] = [byte, byte];
        }
        let mut joints = Box::new([[0; 4]; 256]);
        for &(left, right, joined) in merges {
            let ([first, left], [right, last]) = (ends[left as usize], ends[right as usize]);
            ends[joined as usize] = [first, last];
            joints[usize::from(left)][usize::from(right) / 64] |= 1 << (right % 64);
        }
        Self(joints)
    }

    /// Whether a merge may join text that ends with `left` to text that begins with `right`.
    #[inline]
    pub(crate) fn may_cross(&self, left: u8, right: u8) -> bool {
        self.0[usize::from(left)][usize::from(right) / 64] >> (right % 64) & 1 == 1
    }
}
