//! Texts under merging: segmentation, pair counts and occurrences, kept exact step by step.

use std::ops::Range;

use super::group_cap::GroupCap;
use super::pair_counts::count_pairs;
use super::pairs::Pairs;
use super::texts::{GONE, Texts};
use crate::memory::prefetch;

/// How many places before its turn a place is asked for from memory.
const AHEAD: usize = 24;

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

/// Texts in one flat array, one entry per token at the start: a token's number is at its first and at its last
/// entry, so that both neighbours are one look away, and nothing moves when tokens merge.
///
/// Only pairs that occur at least `least` times are kept. A pair's count never grows once its tokens are made, so what
/// is left out cannot come up before the kept ones are down to `least`.
pub(super) struct Engine {
    texts: Texts,
    /// The length of each token in entries.
    lengths: Vec<u32>,
    least: u64,
    pairs: Pairs,
    gained_left: Neighbours,
    gained_right: Neighbours,
    lost_left: Neighbours,
    lost_right: Neighbours,
    /// Kept for its memory.
    by_group: Vec<u64>,
}

impl Engine {
    /// Counts the pairs of texts of which `tokens` tokens are known.
    pub(super) fn new(texts: Texts, tokens: u32, least: u64) -> Self {
        Self {
            pairs: count_pairs(&texts, tokens as usize, least),
            lengths: vec![1; tokens as usize],
            texts,
            least,
            gained_left: Neighbours::default(),
            gained_right: Neighbours::default(),
            lost_left: Neighbours::default(),
            lost_right: Neighbours::default(),
            by_group: Vec::new(),
        }
    }

    /// The tokens of the text that was laid out at a place, as they are now.
    pub(super) fn tokens_at(&self, mut place: usize) -> impl Iterator<Item = u32> {
        std::iter::from_fn(move || {
            let token = self.texts.symbols[place];
            place += *self.lengths.get(token as usize)? as usize;
            Some(token)
        })
    }

    /// How often a pair must occur to be kept.
    pub(super) fn least(&self) -> u64 {
        self.least
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

    /// What a pair is worth if no group may have more of it than the cap allows.
    pub(super) fn capped(&mut self, index: u32, cap: &GroupCap) -> u64 {
        let (left, right, _) = self.pair(index);
        let (left_len, mut cursor) = (self.lengths[left as usize] as usize, 0);
        let Texts { symbols, weights, sizes } = &self.texts;
        self.by_group.clear();
        self.by_group.resize(sizes.len(), 0);
        for place in self.pairs.places(index) {
            let start = self.pairs.position(place) as usize;
            if symbols[start] == left && symbols[start + left_len] == right {
                let count = weights.at(start, &mut cursor);
                self.by_group[usize::from(weights.group(cursor))] += count;
            }
        }
        cap.worth(&self.by_group, sizes)
    }

    /// Notes what a pair is worth, which is at most its count and never grows.
    pub(super) fn set_worth(&mut self, index: u32, worth: u64) {
        self.pairs.set_worth(index, worth);
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
        let (left_len, right_len) = (self.lengths[left as usize] as usize, self.lengths[right as usize] as usize);
        let mut cursor = 0;
        for place in places.clone() {
            if let Some(soon) = (place + AHEAD < places.end).then(|| self.pairs.position(place + AHEAD)) {
                prefetch(&self.texts.symbols[soon as usize]);
            }
            let start = self.pairs.position(place) as usize;
            let middle = start + left_len;
            let symbols = &mut self.texts.symbols;
            if symbols[start] != left || symbols[middle] != right {
                continue;
            }
            let end = middle + right_len;
            let (before, after) = (symbols[start - 1], symbols[end]);
            symbols[middle - 1] = GONE;
            symbols[middle] = GONE;
            symbols[start] = token;
            symbols[end - 1] = token;
            let weight = self.texts.weights.at(start, &mut cursor);
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
        self.gained_left.add_at(before, weight, start - self.lengths[before as usize] as usize);
    }

    /// Moves what one step gained and lost into the pairs.
    fn settle(&mut self, (left, right): (u32, u32), token: u32) -> Range<u32> {
        let pairs = &mut self.pairs;
        self.lost_left.drain(|before, weight| pairs.lose(before, left, weight));
        self.lost_right.drain(|after, weight| pairs.lose(right, after, weight));
        pairs.compact();
        let first = pairs.next();
        add_pairs(pairs, self.least, &mut self.gained_left, |before| (before, token));
        add_pairs(pairs, self.least, &mut self.gained_right, |after| (token, after));
        first..pairs.next()
    }
}

/// Makes a pair of each neighbour that is left with a count of `least` or more, its positions in the order in which
/// they were met.
fn add_pairs(pairs: &mut Pairs, least: u64, gained: &mut Neighbours, pair: impl Fn(u32) -> (u32, u32)) {
    const NOWHERE: u64 = u64::MAX;
    let Neighbours { weight, seen, touched, places } = gained;
    for &token in touched.iter() {
        let at = token as usize;
        let (left, right) = pair(token);
        // From here on the entry says where the next position of this pair goes.
        weight[at] = if weight[at] < least { NOWHERE } else { pairs.insert(left, right, weight[at], seen[at]) as u64 };
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
