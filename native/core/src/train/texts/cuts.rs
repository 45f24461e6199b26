//! Where texts may be cut, because no merge of a round joins what is left and right of there.
//!
//! A round merges only pairs that occur at least `least` times. Each occurrence of a pair `(A, B)` spans a border
//! between two tokens of the text as the round found it: the last one in `A` and the first one in `B`. Two occurrences
//! span two borders. So the pair of those two tokens occurs at least as often, and a border whose pair occurs less than
//! `least` times stays to the end of the round. What is between two such borders is merged as if nothing were around
//! it.
//!
//! To leave a border out of the cuts is never wrong, it only costs memory. So pairs may share a counter, which then
//! stands for more than it should, and counters end where they are high enough.

use std::sync::atomic::{AtomicU32, Ordering};

use rayon::prelude::*;

use super::chunk::{Chunk, is_one_token, split_token, tokens};
use super::held::Held;
use crate::memory::{prefetch, use_large_pages};

/// The bits of the number of a counter, where several pairs have one.
const COUNTER_BITS: u32 = 22;
/// The most counters of pairs.
const MAX_COUNTERS: u64 = 1 << COUNTER_BITS;

/// How many pairs wait for their counters to come from memory.
const BATCH: usize = 64;

/// The number of a token that occurs too rarely.
const RARE: u32 = u32::MAX;

/// Where the texts of each chunk are cut.
pub(in crate::train) struct Cuts {
    /// Whether each unit is in one part with the unit before it; nothing where all texts are whole.
    joined: Option<Vec<Bits>>,
}

impl Cuts {
    /// Cuts nowhere.
    pub(in crate::train) fn nowhere() -> Self {
        Self { joined: None }
    }

    /// Cuts where the pair, of tokens of which there are `tokens`, occurs less than `least` times.
    pub(in crate::train) fn new(texts: &Held, tokens: u32, least: u64) -> Self {
        if least <= 1 {
            return Self::nowhere();
        }
        let counted = Counted::new(&count_tokens(texts, tokens as usize), least);
        let frequent = count_pairs(texts, &counted, least);
        let join = |chunk| join_units(chunk, &counted, &frequent);
        Self { joined: Some(texts.chunks().par_iter().map(join).collect()) }
    }

    /// The parts of a text whose units begin at `start` in a chunk, and whether each has more than one token.
    #[inline]
    pub(super) fn parts<'t>(
        &self,
        chunk: usize,
        start: usize,
        units: &'t [u16],
    ) -> impl Iterator<Item = (&'t [u16], bool)> {
        let joined = self.joined.as_ref().map(|chunks| &chunks[chunk]);
        let mut at = 0;
        std::iter::from_fn(move || {
            let rest = units.get(at..).filter(|rest| !rest.is_empty())?;
            let length = joined.map_or(rest.len(), |joined| (1 + joined.ones(start + at + 1)).min(rest.len()));
            at += length;
            let part = &rest[..length];
            Some((part, !is_one_token(part)))
        })
    }
}

/// Marks the units that are in one part with the unit before them.
fn join_units(chunk: &Chunk, counted: &Counted, frequent: &Bits) -> Bits {
    let mut joined = Bits(vec![0; chunk.units() / u64::BITS as usize + 1]);
    let mut at = 0;
    for (_, mut units) in chunk.texts() {
        let mut left = RARE;
        while let Some((token, behind)) = split_token(units) {
            let right = counted.numbers[token as usize];
            if counted.counter(left, right).is_some_and(|counter| frequent.get(counter)) {
                joined.set(at);
            }
            let end = at + units.len() - behind.len();
            (at + 1..end).for_each(|half| joined.set(half));
            (at, left, units) = (end, right, behind);
        }
    }
    joined
}

/// The pairs that are counted, those of frequent tokens, and which counter each has.
struct Counted {
    /// The number of each token among the frequent ones, or `RARE`.
    numbers: Vec<u32>,
    frequent: u64,
    counters: u64,
}

