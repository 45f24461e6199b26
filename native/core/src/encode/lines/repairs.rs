//! Where two words meet whose tokens are not what merging the line makes.
//!
//! A little text on both sides is merged again then, more and more until all pairs are valid ([`crate::encode::bpe`]).
//! For most pairs of tokens their own text is enough, so what it becomes is kept.

use super::pair_memo::PairMemo;
use crate::encode::bpe::{Merges, Scratch, pack_pair, pair_hash};
use crate::encode::id::Id;
use crate::stop::NEVER;

/// The most tokens of a repair that is kept.
const MAX_KEPT: usize = 5;
const KEPT_BITS: u32 = 13;

/// What the text of two tokens becomes.
#[derive(Clone, Copy)]
struct Repair {
    pair: u64,
    tokens: [u32; MAX_KEPT],
    /// 0 if they are too many.
    count: u32,
}

/// Of no pair.
const NO_REPAIR: Repair = Repair { pair: u64::MAX, tokens: [0; MAX_KEPT], count: 0 };

/// Tells which pairs are valid, and repairs the others; one per worker.
#[derive(Default)]
pub(super) struct Repairs {
    memo: PairMemo,
    kept: Vec<Repair>,
    scratch: Scratch,
    /// What was merged again.
    again: Vec<u32>,
}

/// Two words that meet in a line.
#[derive(Clone, Copy)]
pub(super) struct Meeting<'a> {
    pub(super) words: &'a Merges,
    pub(super) text: &'a [u8],
    /// Where they meet in the text.
    pub(super) at: usize,
    /// The first token of the line, and of the second word.
    pub(super) line: usize,
    pub(super) token: usize,
}

impl Repairs {
    /// Makes room; to be called before use.
    pub(super) fn prepare(&mut self) {
        self.memo.prepare();
        self.kept.resize(1 << KEPT_BITS, NO_REPAIR);
    }

    /// Replaces tokens on both sides if they are no valid pair where the words meet.
    #[inline]
    pub(super) fn join<T: Id>(&mut self, meeting: Meeting<'_>, tokens: &mut Vec<T>) {
        let Meeting { words, token, .. } = meeting;
        if !self.memo.is_valid_pair(words, tokens[token - 1].id(), tokens[token].id()) {
            self.repair(meeting, tokens);
        }
    }

    #[inline(never)]
    fn repair<T: Id>(&mut self, meeting: Meeting<'_>, tokens: &mut Vec<T>) {
        let Meeting { words, line, token, .. } = meeting;
        let Repair { tokens: made, count, .. } = self.of_two(meeting, tokens[token - 1].id(), tokens[token].id());
        if let Some([first, .., last]) = made.get(..count as usize) {
            let (before, after) = (tokens[line..token - 1].last(), tokens.get(token + 1));
            if before.is_none_or(|before| self.memo.is_valid_pair(words, before.id(), *first))
                && after.is_none_or(|after| self.memo.is_valid_pair(words, *last, after.id()))
            {
                tokens.splice(token - 1..=token, made[..count as usize].iter().map(|&id| T::new(id)));
                return;
            }
        }
        self.repair_widely(meeting, tokens);
    }

    /// What the text of two tokens becomes.
    fn of_two(&mut self, meeting: Meeting<'_>, left: u32, right: u32) -> Repair {
        let Meeting { words, text, at, .. } = meeting;
        let pair = pack_pair(left, right);
        let kept = &mut self.kept[(pair_hash(pair) >> (u64::BITS - KEPT_BITS)) as usize];
        if kept.pair != pair {
            let length = |token: u32| words.lengths()[token as usize] as usize;
            self.again.clear();
            words.merge(&mut self.scratch, &text[at - length(left)..at + length(right)], &NEVER, &mut self.again);
            *kept = Repair { pair, ..NO_REPAIR };
            if let Some(tokens) = kept.tokens.get_mut(..self.again.len()) {
                tokens.copy_from_slice(&self.again);
                kept.count = self.again.len() as u32;
            }
        }
        *kept
    }

    /// Merges more and more on both sides again until all pairs are valid.
    fn repair_widely<T: Id>(&mut self, meeting: Meeting<'_>, tokens: &mut Vec<T>) {
        let Self { scratch, again, .. } = self;
        let Meeting { words, text, at, line, token } = meeting;
        let length = |token: T| words.lengths()[token.id() as usize] as usize;
        let is_valid = |left: Option<u32>, right: Option<u32>| match (left, right) {
            (Some(left), Some(right)) => words.is_valid_pair(left, right),
            _ => true,
        };
        let (mut first, mut start, mut last, mut end) = (token, at, token, at);
        let (mut left_fits, mut right_fits, mut step) = (false, false, 1);
        while !(left_fits && right_fits) {
            for _ in 0..step {
                if !left_fits && first > line {
                    first -= 1;
                    start -= length(tokens[first]);
                }
                if !right_fits && last < tokens.len() {
                    end += length(tokens[last]);
                    last += 1;
                }
            }
            again.clear();
            words.merge(scratch, &text[start..end], &NEVER, again);
            left_fits = is_valid(tokens[line..first].last().map(|token| token.id()), again.first().copied());
            right_fits = is_valid(again.last().copied(), tokens.get(last).map(|token| token.id()));
            step *= 2;
        }
        tokens.splice(first..last, again.iter().map(|&id| T::new(id)));
    }
}
