//! Texts under merging: segmentation, pair counts and occurrences, kept exact step by step.

use std::ops::Range;

use super::pairs::Pairs;
use super::tokens::byte_numbers;
use super::{BYTES, Word};
use crate::{Error, Result};

/// Between words, and inside tokens.
const GONE: u32 = u32::MAX;

/// The tokens beside the places of one step, on one side: what was gained or lost with each.
#[derive(Default)]
struct Neighbours {
    weight: Vec<u64>,
    seen: Vec<u32>,
    touched: Vec<u32>,
    places: Vec<(u32, u32)>,
}

impl Neighbours {
    fn add(&mut self, token: u32, weight: u64) {
        let at = token as usize;
        if self.weight.len() <= at {
            self.weight.resize(at + 1, 0);
            self.seen.resize(at + 1, 0);
        }
        if self.seen[at] == 0 {
            self.touched.push(token);
        }
        self.seen[at] += 1;
        self.weight[at] += weight;
    }

    fn add_at(&mut self, token: u32, weight: u64, position: usize) {
        self.add(token, weight);
        self.places.push((token, position as u32));
    }

    /// Gives each token with its weight, and forgets them.
    fn drain(&mut self, mut each: impl FnMut(u32, u64)) {
        for token in self.touched.drain(..) {
            self.seen[token as usize] = 0;
            each(token, std::mem::take(&mut self.weight[token as usize]));
        }
    }
}

/// Which count the word at a position has: words lie in order of falling count, so this is a short sorted list.
struct Weights {
    starts: Vec<usize>,
    counts: Vec<u64>,
}

impl Weights {
    /// Looks up positions that never fall; `cursor` starts at 0.
    fn at(&self, position: usize, cursor: &mut usize) -> u64 {
        let next = *cursor + 1;
        if self.starts.get(next).is_some_and(|&start| start <= position) {
            *cursor += self.starts[next..].partition_point(|&start| start <= position);
        }
        self.counts[*cursor]
    }
}

/// All words in one flat array, one entry a byte: a token's number stands at its first and at its last byte, so
/// that both neighbours are one look away, and nothing moves when tokens merge.
pub(super) struct Engine {
    symbols: Vec<u32>,
    lengths: Vec<usize>,
    weights: Weights,
    pairs: Pairs,
    gained_left: Neighbours,
    gained_right: Neighbours,
    lost_left: Neighbours,
    lost_right: Neighbours,
}

impl Engine {
    /// Lays out the words as single bytes and counts their pairs. The order of the words does not matter.
    pub(super) fn new(mut words: Vec<Word<'_>>) -> Result<Self> {
        words.retain(|word| word.bytes.len() > 1);
        words.sort_by_key(|word| std::cmp::Reverse(word.count));
        check_bounds(&words)?;
        let (symbols, weights) = lay_out(&words);
        let mut engine = Self {
            symbols,
            lengths: vec![1; BYTES as usize],
            weights,
            pairs: Pairs::default(),
            gained_left: Neighbours::default(),
            gained_right: Neighbours::default(),
            lost_left: Neighbours::default(),
            lost_right: Neighbours::default(),
        };
        engine.count_byte_pairs();
        Ok(engine)
    }

    /// The pairs and their counts.
    pub(super) fn pairs(&self) -> &Pairs {
        &self.pairs
    }

    /// The tokens of a pair, and how often it occurs.
    pub(super) fn pair(&self, index: u32) -> (u32, u32, u64) {
        let pair = self.pairs.get(index);
        (pair.left, pair.right, pair.count)
    }

    /// Makes `left` + `right` the next token everywhere, leftmost first, and gives the indices of the new pairs.
    pub(super) fn merge(&mut self, left: u32, right: u32) -> Range<u32> {
        let token = self.lengths.len() as u32;
        self.lengths.push(self.lengths[left as usize] + self.lengths[right as usize]);
        if let Some(index) = self.pairs.find(left, right) {
            let places = self.pairs.remove(index);
            self.rewrite(places, (left, right), token);
            return self.settle((left, right), token);
        }
        self.pairs.next()..self.pairs.next()
    }

    fn rewrite(&mut self, places: Range<usize>, (left, right): (u32, u32), token: u32) {
        let (left_len, right_len) = (self.lengths[left as usize], self.lengths[right as usize]);
        let mut cursor = 0;
        for place in places {
            let start = self.pairs.position(place) as usize;
            let middle = start + left_len;
            if self.symbols[start] != left || self.symbols[middle] != right {
                continue;
            }
            let end = middle + right_len;
            let (before, after) = (self.symbols[start - 1], self.symbols[end]);
            self.symbols[middle - 1] = GONE;
            self.symbols[middle] = GONE;
            self.symbols[start] = token;
            self.symbols[end - 1] = token;
            let weight = self.weights.at(start, &mut cursor);
            if before != GONE {
                self.meet_left(before, (left, token), weight, start);
            }
            if after != GONE {
                self.lost_right.add(after, weight);
                self.gained_right.add_at(after, weight, start);
            }
        }
    }

