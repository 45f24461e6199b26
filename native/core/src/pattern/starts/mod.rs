//! Where the words and the lines of a pattern start, as bit masks of 64 bytes each.
//!
//! With few exceptions, `cpp-words-1` looks at most one character ahead and never back. So most word starts follow from
//! the classes of neighbouring bytes, by logic on whole masks; the carries of an addition fill runs. A byte is marked
//! *odd* where something else may begin or continue: a number with a point or an exponent, a literal prefix, the end of
//! a raw string, a backslash, odd white space, a character beyond ASCII. [`Pattern::end`] cuts the words that touch
//! such a byte. `cpp-words-2` has fewer starts: none behind up to three marks, nor at the space behind them if a name
//! or number comes next, nor at a `::` behind a name, nor at the name behind it.
//!
//! A word that starts at a start of the masks and touches no odd byte ends at the next start, however the words before
//! it were cut. So after an odd word the masks are valid again from the first start at which a word begins.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod fallback;
mod foreign;
mod level;
mod masks;
#[cfg(test)]
mod tests;

use level::Level;
use masks::{BYTES, Block, Ours, append};

use super::cpp_lines_2::Lines;
use super::{Kind, Pattern};

/// The ends of some words.
#[derive(Clone, Copy)]
pub(crate) struct Ends {
    base: usize,
    /// Of the bytes from `base` on, those in front of which a word ends.
    bits: u64,
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "there is one level only"))]
    level: Level,
}

impl Ends {
    pub(crate) fn one(end: usize) -> Self {
        Self { base: end, bits: 1, level: Level::Fallback }
    }

    /// The same in a text that has so many bytes more in front.
    #[inline]
    pub(crate) fn behind(self, bytes: usize) -> Self {
        Self { base: self.base + bytes, ..self }
    }

    /// Calls `each` with them, in order.
    pub(crate) fn each(self, each: &mut impl FnMut(usize)) {
        let mut places = [0; BYTES];
        let count = self.put(&mut places);
        places[..count].iter().for_each(|&end| each(end as usize));
    }

    /// Writes them to the first of `places`, and anything behind them; returns how many they are.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "for each block")]
    #[allow(unsafe_code, reason = "instructions that not every processor has")]
    pub(crate) fn put(self, places: &mut [u32; BYTES]) -> usize {
        #[cfg(target_arch = "x86_64")]
        if self.level == Level::Avx512 {
            // SAFETY: the processor has AVX-512, or it would not be this level.
            return unsafe { avx512::put(self.base as u32, self.bits, places) };
        }
        // Eight at a time, the last of them in vain, so that hardly a branch depends on how many they are.
        let (mut bits, count) = (self.bits, self.bits.count_ones() as usize);
        for eight in places.as_chunks_mut::<8>().0.iter_mut().take(count.div_ceil(8)) {
            for place in eight {
                *place = self.base as u32 + bits.trailing_zeros();
                bits &= bits.wrapping_sub(1);
            }
        }
        count
    }
}

/// The starts of a text; none of a pattern without rules for them. Made to be used again for the next text.
pub(crate) struct Starts {
    blocks: Vec<Block>,
    level: Level,
    pattern: Pattern,
}

impl Default for Starts {
    fn default() -> Self {
        Self { blocks: Vec::new(), level: Level::best(), pattern: Pattern::NAMES }
    }
}

/// Room that is kept for the next text, in blocks.
const MAX_KEPT: usize = 1 << 20;

impl Starts {
    /// Finds the starts in `text`, any bytes, of the words and the lines of `pattern`; of another program's pattern
    /// those of the words only, if there are rules for it.
    pub(crate) fn find(&mut self, pattern: Pattern, text: &[u8]) {
        self.pattern = pattern;
        self.blocks.clear();
        self.blocks.shrink_to(MAX_KEPT);
        self.blocks.reserve(text.len() / BYTES + 1);
        if let Kind::Foreign(foreign) = pattern.0 {
            return foreign::append(foreign, self.level, text, &mut self.blocks);
        }
        if pattern.is_text() {
            return foreign::append_prose(self.level, text, &mut self.blocks);
        }
        if pattern.words() == Pattern::NAMES { self.append::<false>(text) } else { self.append::<true>(text) }
    }

    fn append<const JOINS: bool>(&mut self, text: &[u8]) {
        match self.level {
            Level::Fallback => append(text, Ours::<JOINS>::default(), fallback::masks, &mut self.blocks),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => avx2::append::<JOINS>(text, &mut self.blocks),
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => avx512::append::<JOINS>(text, &mut self.blocks),
        }
    }

