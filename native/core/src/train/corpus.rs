//! Corpus merges, on words that the seed merges have reduced already.

use super::engine::Engine;
use super::queue::Queue;
use super::rules::Rules;
use super::tokens::Tokens;
use super::{Learned, Phase};

/// Learns up to `wanted` merges from the words in `engine`, and fewer only when no pair is left.
///
/// Every pair that occurs may be merged, also one that occurs once (Hugging Face's `min_frequency = 0`). A pair
/// that the rules refuse is skipped for good.
pub(super) fn learn(mut engine: Engine, tokens: &mut Tokens, rules: &Rules, wanted: usize) -> Vec<Learned> {
    for (left, right, _) in tokens.merges() {
        engine.merge(left, right);
    }
    let mut queue = Queue::new();
    (0..engine.pairs().next()).for_each(|index| queue.push(index, engine.pairs()));
    let mut learned = Vec::new();
    while learned.len() < wanted {
        let Some(index) = queue.pop(engine.pairs()) else { break };
        let (left, right, count) = engine.pair(index);
        if rules.refusal(tokens.bytes(left), tokens.bytes(right)).is_some() {
            continue;
        }
        tokens.merge(left, right);
        learned.push(Learned { left, right, count, phase: Phase::Corpus });
        engine.merge(left, right).for_each(|index| queue.push(index, engine.pairs()));
    }
    learned
}
