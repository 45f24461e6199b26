//! Families of names: how the identifiers of an API begin, `cudnnBackend` in `cudnnBackendCreateDescriptor`.

use super::bytemap::ByteMap;
use super::identifier::family_ends;
use super::tally::Tally;

/// The families of one identifier, by number; [`NONE`] where it has no more.
pub(super) type FamiliesOf = [u32; 2];

pub(super) const NONE: u32 = u32::MAX;

/// What is counted of a family.
#[derive(Clone, Copy, Default)]
pub(super) struct FamilyTally {
    pub(super) tally: Tally,
    /// The most different names of it in one document.
    pub(super) names: u64,
    /// What the current document has of it.
    hits: u64,
    different: u64,
}

impl FamilyTally {
    /// Takes the totals of another one of the same family.
    pub(super) fn merge(&mut self, other: &Self) {
        self.tally.merge(other.tally);
        self.names = self.names.max(other.names);
    }
}

/// The families that a worker has met. They are never forgotten, unlike the identifiers.
pub(super) struct Families {
    /// One more than the number of each.
    numbers: ByteMap<u32>,
    tallies: Vec<FamilyTally>,
    /// Those that the current document has.
    seen: Vec<u32>,
}

impl Families {
    pub(super) fn new() -> Self {
        Self { numbers: ByteMap::new(), tallies: Vec::new(), seen: Vec::new() }
    }

    /// The families of an identifier.
    pub(super) fn of(&mut self, identifier: &[u8]) -> FamiliesOf {
        family_ends(identifier).map(|end| end.map_or(NONE, |end| self.number(&identifier[..end])))
    }

    fn number(&mut self, family: &[u8]) -> u32 {
        let number = self.numbers.entry(family);
        if *number == 0 {
            self.tallies.push(FamilyTally::default());
            *number = self.tallies.len() as u32;
        }
        *number - 1
    }

    /// Counts the hits that the current document has of one name of families.
    #[inline]
    pub(super) fn see(&mut self, families: FamiliesOf, hits: u64) {
        for number in families.into_iter().filter(|&number| number != NONE) {
            let family = &mut self.tallies[number as usize];
            if family.different == 0 {
                self.seen.push(number);
            }
            family.hits += hits;
            family.different += 1;
        }
    }

    /// Ends the document.
    pub(super) fn end_document(&mut self) {
        for number in self.seen.drain(..) {
            let family = &mut self.tallies[number as usize];
            family.tally.merge(Tally { hits: family.hits, documents: 1 });
            family.names = family.names.max(family.different);
            (family.hits, family.different) = (0, 0);
        }
    }

    /// Calls `each` with every family and its totals.
    pub(super) fn for_each(&self, mut each: impl FnMut(&[u8], &FamilyTally)) {
        self.numbers.for_each(|name, number| each(name, &self.tallies[number as usize - 1]));
    }
}
