//! Merging a word with long runs of one symbol: spaces, a ruler of `=`, zeros, a banner of `*` between slashes.
//!
//! The word is kept as *runs*: a token, and how many times it is repeated. A merge ranks after the merges that made its
//! parts, so all pairs of the lowest rank are joined before any pair that results from them. Each step therefore joins
//! all pairs of one rank. A run of n copies becomes n / 2 copies, paired from the left; where two runs meet, the last
//! token of one joins the first of the other. Runs halve in each step, so there are few steps. Each step visits all
//! runs, so there must be few runs too.

use super::pairs::{NONE, Pairs};

/// The most runs.
const MAX_RUNS: usize = 64;
/// The fewest symbols per run, on average.
const MIN_SYMBOLS: usize = 6;

/// Copies of a token.
struct Run {
    token: u32,
    copies: usize,
    /// The ranks of its merges with itself, if there are copies for it, and with the next run.
    inside: u32,
    at_end: u32,
}

/// Appends the tokens of the symbols to `out`; false, and nothing appended, if they have too many runs. The merges must
/// have borders, that is, tokens that can be taken apart.
pub(crate) fn merge(pairs: &Pairs, symbols: impl Iterator<Item = u32>, out: &mut Vec<u32>) -> bool {
    let Some(mut runs) = find(symbols) else { return false };
    let mut joined = Vec::with_capacity(2 * runs.len());
    loop {
        rank(pairs, &mut runs);
        let best = runs.iter().map(|run| run.inside.min(run.at_end)).min().unwrap_or(NONE);
        if best == NONE {
            break;
        }
        join(&runs, best, pairs.joined(best), &mut joined);
        std::mem::swap(&mut runs, &mut joined);
    }
    for run in runs {
        out.resize(out.len() + run.copies, run.token);
    }
    true
}

/// The runs of a word, if they are few.
fn find(symbols: impl Iterator<Item = u32>) -> Option<Vec<Run>> {
    let (mut runs, mut length) = (Vec::new(), 0);
    for symbol in symbols {
        push(&mut runs, symbol, 1);
        length += 1;
        if runs.len() > MAX_RUNS {
            return None;
        }
    }
    (runs.len() * MIN_SYMBOLS <= length).then_some(runs)
}

/// Appends copies of a token.
#[inline]
fn push(runs: &mut Vec<Run>, token: u32, copies: usize) {
    match runs.last_mut() {
        _ if copies == 0 => {}
        Some(last) if last.token == token => last.copies += copies,
        _ => runs.push(Run { token, copies, inside: NONE, at_end: NONE }),
    }
}

/// Looks up the ranks of all merges.
fn rank(pairs: &Pairs, runs: &mut [Run]) {
    let mut next = None;
    for run in runs.iter_mut().rev() {
        run.inside = if run.copies > 1 { pairs.rank(run.token, run.token) } else { NONE };
        run.at_end = next.map_or(NONE, |next| pairs.rank(run.token, next));
        next = Some(run.token);
    }
}

/// Joins all pairs of a rank; what there is then goes to `joined`.
fn join(runs: &[Run], best: u32, token: u32, joined: &mut Vec<Run>) {
    joined.clear();
    let mut given = 0;
    for run in runs {
        let copies = run.copies - given;
        given = usize::from(run.at_end == best);
        if run.inside == best {
            push(joined, token, copies / 2);
            push(joined, run.token, copies % 2);
        } else {
            push(joined, run.token, copies - given);
            push(joined, token, given);
        }
    }
}