impl Counted {
    fn new(occurrences: &[u64], least: u64) -> Self {
        let mut frequent = 0;
        let mut number = |&count: &u64| {
            let number = if count < least { RARE } else { frequent };
            frequent += u32::from(number != RARE);
            number
        };
        let numbers = occurrences.iter().map(&mut number).collect();
        let frequent = u64::from(frequent);
        Self { numbers, frequent, counters: (frequent * frequent).min(MAX_COUNTERS) }
    }

    /// The counter of two tokens by their numbers, if both are frequent.
    #[inline]
    fn counter(&self, left: u32, right: u32) -> Option<usize> {
        if left == RARE || right == RARE {
            return None;
        }
        let pair = u64::from(left) * self.frequent + u64::from(right);
        if self.frequent * self.frequent <= MAX_COUNTERS {
            return Some(pair as usize);
        }
        Some((pair.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - COUNTER_BITS)) as usize)
    }
}

/// How often each token occurs, each text times its count.
fn count_tokens(texts: &Held, known: usize) -> Vec<u64> {
    let count = |mut counts: Vec<u64>, chunk| {
        for (text, units) in texts.texts(chunk) {
            tokens(units).for_each(|token| counts[token as usize] += text.count);
        }
        counts
    };
    let add = |mut sum: Vec<u64>, counts: Vec<u64>| {
        sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        sum
    };
    texts.chunks().par_iter().fold(|| vec![0; known], count).reduce(|| vec![0; known], add)
}

/// Finds the counters that reach `least`.
fn count_pairs(texts: &Held, counted: &Counted, least: u64) -> Bits {
    let counters = Counters::new(counted.counters as usize, least);
    texts.chunks().par_iter().for_each(|chunk| {
        let mut waiting = Vec::with_capacity(BATCH);
        for (text, units) in texts.texts(chunk) {
            let mut left = RARE;
            for token in tokens(units) {
                let right = counted.numbers[token as usize];
                if let Some(counter) = counted.counter(left, right) {
                    prefetch(&counters.counts[counter]);
                    waiting.push((counter, text.count));
                }
                left = right;
                if waiting.len() == BATCH {
                    waiting.drain(..).for_each(|(counter, count)| counters.add(counter, count));
                }
            }
        }
        for (counter, count) in waiting {
            counters.add(counter, count);
        }
    });
    counters.high()
}

/// Counters that all threads share, and that count on only until they reach `enough`.
struct Counters {
    counts: Vec<AtomicU32>,
    enough: u32,
}

impl Counters {
    fn new(len: usize, least: u64) -> Self {
        let mut counts = Vec::with_capacity(len);
        use_large_pages(&mut counts);
        counts.resize_with(len, || AtomicU32::new(0));
        // Each thread may add this much once more, after another one did, and no sum may wrap.
        let most = u32::MAX / (rayon::current_num_threads() as u32 + 1);
        Self { counts, enough: u32::try_from(least).unwrap_or(most).min(most) }
    }

    #[inline]
    fn add(&self, counter: usize, count: u64) {
        let counter = &self.counts[counter];
        if counter.load(Ordering::Relaxed) < self.enough {
            counter.fetch_add(count.min(u64::from(self.enough)) as u32, Ordering::Relaxed);
        }
    }

    /// The counters that reached `enough`.
    fn high(self) -> Bits {
        let word = |counts: &[AtomicU32]| {
            let is_high = |count: &AtomicU32| u64::from(count.load(Ordering::Relaxed) >= self.enough);
            counts.iter().zip(0..).map(|(count, bit)| is_high(count) << bit).sum()
        };
        Bits(self.counts.chunks(u64::BITS as usize).map(word).collect())
    }
}

/// A bit for each of many things.
struct Bits(Vec<u64>);

impl Bits {
    #[inline]
    fn get(&self, at: usize) -> bool {
        self.0[at / u64::BITS as usize] >> (at % u64::BITS as usize) & 1 == 1
    }

    #[inline]
    fn set(&mut self, at: usize) {
        self.0[at / u64::BITS as usize] |= 1 << (at % u64::BITS as usize);
    }

