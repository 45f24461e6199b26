//! Merges from texts, the most frequent pair first.

use super::engine::Engine;
use super::group_cap::GroupCap;
use super::merges::{LearnedMerge, Phase};
use super::queue::Queue;
use super::rules::Rules;
use super::texts::{Cuts, Held, lay_out, replace_parts};
use super::tokens::Tokens;
use crate::Result;

/// The pairs of a text that are counted first make up at least this share of all its pairs, each.
const FIRST_SHARE: u64 = 1 << 15;
/// How much rarer, at most and at least, the pairs may be that are counted next.
const STEPS: (u64, u64) = (2, 16);

/// Learns up to `wanted` merges from texts, and fewer only when no pair is left.
///
/// Every pair that occurs may be merged, also one that occurs once (Hugging Face's `min_frequency = 0`). A pair
/// that the rules refuse is skipped for good.
///
/// Most pairs are so rare that they never come up. So only the frequent ones are counted; when these are used up, the
/// texts, which are shorter by then, are counted again for rarer ones. In such a round the texts are cut where none of
/// the frequent pairs can be, and equal parts are merged once.
///
/// With a cap, what a pair is worth is looked at when its turn comes, and it waits again if that is less than its
/// count: most pairs are so rare that it never comes.
///
/// # Errors
/// `Invalid` if the distinct parts of the texts are too many.
pub(super) fn learn(
    mut texts: Held,
    tokens: &mut Tokens,
    rules: &Rules,
    wanted: usize,
    phase: Phase,
    cap: Option<&GroupCap>,
) -> Result<Vec<LearnedMerge>> {
    let mut learned = Vec::new();
    let mut least = (texts.pairs() / FIRST_SHARE).max(1);
    while learned.len() < wanted {
        let cuts = Cuts::new(&texts, tokens.next(), least);
        let (parts, places) = lay_out(&texts, &cuts)?;
        let mut engine = Engine::new(parts, tokens.next(), least);
        learn_frequent(&mut engine, tokens, rules, (wanted, phase), cap, &mut learned);
        if least == 1 || learned.len() == wanted {
            break;
        }
        replace_parts(&mut texts, &cuts, &places, &engine);
        least = next_bound(least, learned.len(), wanted);
    }
    Ok(learned)
}

/// Learns merges while there are pairs that occur at least as often as the engine keeps them.
fn learn_frequent(
    engine: &mut Engine,
    tokens: &mut Tokens,
    rules: &Rules,
    (wanted, phase): (usize, Phase),
    cap: Option<&GroupCap>,
    learned: &mut Vec<LearnedMerge>,
) {
    let mut queue = Queue::new(engine.least());
    (0..engine.pairs().next()).for_each(|index| queue.push(index, engine.pairs()));
    while learned.len() < wanted {
        let Some(index) = queue.pop(engine.pairs()) else { return };
        let (left, right, count) = engine.pair(index);
        if rules.refusal(tokens.bytes(left), tokens.bytes(right), phase).is_some() {
            continue;
        }
        if let Some(cap) = cap {
            let worth = engine.capped(index, cap);
            if worth < engine.pairs().get(index).worth() {
                engine.set_worth(index, worth);
                queue.push(index, engine.pairs());
                continue;
            }
        }
        tokens.merge(left, right);
        learned.push(LearnedMerge { left, right, count, phase });
        engine.merge(left, right).for_each(|index| queue.push(index, engine.pairs()));
    }
}

/// How often a pair must occur to be counted next, so that about as many are as will be needed: the count of the n-th
/// merge is about inverse to n.
fn next_bound(least: u64, learned: usize, wanted: usize) -> u64 {
    let (smallest, largest) = STEPS;
    let needed = u128::from(least) * learned as u128 * 2 / (wanted as u128 * 3);
    (needed as u64).clamp(least / largest, least / smallest).max(1)
}
