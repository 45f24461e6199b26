//! The words of a pre-tokenizer that cuts ASCII text by some rules.

use std::marker::PhantomData;

use super::super::masks::{Block, Finder, ahead, behind, fill, first, prior};
use super::bytes::Bytes;

/// How a pre-tokenizer cuts ASCII text.
#[derive(Clone, Copy)]
#[allow(clippy::struct_excessive_bools, reason = "each is a difference between two regular expressions")]
pub(super) struct Rules {
    /// The most digits of a word; 0 if any number of them.
    pub(super) digits: usize,
    /// Whether digits are cut off before the rest is cut, so that they end the text in front of them.
    pub(super) splits_digits: bool,
    pub(super) spaces: Spaces,
    /// Whether underscores are letters.
    pub(super) joins_underscores: bool,
    /// Whether a capital behind a small letter starts a word.
    pub(super) cuts_cases: bool,
    /// Whether slashes go on with marks behind their line endings.
    pub(super) joins_slashes: bool,
    pub(super) contractions: Contractions,
    /// Whether control characters are in no word.
    pub(super) leaves_controls: bool,
}

/// What is in front of words, and how white space is cut.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Spaces {
    /// Any one character joins the letters behind it. White space ends behind its last line ending, and line endings
    /// belong to the marks in front of them, as in cl100k.
    Lead,
    /// Only a space joins what is behind it; otherwise the same.
    Join,
    /// Only a space joins what is behind it, and line endings are white space like any other, as in GPT-2.
    JoinOnly,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Contractions {
    None,
    /// Words of their own.
    Words,
    /// Behind the letters of a word.
    Behind,
}

pub(super) const CL100K: Rules = Rules {
    digits: 3,
    splits_digits: false,
    spaces: Spaces::Lead,
    joins_underscores: false,
    cuts_cases: false,
    joins_slashes: false,
    contractions: Contractions::Words,
    leaves_controls: false,
};
pub(super) const O200K: Rules =
    Rules { cuts_cases: true, joins_slashes: true, contractions: Contractions::Behind, ..CL100K };
pub(super) const GPT2: Rules = Rules { digits: 0, spaces: Spaces::JoinOnly, ..CL100K };

/// The rules of a pre-tokenizer, which a compiler knows.
pub(super) trait Known {
    const RULES: Rules;
}

/// What the bytes before a block leave behind: whole masks, of which mostly the last bit is wanted.
#[derive(Clone, Copy, Default)]
struct Before {
    letter: u64,
    small: u64,
    digit: u64,
    digit_starts: u64,
    mark: u64,
    white: u64,
    blank: u64,
    space: u64,
    leading: u64,
    marks_ending: u64,
    ending: u64,
}

/// What finds the words of a pre-tokenizer.
pub(super) struct Words<K> {
    before: Before,
    known: PhantomData<K>,
}

impl<K> Default for Words<K> {
    fn default() -> Self {
        Self { before: Before::default(), known: PhantomData }
    }
}

impl<K: Known> Finder for Words<K> {
    type Masks = Bytes;

    #[inline(always)]
    #[allow(clippy::inline_always, reason = "compiled for the processor's features together with its caller")]
    fn starts(&mut self, of: &Bytes, next: &Bytes, lengths: [usize; 2]) -> Block {
        starts::<K>(of, next, lengths, &mut self.before)
    }
}

/// The bytes behind those in `mask`, of which `before` are those of the block before.
#[inline(always)]
#[allow(clippy::inline_always, reason = "two instructions")]
fn after(mask: u64, before: u64) -> u64 {
    behind(mask, before >> 63)
}

/// The bytes of some kinds in a block.
struct Kinds {
    /// What is neither letter, digit, white space nor strange.
    mark: u64,
    letter: u64,
    /// What is not for these rules to decide.
    strange: u64,
    /// What ends white space, and takes its last character from it.
    solid: u64,
}

impl Kinds {
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "compiled for the processor's features together with its caller")]
    fn new<K: Known>(of: &Bytes, length: usize) -> Self {
        let strange = of.wide | if K::RULES.leaves_controls { of.control & first(length) } else { 0 };
        let letter = of.letter | if K::RULES.joins_underscores { of.underscore } else { 0 };
        let mark = !(letter | of.digit | of.newline | of.blank | strange) & first(length);
        Self { mark, letter, strange, solid: mark | letter | if K::RULES.splits_digits { 0 } else { of.digit } }
    }
}

