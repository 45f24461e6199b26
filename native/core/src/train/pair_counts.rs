//! Counting all pairs of texts at once.
//!
//! The positions of a few left tokens at a time are gathered, sorted by token as they are, with the token to the right
//! of each; then every left token has a run of its own, in which the tokens to the right are counted in one small
//! table. Groups of left tokens are independent of each other.

use std::ops::Range;

use rayon::prelude::*;

use super::pairs::Pairs;
use super::texts::{GONE, Texts};
use crate::memory::zeros;

/// Up to so many tokens, all pairs fit into one small table.
const GRID_TOKENS: usize = 512;

/// How many positions a group has at most, if it has more than one left token.
const GROUP_POSITIONS: usize = 1 << 25;

/// What a group gives: its pairs, and their positions one pair after the other.
#[derive(Default)]
struct GroupPairs {
    pairs: Vec<(u32, u32, u64, u32)>,
    positions: Vec<u32>,
}

/// Counts the pairs of neighbouring tokens, of which there are `tokens`, and gives those that occur at least `least`
/// times.
pub(super) fn count_pairs(texts: &Texts, tokens: usize, least: u64) -> Pairs {
    if tokens <= GRID_TOKENS {
        return count_grid(texts, tokens, least);
    }
    let occurrences = count_left(texts, tokens);
    let total: usize = occurrences.iter().sum();
    let limit = (total / rayon::current_num_threads() + 1).min(GROUP_POSITIONS);
    let groups = group(&occurrences, limit);
    let mut pairs = Pairs::default();
    for batch in groups.chunks(rayon::current_num_threads()) {
        let found: Vec<GroupPairs> =
            batch.par_iter().map(|group| count_group(texts, group, &occurrences, least)).collect();
        for GroupPairs { pairs: found, positions } in found {
            pairs.append(&found, &positions);
        }
    }
    pairs
}

/// Counts all pairs of few tokens in one table.
fn count_grid(texts: &Texts, tokens: usize, least: u64) -> Pairs {
    let mut grid = vec![(0_u64, 0_u32); tokens * tokens];
    for (start, end, count, _) in texts.weights.parts(texts.symbols.len()) {
        each_pair(&texts.symbols, start..end, |left, right, _| {
            let cell = &mut grid[left as usize * tokens + right as usize];
            *cell = (cell.0 + count, cell.1 + 1);
        });
    }
    let mut pairs = Pairs::default();
    let mut places = vec![NOWHERE; grid.len()];
    for (cell, &(count, len)) in grid.iter().enumerate().filter(|(_, (count, _))| *count >= least.max(1)) {
        places[cell] = pairs.insert((cell / tokens) as u32, (cell % tokens) as u32, count, len);
    }
    each_pair(&texts.symbols, 0..texts.symbols.len(), |left, right, at| {
        let place = &mut places[left as usize * tokens + right as usize];
        if *place != NOWHERE {
            pairs.set_position(*place, at as u32);
            *place += 1;
        }
    });
    pairs
}

/// How often each token is the left one of a pair, over the distinct texts.
fn count_left(texts: &Texts, tokens: usize) -> Vec<usize> {
    let chunk = (texts.symbols.len() / rayon::current_num_threads()).max(1 << 16);
    let starts: Vec<usize> = (0..texts.symbols.len()).step_by(chunk).collect();
    let count = |start: usize| {
        let mut counts = vec![0_usize; tokens];
        each_pair(&texts.symbols, start..start + chunk, |left, _, _| counts[left as usize] += 1);
        counts
    };
    let add = |mut sum: Vec<usize>, counts: Vec<usize>| {
        sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        sum
    };
    starts.into_par_iter().map(count).reduce(|| vec![0; tokens], add)
}

/// Calls `each` with the tokens of every pair whose left token is in `range`, and its position.
#[inline]
fn each_pair(symbols: &[u32], range: Range<usize>, mut each: impl FnMut(u32, u32, usize)) {
    let end = (range.end + 1).min(symbols.len());
    for (at, pair) in (range.start..).zip(symbols[range.start..end].windows(2)) {
        if pair[0] != GONE && pair[1] != GONE {
            each(pair[0], pair[1], at);
        }
    }
}

/// Cuts the tokens into ranges that have about `limit` occurrences each.
fn group(occurrences: &[usize], limit: usize) -> Vec<Range<u32>> {
    let (mut groups, mut start, mut sum) = (Vec::new(), 0, 0);
    for (token, &count) in (0..).zip(occurrences) {
        if sum > 0 && sum + count > limit {
            groups.push(start..token);
            (start, sum) = (token, 0);
        }
        sum += count;
    }
    groups.push(start..occurrences.len() as u32);
    groups
}

fn count_group(texts: &Texts, group: &Range<u32>, occurrences: &[usize], least: u64) -> GroupPairs {
    let own = &occurrences[group.start as usize..group.end as usize];
    let mut places: Vec<usize> = own
        .iter()
        .scan(0, |end, &count| {
            *end += count;
            Some(*end - count)
        })
        .collect();
    let mut entries: Vec<u64> = zeros(own.iter().sum());
    each_pair(&texts.symbols, 0..texts.symbols.len(), |left, right, at| {
        if group.contains(&left) {
            let place = &mut places[(left - group.start) as usize];
            entries[*place] = u64::from(right) << 32 | at as u64;
            *place += 1;
        }
    });
    let mut counter = Counter::new(occurrences.len());
    let mut found = GroupPairs::default();
    let mut run = entries.as_slice();
    for (left, &count) in (group.start..).zip(own) {
        let (own, rest) = run.split_at(count);
        run = rest;
        counter.count(texts, left, own, least, &mut found);
    }
    found
}

/// Counts by right token.
struct Counter {
    weights: Vec<u64>,
    lengths: Vec<u32>,
    touched: Vec<u32>,
    places: Vec<usize>,
}

const NOWHERE: usize = usize::MAX;

impl Counter {
    fn new(tokens: usize) -> Self {
        Self { weights: vec![0; tokens], lengths: vec![0; tokens], touched: Vec::new(), places: vec![NOWHERE; tokens] }
    }

    fn count(&mut self, texts: &Texts, left: u32, entries: &[u64], least: u64, found: &mut GroupPairs) {
        let mut cursor = 0;
        for (right, position) in entries.iter().copied().map(unpack) {
            let at = right as usize;
            if self.lengths[at] == 0 {
                self.touched.push(right);
            }
            self.lengths[at] += 1;
            self.weights[at] += texts.weights.at(position as usize, &mut cursor);
        }
        for &right in &self.touched {
            let at = right as usize;
            let (count, len) = (std::mem::take(&mut self.weights[at]), std::mem::take(&mut self.lengths[at]));
            self.places[at] = NOWHERE;
            if count >= least {
                self.places[at] = found.positions.len();
                found.positions.resize(found.positions.len() + len as usize, 0);
                found.pairs.push((left, right, count, len));
            }
        }
        self.touched.clear();
        for (right, position) in entries.iter().copied().map(unpack) {
            let place = &mut self.places[right as usize];
            if *place != NOWHERE {
                found.positions[*place] = position;
                *place += 1;
            }
        }
    }
}

fn unpack(entry: u64) -> (u32, u32) {
    ((entry >> 32) as u32, entry as u32)
}
