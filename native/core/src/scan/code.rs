//! The names among the words of a document, from its outline.
//!
//! The words must be those of the pattern whose words are names or none.

use super::features::Features;
use super::keywords::is_keyword;
use super::names::Names;
use super::outline::Region;
use super::plan::Plan;
use super::words::{Naming, Use};
use crate::lexer::continues_identifier;
use crate::pattern::Starts;

/// Finds the names among the words of a document: those identifiers that are outside all regions.
pub(super) struct CodeNames<'a> {
    plan: &'a Plan,
    source: &'a [u8],
    names: &'a mut Names,
    features: &'a mut Features,
    code: Code<'a>,
    chain: Chain,
    /// Identifiers and keywords in `#if 0` groups.
    disabled: u64,
}

impl<'a> CodeNames<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        source: &'a [u8],
        regions: &'a [Region],
        names: &'a mut Names,
        features: &'a mut Features,
    ) -> Self {
        let chain = Chain { scope_end: usize::MAX, start: usize::MAX };
        Self { plan, source, names, features, code: Code::new(regions), chain, disabled: 0 }
    }

    /// Counts all names of the document, for which `starts` were found.
    pub(super) fn count_all(&mut self, starts: &Starts) {
        let (source, mut start) = (self.source, 0);
        let mut each = |end: usize| {
            if self.may_be_name(start) {
                let used = self.use_of(start, end);
                if used != Use::Word {
                    let number = self.number(&source[start..end]);
                    self.names.see(number, 1, u32::from(used == Use::Leading));
                }
            }
            start = end;
        };
        starts.all_words(source, |ends| ends.each(&mut each));
    }

    /// How many identifiers and keywords are in `#if 0` groups.
    pub(super) fn disabled_names(&self) -> u64 {
        self.disabled
    }
}

impl Naming for CodeNames<'_> {
    #[inline]
    fn may_be_name(&self, start: usize) -> bool {
        may_be_name(self.source, start)
    }

    #[inline(always)]
    #[allow(clippy::inline_always, reason = "for each name")]
    fn use_of(&mut self, start: usize, end: usize) -> Use {
        let Self { plan, source, features, code, chain, .. } = self;
        let name = start + usize::from(!continues_identifier(source[start]));
        if !code.has(name, end) {
            return Use::Word;
        }
        if code.disabled {
            self.disabled += 1;
            return Use::Word;
        }
        if source[end..].first_chunk() == Some(b"::") {
            return if chain.leads(source, name, end) { Use::Leading } else { Use::Name };
        }
        if chain.scope_end == name && chain.start < name && !plan.qualified.is_empty() {
            count_qualified(plan, &source[chain.start..end], name - chain.start, features);
        }
        Use::Name
    }

    fn prefetch(&self, word: &[u8]) {
        self.names.prefetch(name(word));
    }

    fn number(&mut self, word: &[u8]) -> u32 {
        self.names.number(name(word))
    }

    #[inline]
    fn add(&mut self, number: u32, hits: u32, leading: u32) {
        self.names.see(number, hits, leading);
    }
}

/// The identifier that a word is, without the byte that may be in front of it.
fn name(word: &[u8]) -> &[u8] {
    match word {
        [first, rest @ ..] if !continues_identifier(*first) => rest,
        _ => word,
    }
}

/// Begins a name.
const LETTER: u8 = 1;
/// Can be in front of a name.
const FRONT: u8 = 2;

static FLAGS: [u8; 256] = {
    let mut flags = [0; 256];
    let mut byte = 0;
    while byte < 128 {
        flags[byte] = match byte as u8 {
            b'A'..=b'Z' | b'a'..=b'z' | b'_' => LETTER,
            b'0'..=b'9' | b'\t'..=b'\r' | b'\\' => 0,
            _ => FRONT,
        };
        byte += 1;
    }
    flags
};

/// Whether the word that starts at `start` is a name, with or without one byte in front. Only of a word in plain code
/// this is sure: elsewhere a name may go on with bytes from 0x80, or be a literal prefix.
#[inline]
fn may_be_name(source: &[u8], start: usize) -> bool {
    let first = FLAGS[usize::from(source[start])];
    let second = source.get(start + 1).map_or(0, |&byte| FLAGS[usize::from(byte)]);
    (first | ((first / FRONT) & second)) & LETTER != 0
}

/// Counts the candidates that are the chain of names `whole`, whose last name begins at `last`.
#[inline(never)]
fn count_qualified(plan: &Plan, whole: &[u8], last: usize, features: &mut Features) {
    if !is_keyword(&whole[last..]) {
        plan.qualified.get(whole).into_iter().flatten().for_each(|&feature| features.add(feature, 1));
    }
}

/// A cursor over the regions of a document, which moves along with its words.
struct Code<'a> {
    regions: std::slice::Iter<'a, Region>,
    next: Region,
    /// What comes before `next` is in an `#if 0` group.
    disabled: bool,
}

impl<'a> Code<'a> {
    fn new(regions: &'a [Region]) -> Self {
        let mut regions = regions.iter();
        let next = regions.next().copied().unwrap_or(Self::NONE);
        Self { regions, next, disabled: false }
    }

    const NONE: Region = Region { start: usize::MAX, end: usize::MAX, disabled: false };

    /// Whether `start..end` lies outside all regions. Asked for ranges in order.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "for each name")]
    fn has(&mut self, start: usize, end: usize) -> bool {
        if start >= self.next.end {
            self.go_on(start);
        }
        end <= self.next.start
    }

    /// Goes on to the region that ends behind `start`.
    #[inline(never)]
    fn go_on(&mut self, start: usize) {
        while start >= self.next.end {
            self.disabled = self.next.disabled;
            self.next = self.regions.next().copied().unwrap_or(Self::NONE);
        }
    }
}

/// A chain of names with `::` between them. In a document that is not odd nothing else is between them.
struct Chain {
    /// Where the last `::` ends that goes on with a chain.
    scope_end: usize,
    /// Where its first name begins, if that is known.
    start: usize,
}

impl Chain {
    /// Takes note of the name at `name..end`, which `::` follows, and says whether it leads the chain.
    #[inline(never)]
    fn leads(&mut self, source: &[u8], name: usize, end: usize) -> bool {
        if is_keyword(&source[name..end]) {
            return false;
        }
        let goes_on = self.scope_end == name;
        let after_arguments = !goes_on && source[..name].ends_with(b">::");
        if !goes_on {
            self.start = if after_arguments { usize::MAX } else { name };
        }
        self.scope_end = end + 2;
        !goes_on && !after_arguments
    }
}