    /// Calls `each` with the ends of all words in `run[start..]`, in order, some at a time. The run is one of the
    /// maximal runs of valid UTF-8 of the text that was given to [`Self::find`], at the same place.
    #[inline]
    pub(crate) fn words(&self, run: &[u8], start: usize, mut each: impl FnMut(Ends)) {
        if self.blocks.is_empty() {
            return self.pattern.ends(run, start, |end| each(Ends::one(end)));
        }
        let mut at = start;
        while at < run.len() {
            let found = self.odd_from(run, at, &mut each);
            let Some(odd_word) = found else { return each(Ends::one(run.len())) };
            at = self.cut_odd(run, odd_word, &mut |end| each(Ends::one(end)));
        }
    }

    /// Calls `each` with the ends of the words from `at` on, up to the first one that touches something odd; returns
    /// where it starts.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "once, and a loop over all text")]
    fn odd_from(&self, run: &[u8], mut at: usize, each: &mut impl FnMut(Ends)) -> Option<usize> {
        // The word that starts at `at` may be odd there, and ends behind.
        let (mut from, mut behind) = (u64::MAX << (at % BYTES), u64::MAX << (at % BYTES) << 1);
        // The byte behind the run, too: what is no text may have seemed to be text that the last word goes on with.
        for block in at / BYTES..=run.len() / BYTES {
            let (base, Block { words, odd, .. }) = (block * BYTES, self.blocks[block]);
            let (odd, mut ends) = (odd & from, words & behind);
            (from, behind) = (u64::MAX, u64::MAX);
            if odd != 0 {
                ends &= (odd & odd.wrapping_neg()) - 1;
            }
            if run.len() - base < BYTES {
                ends &= (1 << (run.len() - base)) - 1;
            }
            if ends != 0 {
                each(Ends { base, bits: ends, level: self.level });
                at = base + BYTES - 1 - ends.leading_zeros() as usize;
            }
            if odd != 0 {
                return Some(at);
            }
        }
        None
    }

    /// Calls `each` with the end of every line in `run[start..]`, which is as for [`Self::words`].
    #[inline]
    pub(crate) fn lines(&self, run: &[u8], start: usize, mut each: impl FnMut(usize)) {
        if self.pattern.is_text() {
            return self.pattern.ends(run, start, each);
        }
        if self.pattern.0 != Kind::CppLines2 {
            return self.single_lines(run, start, each);
        }
        let (mut at, mut lines) = (start, Lines::default());
        self.single_lines(run, start, |end| {
            if lines.end_with(run, at, end) {
                each(end);
            }
            at = end;
        });
    }

    /// Calls `each` with the end of every line of `cpp-lines-1`.
    #[inline]
    fn single_lines(&self, run: &[u8], start: usize, mut each: impl FnMut(usize)) {
        let mut from = u64::MAX << (start % BYTES) << 1;
        for block in start / BYTES..run.len().div_ceil(BYTES) {
            let mut rest = self.blocks[block].lines & from;
            while rest != 0 {
                let at = block * BYTES + rest.trailing_zeros() as usize;
                if at < run.len() {
                    each(at);
                }
                rest &= rest - 1;
            }
            from = u64::MAX;
        }
        if start < run.len() {
            each(run.len());
        }
    }

    /// Calls `each` with the end of every word, as of [`Self::words`], of a line with which `run` ends, and whether it
    /// ends the line. A word that goes over the end of a line, which takes odd white space, is cut there.
    #[inline]
    pub(crate) fn words_of_line(&self, run: &[u8], start: usize, mut each: impl FnMut(usize, bool)) {
        let mut at = start;
        'masks: while at < run.len() {
            let mut block = at / BYTES;
            let from = u64::MAX << (at % BYTES);
            let mut odd = self.blocks[block].odd & from;
            let mut rest = self.blocks[block].words & (from << 1) | odd;
            loop {
                while rest != 0 {
                    let bit = rest & rest.wrapping_neg();
                    if odd & bit != 0 {
                        at = self.cut_odd(run, at, &mut |end| each(end, end == run.len()));
                        continue 'masks;
                    }
                    at = block * BYTES + rest.trailing_zeros() as usize;
                    if at >= run.len() {
                        break;
                    }
                    each(at, false);
                    rest ^= bit;
                }
                block += 1;
                if block * BYTES >= run.len() {
                    each(run.len(), true);
                    return;
                }
                odd = self.blocks[block].odd;
                rest = self.blocks[block].words | odd;
            }
        }
    }

    /// Calls `each` with the ends of words from `at` on, until one is a start of the masks, which is given back.
    #[inline(never)]
    fn cut_odd(&self, run: &[u8], mut at: usize, each: &mut impl FnMut(usize)) -> usize {
        loop {
            at = self.pattern.words().cut(run, at, each);
            if at == run.len() || self.blocks[at / BYTES].words & (1 << (at % BYTES)) != 0 {
                return at;
            }
        }
    }
}
