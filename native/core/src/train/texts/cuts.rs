//! Where texts may be cut, because no merge of a round joins what is left and right of there.
//!
//! A round merges only pairs that occur at least `least` times. Each occurrence of a pair `(A, B)` spans a border
//! between two tokens of the text as the round found it: the last one in `A` and the first one in `B`. Two occurrences
//! span two borders. So the pair of those two tokens occurs at least as often, and a border whose pair occurs less than
//! `least` times stays to the end of the round. What is between two such borders is merged as if nothing were around it.
//!
//! To leave a border out of the cuts is never wrong, it only costs memory. So pairs may share a counter, which then
//! stands for more than it should, and counters end where they are high enough.

use std::sync::atomic::{AtomicU32, Ordering};

use rayon::prelude::*;

use super::chunk::{split_token, tokens};
use super::held::Held;
use crate::memory::{prefetch, use_large_pages};

/// The bits of the number of a counter, where several pairs have one.
const COUNTER_BITS: u32 = 24;
/// The most counters of pairs.
const MAX_COUNTERS: u64 = 1 << COUNTER_BITS;

/// How many pairs wait for their counters to come from memory.
const BATCH: usize = 64;

/// The number of a token that occurs too rarely.
const RARE: u32 = u32::MAX;

/// The borders at which a merge may join two tokens.
pub(in crate::train) struct Cuts {
    /// Nothing where every border may be joined.
    frequent: Option<(Counted, Bits)>,
}

impl Cuts {
    /// Cuts nowhere.
    pub(in crate::train) fn nowhere() -> Self {
        Self { frequent: None }
    }

    /// Cuts where the pair, of tokens of which there are `tokens`, occurs less than `least` times.
    pub(in crate::train) fn new(texts: &Held, tokens: u32, least: u64) -> Self {
        if least <= 1 {
            return Self::nowhere();
        }
        let counted = Counted::new(&count_tokens(texts, tokens as usize), least);
        let frequent = count_pairs(texts, &counted, least);
        Self { frequent: Some((counted, frequent)) }
    }

    /// Whether a merge may join two tokens.
    #[inline]
    fn joins(&self, left: u32, right: u32) -> bool {
        let Some((counted, frequent)) = &self.frequent else { return true };
        counted.counter(left, right).is_some_and(|counter| frequent.get(counter))
    }

    /// The parts of a text, and whether each has more than one token.
    #[inline]
    pub(super) fn parts<'t>(&self, mut text: &'t [u16]) -> impl Iterator<Item = (&'t [u16], bool)> {
        std::iter::from_fn(move || {
            let (mut left, mut rest) = split_token(text)?;
            let mut is_longer = false;
            while let Some((right, behind)) = split_token(rest).filter(|&(right, _)| self.joins(left, right)) {
                (left, rest, is_longer) = (right, behind, true);
            }
            let part = text.split_off(..text.len() - rest.len())?;
            Some((part, is_longer))
        })
    }
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

    #[inline]
    fn counter(&self, left: u32, right: u32) -> Option<usize> {
        let (left, right) = (self.numbers[left as usize], self.numbers[right as usize]);
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
            let mut left = None;
            for right in tokens(units) {
                if let Some(counter) = left.and_then(|left| counted.counter(left, right)) {
                    prefetch(&counters.counts[counter]);
                    waiting.push((counter, text.count));
                }
                left = Some(right);
                if waiting.len() == BATCH {
                    waiting.drain(..).for_each(|(counter, count)| counters.add(counter, count));
                }
            }
        }
        waiting.into_iter().for_each(|(counter, count)| counters.add(counter, count));
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

/// A bit for each counter.
struct Bits(Vec<u64>);

impl Bits {
    #[inline]
    fn get(&self, at: usize) -> bool {
        self.0[at / u64::BITS as usize] >> (at % u64::BITS as usize) & 1 == 1
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
            texts.iter().for_each(|(tokens, count)| chunk.push(tokens, Text { count: *count, group: 0 }));
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

    #[test]
    fn no_frequent_pair_is_cut_and_most_others_are() {
        let texts = random_texts();
        let mut pairs: HashMap<(u32, u32), u64> = HashMap::new();
        for (tokens, count) in &texts {
            tokens.windows(2).for_each(|pair| *pairs.entry((pair[0], pair[1])).or_default() += count);
        }
        for least in [2, 40, 60, 90, 1 << 40] {
            let cuts = Cuts::new(&hold(&texts), 100_000, least);
            let is_cut = |&(left, right): &(u32, u32)| !cuts.joins(left, right);
            let (frequent, rare): (Vec<_>, Vec<_>) = pairs.iter().partition(|&(_, &count)| count >= least);
            assert!(!frequent.iter().any(|(pair, _)| is_cut(pair)), "{least}");
            assert!(rare.iter().filter(|(pair, _)| is_cut(pair)).count() * 10 >= rare.len() * 9, "{least}");
            assert!(least > 100 || frequent.len() > 100, "{least}: {} frequent pairs", frequent.len());
        }
    }

    #[test]
    fn parts_make_up_the_text_and_end_at_cuts() {
        let texts = random_texts();
        let held = hold(&texts);
        let cuts = Cuts::new(&held, 100_000, 60);
        let units = held.chunks().iter().flat_map(|chunk| held.texts(chunk).map(|(_, units)| units));
        for (units, (text, _)) in units.zip(&texts) {
            let parts: Vec<(Vec<u32>, bool)> =
                cuts.parts(units).map(|(part, is_longer)| (tokens(part).collect(), is_longer)).collect();
            let lengths: Vec<usize> =
                text.chunk_by(|&left, &right| cuts.joins(left, right)).map(<[u32]>::len).collect();
            assert_eq!(parts.iter().map(|(part, _)| part.len()).collect::<Vec<_>>(), lengths);
            assert!(parts.iter().all(|(part, is_longer)| (part.len() > 1) == *is_longer));
            assert_eq!(parts.into_iter().flat_map(|(part, _)| part).collect::<Vec<_>>(), *text);
        }
        let whole = Cuts::nowhere();
        assert_eq!(whole.parts(&[1, 2, 1]).collect::<Vec<_>>(), [(&[1, 2, 1][..], true)]);
    }
}