    /// How many bits from `at` on are set.
    #[inline]
    fn ones(&self, at: usize) -> usize {
        let (mut word, bit) = (at / u64::BITS as usize, at % u64::BITS as usize);
        let first = (self.0[word] >> bit).trailing_ones() as usize;
        if first + bit < u64::BITS as usize {
            return first;
        }
        let mut ones = first;
        loop {
            word += 1;
            let more = self.0.get(word).map_or(0, |word| word.trailing_ones());
            ones += more as usize;
            if more < u64::BITS {
                return ones;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::super::chunk::{Chunk, Text};
    use super::*;

    fn hold(texts: &[(Vec<u32>, u64)]) -> Held {
        let chunk = |texts: &[(Vec<u32>, u64)]| {
            let mut chunk = Chunk::default();
            for (tokens, count) in texts {
                chunk.push(tokens, Text { count: *count, group: 0 });
            }
            chunk
        };
        Held::new(texts.chunks(100).map(chunk).collect(), 1, vec![0])
    }

    /// Texts of 5,000 tokens, every twentieth number, each mostly before the next one.
    fn random_texts() -> Vec<(Vec<u32>, u64)> {
        let mut state = 5_u32;
        let mut random = |below: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) % below
        };
        let text = |_| {
            let mut tokens = vec![random(5000) * 20];
            for _ in 0..=random(7) {
                let next = if random(4) == 0 { random(5000) * 20 } else { (tokens[tokens.len() - 1] + 20) % 100_000 };
                tokens.push(next);
            }
            (tokens, u64::from(1 + random(9)))
        };
        (0..20_000).map(text).collect()
    }

    /// The parts of all texts.
    fn cut(texts: &Held, cuts: &Cuts) -> Vec<Vec<Vec<u32>>> {
        let mut all = Vec::new();
        for (number, chunk) in texts.chunks().iter().enumerate() {
            let mut start = 0;
            for (_, units) in texts.texts(chunk) {
                let parts = cuts.parts(number, start, units).map(|(part, is_longer)| {
                    let part: Vec<u32> = tokens(part).collect();
                    assert_eq!(part.len() > 1, is_longer, "{part:?}");
                    part
                });
                all.push(parts.collect());
                start += units.len();
            }
        }
        all
    }

    #[test]
    fn no_frequent_pair_is_cut_and_most_others_are() {
        let texts = random_texts();
        let held = hold(&texts);
        let mut pairs: HashMap<(u32, u32), u64> = HashMap::new();
        for (tokens, count) in &texts {
            tokens.windows(2).for_each(|pair| *pairs.entry((pair[0], pair[1])).or_default() += count);
        }
        for least in [2, 40, 60, 90, 1 << 40] {
            let (mut frequent, mut rare, mut cuts) = (0, 0, 0);
            for (parts, (text, _)) in cut(&held, &Cuts::new(&held, 100_000, least)).iter().zip(&texts) {
                assert_eq!(parts.concat(), *text);
                let is_rare = |pair: &[u32]| pairs[&(pair[0], pair[1])] < least;
                for ends in parts.windows(2) {
                    let pair = [ends[0][ends[0].len() - 1], ends[1][0]];
                    assert!(is_rare(&pair), "{pair:?} is cut, least {least}");
                    cuts += 1;
                }
                rare += text.windows(2).filter(|pair| is_rare(pair)).count();
                frequent += text.windows(2).filter(|pair| !is_rare(pair)).count();
            }
            assert!(cuts * 10 >= rare * 9, "{least}: {cuts} of {rare}");
            assert!(least > 100 || frequent > 1000, "{least}: {frequent}");
        }
    }

    #[test]
    fn cut_nowhere_texts_are_whole() {
        let texts = random_texts();
        let held = hold(&texts);
        for cuts in [Cuts::nowhere(), Cuts::new(&held, 100_000, 1)] {
            assert!(cut(&held, &cuts).iter().zip(&texts).all(|(parts, (text, _))| *parts == [text.clone()]));
        }
    }

    #[test]
    fn runs_of_bits_go_on_over_words() {
        let mut bits = Bits(vec![0; 4]);
        (60..200).chain([201]).for_each(|at| bits.set(at));
        assert_eq!([59, 60, 63, 64, 199, 200, 201].map(|at| bits.ones(at)), [0, 140, 137, 136, 1, 0, 1]);
        (201..256).for_each(|at| bits.set(at));
        assert_eq!(bits.ones(201), 55);
    }
}
