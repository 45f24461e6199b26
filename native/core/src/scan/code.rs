//! The words of a document and the names among them, from its outline.
//!
//! With the pattern whose words are names or none, each word is looked at once; with others the names are cut by it in a
//! second pass.

use super::features::Features;
use super::keywords::is_keyword;
use super::names::Names;
use super::outline::Region;
use super::plan::Plan;
use super::words::{Use, WordTotals};
use crate::blocks::Classes;
use crate::pattern::{Pattern, WordKind};

/// Totals that are not kept by word.
#[derive(Clone, Copy, Default)]
pub(super) struct Seen {
    pub(super) words: u64,
    /// Identifiers and keywords in `#if 0` groups.
    pub(super) disabled: u64,
}

/// Counts the words of `source` in `words`, and as names those identifiers that are outside `regions`.
pub(super) fn count(
    plan: &Plan,
    source: &[u8],
    classes: &Classes,
    regions: &[Region],
    words: &mut WordTotals,
    names: &mut Names,
    features: &mut Features,
) -> Seen {
    let mut seen = Seen::default();
    let mut code = Code::new(regions);
    let mut chain = Chain { scope_end: usize::MAX, start: usize::MAX };
    let in_one_pass = plan.pattern == Pattern::NAMES;
    if !in_one_pass {
        seen.words = words.count_all(plan.pattern, source, classes);
    }
    Pattern::NAMES.split_classified(source, classes, |kind, start, end| {
        seen.words += u64::from(in_one_pass);
        let name = match kind {
            WordKind::Identifier => start,
            WordKind::MarkedIdentifier => start + 1,
            WordKind::Plain | WordKind::Other if in_one_pass => {
                return words.count(source, [start, end], Use::Word, names);
            }
            WordKind::Plain | WordKind::Other => return,
        };
        let mut used = Use::Word;
        if code.has(name, end) {
            if code.disabled {
                seen.disabled += 1;
            } else {
                used = Use::Name;
                if source[end..].starts_with(b"::") {
                    used = if chain.leads(source, name, end) { Use::Leading } else { Use::Name };
                } else if chain.scope_end == name && chain.start < name && !plan.qualified.is_empty() {
                    count_qualified(plan, &source[chain.start..end], name - chain.start, features);
                }
            }
        }
        if in_one_pass {
            words.count(source, [start, end], used, names);
        } else if used != Use::Word {
            let number = names.number(&source[name..end]);
            names.see(number, used == Use::Leading);
        }
    });
    words.settle(source, names);
    seen
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
    #[inline]
    fn has(&mut self, start: usize, end: usize) -> bool {
        while start >= self.next.end {
            self.disabled = self.next.disabled;
            self.next = self.regions.next().copied().unwrap_or(Self::NONE);
        }
        end <= self.next.start
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
    #[inline]
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
