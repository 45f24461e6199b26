//! Seed merges: every fixed token and morpheme becomes one token before any corpus merge.
//!
//! Phase 0 learns from the identifier runs of all seeds, phase 1 from the seeds that hold other bytes, reduced by
//! phase 0. So wherever a run occurs, its segmentation is settled before anything can join it to its surroundings.
//!
//! The merges are chosen to need few pieces that are no seed themselves. A merge saves as many symbols as its pair
//! has occurrences and costs a piece unless it spells a seed: the largest gain goes first, then a seed before a
//! piece, then the longer result, then the smaller pair by creation order. (This is Re-Pair, Larsson and Moffat
//! 1999, with a price for pieces. On 2,612 seeds for C++ it makes 2,897 pieces; by count alone it would be 2,911.)

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use hashbrown::HashSet;

use super::bound::{Bound, Excess};
use super::engine::Engine;
use super::merges::{LearnedMerge, Phase};
use super::rules::Rules;
use super::seed::{Seed, is_identifier_byte, is_identifier_run};
use super::texts::{Collector, Cuts, lay_out};
use super::tokens::Tokens;
use crate::pattern::Pattern;
use crate::{Error, ErrorKind, Result};

/// What to merge next: gain, spells a seed, bytes, then the smaller pair.
type Priority = (u64, bool, usize, Reverse<(u32, u32)>);

/// Learns the merges that make each seed one token.
///
/// # Errors
/// Names the first seed, in byte order, that cannot become one token, and why.
pub(super) fn learn(seeds: &[Seed], rules: &Rules) -> Result<(Tokens, Vec<LearnedMerge>)> {
    let spelled: HashSet<&[u8]> = seeds.iter().map(|seed| seed.token.as_slice()).collect();
    let runs: BTreeSet<&[u8]> = spelled.iter().flat_map(|seed| identifier_runs(seed)).collect();
    let mixed: BTreeSet<&[u8]> = spelled.iter().copied().filter(|seed| !is_identifier_run(seed)).collect();
    let mut learner = Learner { tokens: Tokens::new(), rules, spelled: &spelled, learned: Vec::new() };
    learner.learn(runs, Phase::Identifier)?;
    learner.learn(mixed, Phase::Border)?;
    check_reached(seeds, &learner.tokens, rules)?;
    Ok((learner.tokens, learner.learned))
}

fn identifier_runs(seed: &[u8]) -> impl Iterator<Item = &[u8]> {
    seed.split(|&byte| !is_identifier_byte(byte)).filter(|run| run.len() > 1)
}

struct Learner<'a> {
    tokens: Tokens,
    rules: &'a Rules,
    spelled: &'a HashSet<&'a [u8]>,
    learned: Vec<LearnedMerge>,
}

impl Learner<'_> {
    fn learn(&mut self, texts: BTreeSet<&[u8]>, phase: Phase) -> Result<()> {
        let mut collector = Collector::new(&self.tokens, Bound::new(None, Excess::Drop), Pattern::NAMES)?;
        collector.add_once(texts);
        let (texts, _) = lay_out(&collector.finish()?, &Cuts::nowhere())?;
        let mut engine = Engine::new(texts, self.tokens.next(), 1);
        let mut heap: BinaryHeap<(Priority, u32)> = BinaryHeap::new();
        heap.extend((0..engine.pairs().next()).filter_map(|index| self.priority(&engine, index)));
        while let Some((priority, index)) = heap.pop() {
            let Some(present) = self.priority(&engine, index) else { continue };
            if present.0 != priority {
                heap.push(present);
                continue;
            }
            let (left, right, count) = engine.pair(index);
            if self.rules.refusal(self.tokens.bytes(left), self.tokens.bytes(right), phase).is_none() {
                self.tokens.merge(left, right);
                self.learned.push(LearnedMerge { left, right, count, phase });
                heap.extend(engine.merge(left, right).filter_map(|index| self.priority(&engine, index)));
            }
        }
        Ok(())
    }

    /// The priority of a pair with the count that it has now; nothing once it is gone.
    fn priority(&self, engine: &Engine, index: u32) -> Option<(Priority, u32)> {
        let (left, right, count) = engine.pair(index);
        let joined = [self.tokens.bytes(left), self.tokens.bytes(right)].concat();
        let is_seed = self.spelled.contains(joined.as_slice());
        let gain = count.checked_sub(1)? + u64::from(is_seed);
        Some(((gain, is_seed, joined.len(), Reverse((left, right))), index))
    }
}

fn check_reached(seeds: &[Seed], tokens: &Tokens, rules: &Rules) -> Result<()> {
    let made: HashSet<&[u8]> = tokens.merges().map(|(_, _, token)| tokens.bytes(token)).collect();
    let missing: BTreeSet<&[u8]> =
        seeds.iter().map(|seed| seed.token.as_slice()).filter(|seed| seed.len() > 1 && !made.contains(seed)).collect();
    match missing.first() {
        None => Ok(()),
        Some(seed) => Err(Error::new(ErrorKind::Vocabulary, explain(seed, missing.len(), tokens, rules))),
    }
}

fn explain(seed: &[u8], missing: usize, tokens: &Tokens, rules: &Rules) -> String {
    let pieces = tokens.encode(seed);
    let quoted: Vec<String> =
        pieces.iter().map(|&piece| format!("\"{}\"", tokens.bytes(piece).escape_ascii())).collect();
    let refusal = |pair: &[u32]| rules.refusal(tokens.bytes(pair[0]), tokens.bytes(pair[1]), Phase::Border);
    let reason = rules
        .refuses_token(seed)
        .or(pieces.windows(2).find_map(refusal))
        .map(|refusal| refusal.to_string())
        .unwrap_or_default();
    let others = if missing > 1 { format!(" ({} more seeds cannot either)", missing - 1) } else { String::new() };
    format!(
        "seed \"{}\" cannot become one token, it stays {}: {reason}{others}",
        seed.escape_ascii(),
        quoted.join(" + "),
    )
}
