//! The masks of 64 bytes, and where words and lines start in them.

/// Bytes in a block.
pub(super) const BYTES: usize = 64;

/// The masks of 64 bytes: bit `i` is for byte `i`. A byte after the end of the text is in no class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Masks {
    /// ASCII letters, digits and the underscore.
    pub(super) word: u64,
    /// ASCII control bytes and punctuation, the backslash and white space excluded.
    pub(super) mark: u64,
    /// `\r` and `\n`.
    pub(super) newline: u64,
    /// Space and tab.
    pub(super) blank: u64,
    pub(super) tab: u64,
    pub(super) digit: u64,
    /// `-` and `.`, which may begin a number.
    pub(super) sign: u64,
    pub(super) plus: u64,
    /// Double and single quotes.
    pub(super) quote: u64,
    /// What a literal prefix ends with: `8`, `u`, `U`, `L`, `R` (and `r`).
    pub(super) prefix: u64,
    /// `)`, which may begin a raw string's end.
    pub(super) closing: u64,
    pub(super) colon: u64,
}

impl Masks {
    /// Bytes in no class of words, marks or white space.
    fn strange(&self, text: u64) -> u64 {
        !(self.word | self.mark | self.newline | self.blank) & text
    }
}

/// The starts within a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Block {
    /// Bytes at which a word starts, unless something odd before them goes on.
    pub(super) words: u64,
    /// Bytes that are not what they seem.
    pub(super) odd: u64,
    /// Bytes at which a line starts, but for the first of a run.
    pub(super) lines: u64,
}

/// What the bytes before a block leave behind: the last bit of some masks.
#[derive(Clone, Copy, Default)]
struct Before {
    word: u64,
    mark: u64,
    newline: u64,
    indentation: u64,
    free: u64,
    joining: u64,
    leading: u64,
    prefix: u64,
    closing: u64,
    watched: u64,
    /// The whole mask of marks that begin a word or go on with one.
    marks: u64,
    many: u64,
    scope: u64,
    scope_end: u64,
}

/// The mask of the first so many bytes.
#[inline(always)]
#[allow(clippy::inline_always, reason = "a few instructions")]
pub(super) fn first(length: usize) -> u64 {
    if length < BYTES { (1 << length) - 1 } else { u64::MAX }
}

/// The mask of the bytes behind those in `mask`.
#[inline(always)]
#[allow(clippy::inline_always, reason = "one instruction")]
pub(super) fn behind(mask: u64, before: u64) -> u64 {
    mask << 1 | before
}

/// The mask of the bytes `distance` behind those in `mask`, of which `before` are those of the block before.
#[inline(always)]
#[allow(clippy::inline_always, reason = "two instructions")]
pub(super) fn prior(mask: u64, before: u64, distance: u32) -> u64 {
    mask << distance | before >> (u64::BITS - distance)
}

/// The mask of the bytes that one in `mask` follows, whose continuation is `next`.
#[inline(always)]
#[allow(clippy::inline_always, reason = "one instruction")]
pub(super) fn ahead(mask: u64, next: u64) -> u64 {
    mask >> 1 | next << 63
}

/// The bytes of `runs` from those in `seeds`, which are in `runs`, to the end of their runs.
#[inline(always)]
#[allow(clippy::inline_always, reason = "a few instructions")]
pub(super) fn fill(runs: u64, seeds: u64) -> u64 {
    runs & !runs.wrapping_add(seeds)
}