/// The starts of a block, of which the first bytes are text, as many as `lengths` says; `next` is the one after it.
#[inline(always)]
#[allow(clippy::inline_always, reason = "compiled for the processor's features together with its caller")]
fn starts<K: Known>(of: &Bytes, next: &Bytes, lengths: [usize; 2], before: &mut Before) -> Block {
    let rules = K::RULES;
    let [Kinds { mark, letter, strange, solid }, coming] = [(of, lengths[0]), (next, lengths[1])].map(kinds::<K>);
    let &Bytes { digit, blank, space, .. } = of;
    let parted = ahead(solid, coming.solid);
    let White { starts: white_starts, odd: white_odd, taken } = if rules.spaces == Spaces::JoinOnly {
        all_white(of, parted, before)
    } else {
        white_with_lines(of, next, [mark, strange, coming.strange], parted, before)
    };
    let mark_starts = mark & !after(mark, before.mark) & !after(space, before.space);
    let (leading, joining) = if rules.spaces == Spaces::Lead {
        (mark_starts & ahead(letter, coming.letter), after(blank, before.blank))
    } else {
        (0, after(space, before.space))
    };
    let small = letter & of.small;
    let cases = if rules.cuts_cases { letter & !small & after(small, before.small) } else { 0 };
    let letter_starts = letter & !after(letter, before.letter) & !joining & !after(leading, before.leading) | cases;
    let digit_starts = match rules.digits {
        0 => digit & !after(digit, before.digit) & !joining,
        1 => digit,
        _ => threes(digit, before),
    };
    let joined_digits = if rules.spaces == Spaces::Join { joining } else { 0 };
    let letter_ahead = of.apostrophe & ahead(letter, coming.letter);
    let contraction = match rules.contractions {
        Contractions::None => 0,
        Contractions::Words => letter_ahead & mark_starts,
        Contractions::Behind => letter_ahead & after(letter, before.letter),
    };
    let slashes = if rules.joins_slashes { of.slash & after(taken, before.marks_ending) } else { 0 };
    *before = Before {
        letter,
        small,
        digit,
        digit_starts,
        mark,
        blank,
        space,
        leading,
        marks_ending: taken,
        white: (blank | of.newline) & !taken,
        ending: of.newline & !taken,
    };
    let words = white_starts | mark_starts | letter_starts | digit_starts & !joined_digits;
    Block { words, odd: strange | white_odd | contraction | slashes, lines: 0 }
}

#[inline(always)]
#[allow(clippy::inline_always, reason = "compiled for the processor's features together with its caller")]
fn kinds<K: Known>((of, length): (&Bytes, usize)) -> Kinds {
    Kinds::new::<K>(of, length)
}

/// Where words of white space start.
struct White {
    starts: u64,
    odd: u64,
    /// The line endings that marks have taken.
    taken: u64,
}

/// White space as GPT-2 cuts it; `parted` are the bytes in front of something solid.
#[inline(always)]
#[allow(clippy::inline_always, reason = "compiled for the processor's features together with its caller")]
fn all_white(of: &Bytes, parted: u64, before: &Before) -> White {
    let white = of.blank | of.newline;
    White { starts: white & (!after(white, before.white) | parted), odd: 0, taken: 0 }
}

/// White space up to its last line ending, and behind it, without the line endings that marks take.
#[inline(always)]
#[allow(clippy::inline_always, reason = "compiled for the processor's features together with its caller")]
fn white_with_lines(
    of: &Bytes,
    next: &Bytes,
    [mark, strange, strange_next]: [u64; 3],
    parted: u64,
    before: &Before,
) -> White {
    let &Bytes { newline, blank, .. } = of;
    let taken = fill(newline, newline & (after(mark, before.mark) | before.marks_ending >> 63));
    let ending = newline & !taken;
    let white = blank | ending;
    // Blanks in front of a line ending belong to it; in front of something strange they may.
    let blanks_next = next.blank.trailing_ones();
    let stops = newline | strange;
    let stop_next = if blanks_next < u64::BITS { (next.newline | strange_next) >> blanks_next } else { 1 };
    let bound = flow_down(blank, blank & ahead(stops, stop_next));
    let free = blank & !bound;
    let odd = if blanks_next < u64::BITS { 0 } else { blank & 1 << 63 };
    let starts = white & !after(white, before.white) | free & (after(ending, before.ending) | parted);
    White { starts, odd, taken }
}

/// The bytes of `runs` from the starts of their runs to those in `seeds`, which are in `runs`.
#[inline(always)]
#[allow(clippy::inline_always, reason = "compiled for the processor's features together with its caller")]
fn flow_down(runs: u64, seeds: u64) -> u64 {
    let (mut found, mut open) = (seeds, runs);
    if seeds != 0 {
        for power in 0..6 {
            found |= open & found >> (1 << power);
            open &= open >> (1 << power);
        }
    }
    found
}

/// Every third digit of a run, from the first on.
#[inline(always)]
#[allow(clippy::inline_always, reason = "compiled for the processor's features together with its caller")]
fn threes(digit: u64, before: &Before) -> u64 {
    let mut found = digit & !after(digit, before.digit);
    let fourth = [1, 2, 3].into_iter().fold(digit, |all, distance| all & prior(digit, before.digit, distance));
    if fourth != 0 {
        let mut more = prior(found, before.digit_starts, 3) & fourth;
        while more != 0 {
            found |= more;
            more = more << 3 & fourth;
        }
    }
    found
}