    /// Books the pair on the left of a merged place. A neighbour that this very step made has just gained `left`
    /// on its right, and loses it again.
    fn meet_left(&mut self, before: u32, (left, token): (u32, u32), weight: u64, start: usize) {
        if before == token {
            self.gained_right.weight[left as usize] -= weight;
        } else {
            self.lost_left.add(before, weight);
        }
        self.gained_left.add_at(before, weight, start - self.lengths[before as usize]);
    }

    /// Moves what one step gained and lost into the pairs.
    fn settle(&mut self, (left, right): (u32, u32), token: u32) -> Range<u32> {
        let pairs = &mut self.pairs;
        self.lost_left.drain(|before, weight| pairs.lose(before, left, weight));
        self.lost_right.drain(|after, weight| pairs.lose(right, after, weight));
        pairs.compact();
        let first = pairs.next();
        add_pairs(pairs, &mut self.gained_left, |before| (before, token));
        add_pairs(pairs, &mut self.gained_right, |after| (token, after));
        first..pairs.next()
    }

    fn count_byte_pairs(&mut self) {
        let mut cursor = 0;
        let mut grid = vec![(0_u64, 0_u32); (BYTES * BYTES) as usize];
        for (at, pair) in self.symbols.windows(2).enumerate() {
            if let Some(cell) = cell(pair) {
                grid[cell].0 += self.weights.at(at, &mut cursor);
                grid[cell].1 += 1;
            }
        }
        let mut places = vec![0; grid.len()];
        for (cell, &(count, len)) in grid.iter().enumerate().filter(|(_, (_, len))| *len > 0) {
            places[cell] = self.pairs.insert(cell as u32 / BYTES, cell as u32 % BYTES, count, len);
        }
        for (at, pair) in self.symbols.windows(2).enumerate() {
            if let Some(cell) = cell(pair) {
                self.pairs.set_position(places[cell], at as u32);
                places[cell] += 1;
            }
        }
    }
}

fn cell(pair: &[u32]) -> Option<usize> {
    (pair[0] != GONE && pair[1] != GONE).then(|| (pair[0] * BYTES + pair[1]) as usize)
}

/// Makes a pair of each neighbour that is left with a count, its positions in the order in which they were met.
fn add_pairs(pairs: &mut Pairs, gained: &mut Neighbours, pair: impl Fn(u32) -> (u32, u32)) {
    const NOWHERE: u64 = u64::MAX;
    let Neighbours { weight, seen, touched, places } = gained;
    for &token in touched.iter() {
        let at = token as usize;
        let (left, right) = pair(token);
        // From here on the entry says where the next position of this pair goes.
        weight[at] = if weight[at] == 0 { NOWHERE } else { pairs.insert(left, right, weight[at], seen[at]) as u64 };
    }
    for (token, position) in places.drain(..) {
        let place = &mut weight[token as usize];
        if *place != NOWHERE {
            pairs.set_position(*place as usize, position);
            *place += 1;
        }
    }
    gained.drain(|_, _| ());
}

fn check_bounds(words: &[Word<'_>]) -> Result<()> {
    let bytes: usize = words.iter().map(|word| word.bytes.len() + 1).sum();
    if bytes >= GONE as usize {
        return Err(Error::invalid(format!("distinct words of {bytes} bytes in all: 4 GiB is the most")));
    }
    let total: u128 = words.iter().map(|word| u128::from(word.count) * word.bytes.len() as u128).sum();
    if total > u128::from(u64::MAX) {
        return Err(Error::invalid(format!("the words stand for {total} bytes of text: more than 64-bit counts hold")));
    }
    Ok(())
}

fn lay_out(words: &[Word<'_>]) -> (Vec<u32>, Weights) {
    let numbers = byte_numbers();
    let mut symbols = Vec::with_capacity(words.iter().map(|word| word.bytes.len() + 1).sum::<usize>() + 1);
    let mut weights = Weights { starts: Vec::new(), counts: Vec::new() };
    symbols.push(GONE);
    for word in words {
        if weights.counts.last() != Some(&word.count) {
            weights.starts.push(symbols.len());
            weights.counts.push(word.count);
        }
        symbols.extend(word.bytes.iter().map(|&byte| numbers[usize::from(byte)]));
        symbols.push(GONE);
    }
    (symbols, weights)
}