/// The starts of a block, of which the first `length` bytes are text; `next` are the masks of the one after it, of
/// which the first `next_length` are. `JOINS` is for `cpp-words-2`.
#[inline(always)]
#[allow(clippy::inline_always, reason = "compiled for the processor's features together with its caller")]
#[allow(clippy::too_many_lines, reason = "one mask after another, most of them used by several others")]
fn starts<const JOINS: bool>(
    of: &Masks,
    next: &Masks,
    [length, next_length]: [usize; 2],
    before: &mut Before,
) -> Block {
    let text = first(length);
    let &Masks { word, newline, blank, .. } = of;
    // The first colon of a `::` directly behind a name, and the second one: they belong to the name.
    let scope = if JOINS { of.colon & behind(word, before.word) & ahead(of.colon, next.colon) } else { 0 };
    let scope_end = behind(scope, before.scope);
    let mark = of.mark & text & !scope & !scope_end;
    let next_mark = next.mark & first(next_length);
    let solid_ahead = ahead(word | mark, next.word | next_mark);
    let digit_ahead = ahead(of.digit, next.digit);
    // Blanks behind a newline belong to it; of the others the last, if it is a space, joins the word or the marks
    // behind it.
    let indentation = fill(blank, blank & (behind(newline, before.newline) | before.indentation));
    let free = blank & !indentation;
    let joining = free & !of.tab & solid_ahead;
    let signs = of.sign & (digit_ahead | ahead(of.sign, next.sign));
    // Where a fourth mark in a row is, or a later one; what is behind at most three of them they join.
    let many = mark & prior(mark, before.marks, 1) & prior(mark, before.marks, 2) & prior(mark, before.marks, 3);
    let joined = if JOINS { behind(mark, before.mark) & !behind(many, before.many) } else { 0 };
    let strange = of.strange(text);
    let behind_marks = free & !of.tab & joined;
    let strange_ahead = behind_marks & number_ahead(of, next, [strange, next.strange(first(next_length))], signs);
    let spaces = behind_marks & ahead(word, next.word) | strange_ahead;
    let blank_starts = free & (!behind(free, before.free) | solid_ahead) & !spaces;
    let mark_starts = mark & !behind(mark, before.mark) & !behind(joining, before.joining);
    let leading = if JOINS { 0 } else { mark_starts & ahead(word & !of.digit, next.word & !next.digit) };
    let run_starts = word & !behind(word, before.word);
    let scoped = behind(scope_end, before.scope_end) & !of.digit;
    let word_starts =
        run_starts & !behind(joining, before.joining) & !behind(leading, before.leading) & !joined & !scoped;
    let open = behind(mark, before.mark) | behind(free, before.free) | behind(newline, before.newline);
    let newline_starts = newline & !open;
    let watched = watched_runs(of, run_starts, before);
    let watched_ends = behind(watched, before.watched) & !word;
    let line_starts =
        (behind(indentation, before.indentation) | behind(newline, before.newline) & !newline) & !blank & text;
    let odd = strange
        | of.quote & behind(of.prefix, before.prefix)
        | signs
        | strange_ahead
        | of.closing & digit_ahead
        | watched_ends & (of.quote | of.sign | of.plus | scope);
    let last = |mask: u64| mask >> 63;
    *before = Before {
        word: last(word),
        mark: last(mark),
        newline: last(newline),
        indentation: last(indentation),
        free: last(free),
        joining: last(joining),
        leading: last(leading),
        prefix: last(of.prefix),
        closing: last(of.closing),
        watched: last(watched),
        marks: mark,
        many: last(many),
        scope: last(scope),
        scope_end: last(scope_end),
    };
    Block { words: blank_starts | mark_starts | word_starts | newline_starts, odd, lines: line_starts }
}

/// The bytes that something strange follows, or a sign before a digit, another sign or something strange.
#[inline(always)]
#[allow(clippy::inline_always, reason = "compiled for the processor's features together with its caller")]
fn number_ahead(of: &Masks, next: &Masks, [strange, strange_next]: [u64; 2], signs: u64) -> u64 {
    let here = strange | signs | of.sign & ahead(strange, strange_next);
    ahead(here, strange_next | next.sign & (next.digit | next.sign | strange_next) >> 1)
}

/// Runs that begin with a digit, or behind a closing parenthesis: how they end matters.
#[inline(always)]
#[allow(clippy::inline_always, reason = "compiled for the processor's features together with its caller")]
fn watched_runs(of: &Masks, run_starts: u64, before: &Before) -> u64 {
    fill(of.word, run_starts & (of.digit | behind(of.closing, before.closing)) | of.word & before.watched & 1)
}

/// What finds the starts of one block after another.
pub(super) trait Finder {
    /// The masks of a block.
    type Masks: Copy + Default;

    /// The starts of a block; `next` is the one after it. Of their bytes as many are text as `lengths` says.
    fn starts(&mut self, of: &Self::Masks, next: &Self::Masks, lengths: [usize; 2]) -> Block;
}

/// What finds the starts of a pattern of ours; `JOINS` is for `cpp-words-2`.
#[derive(Default)]
pub(super) struct Ours<const JOINS: bool>(Before);

impl<const JOINS: bool> Finder for Ours<JOINS> {
    type Masks = Masks;

    #[inline(always)]
    #[allow(clippy::inline_always, reason = "compiled for the processor's features together with its caller")]
    fn starts(&mut self, of: &Masks, next: &Masks, lengths: [usize; 2]) -> Block {
        starts::<JOINS>(of, next, lengths, &mut self.0)
    }
}

/// Appends the starts of `text`, whose masks `masks` makes.
#[inline(always)]
#[allow(clippy::inline_always, reason = "compiled for the processor's features together with its caller")]
pub(super) fn append<F: Finder>(
    text: &[u8],
    mut finder: F,
    masks: impl Fn(&[u8; BYTES]) -> F::Masks,
    out: &mut Vec<Block>,
) {
    let (whole, rest) = text.as_chunks::<BYTES>();
    let mut last = [0; BYTES];
    last[..rest.len()].copy_from_slice(rest);
    let last = masks(&last);
    let mut here = whole.first().map_or(last, &masks);
    for at in 0..whole.len() {
        let next = whole.get(at + 1).map_or(last, &masks);
        let next_length = if at + 1 < whole.len() { BYTES } else { rest.len() };
        out.push(finder.starts(&here, &next, [BYTES, next_length]));
        here = next;
    }
    out.push(finder.starts(&last, &F::Masks::default(), [rest.len(), 0]));
}
