//! The merging of a word that is one unit again and again: spaces, a ruler of `=`, zeros.
//!
//! As merges rank behind those that made their parts, all pairs of the most frequent token join before anything that comes of
//! them. So the tokens are always copies of one and a short rest, and a step halves the copies or joins two tokens of the rest.

use super::pairs::{NONE, Pairs};

/// Appends what `count` copies of `unit` become; the merges must be those of tokens that can be taken apart.
pub(super) fn merge(pairs: &Pairs, unit: u32, count: usize, out: &mut Vec<u32>) {
    let (mut unit, mut copies, mut rest) = (unit, count, Vec::new());
    loop {
        if copies == 0 && !rest.is_empty() {
            (unit, copies) = (rest.remove(0), 1);
        }
        while rest.first() == Some(&unit) {
            rest.remove(0);
            copies += 1;
        }
        let of_copies = if copies > 1 { pairs.rank(unit, unit) } else { NONE };
        let at_border = rest.first().map_or(NONE, |&first| pairs.rank(unit, first));
        let (in_rest, at) =
            (1..rest.len()).map(|at| (pairs.rank(rest[at - 1], rest[at]), at)).min().unwrap_or((NONE, 0));
        let best = of_copies.min(at_border).min(in_rest);
        if best == NONE {
            break;
        }
        let joined = pairs.joined(best);
        if best == of_copies {
            if copies % 2 == 1 {
                rest.insert(0, unit);
            }
            (unit, copies) = (joined, copies / 2);
        } else if best == at_border {
            rest[0] = joined;
            copies -= 1;
        } else {
            rest[at - 1] = joined;
            rest.remove(at);
        }
    }
    out.resize(out.len() + copies, unit);
    out.extend(rest);
}
