//! The identifiers and keywords of one thread, and what the current document has of each.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::families::{Families, FamiliesOf, NONE};
use super::keywords::KEYWORDS;
use super::plan::{Identifiers, Plan};
use crate::memory::defaults;

/// What the last document that has a name has of it.
#[derive(Clone, Copy, Default)]
pub(super) struct Occurrences {
    document: u32,
    pub(super) hits: u32,
    /// Those that lead a chain `a::b`.
    pub(super) leading: u32,
}

/// How many names ahead features are asked for.
const AHEAD: usize = 8;

/// Names by number.
pub(super) struct Names {
    plan: Arc<Plan>,
    identifiers: Identifiers,
    /// By number.
    occurrences: Vec<Occurrences>,
    /// The number of the current document, from 1.
    document: u32,
    /// The names of the current document.
    seen: Vec<u32>,
    /// The families of the identifiers, by number, if they are counted; of keywords there are none.
    families_of: Vec<FamiliesOf>,
    families: Families,
}

impl Names {
    pub(super) fn new(plan: Arc<Plan>) -> Self {
        let (identifiers, families_of) = (Identifiers::new(&plan), vec![[NONE; 2]; KEYWORDS.len()]);
        let (occurrences, seen, families) = (Vec::new(), Vec::new(), Families::new());
        Self { plan, identifiers, occurrences, document: 1, seen, families_of, families }
    }

    /// Forgets every identifier, and no family.
    pub(super) fn forget(&mut self) {
        let families = std::mem::replace(&mut self.families, Families::new());
        *self = Self { families, ..Self::new(Arc::clone(&self.plan)) };
    }

    /// Asks for where the number of a name is.
    #[inline]
    pub(super) fn prefetch(&self, name: &[u8]) {
        self.identifiers.prefetch_number(name);
    }

    /// The number of a name.
    pub(super) fn number(&mut self, name: &[u8]) -> u32 {
        let number = self.identifiers.number(&self.plan, name);
        if self.plan.families && number as usize == self.families_of.len() {
            self.families_of.push(self.families.of(name));
        }
        number
    }

    /// Counts what the current document has of the name of that number: `hits`, of which so many are `leading`.
    #[inline]
    pub(super) fn see(&mut self, number: u32, hits: u32, leading: u32) {
        let occurrences = self.occurrences(number);
        occurrences.hits += hits;
        occurrences.leading += leading;
    }

    /// Notes that the name of that number, counted before, leads a chain.
    pub(super) fn lead(&mut self, number: u32) {
        self.occurrences(number).leading += 1;
    }

    #[inline]
    fn occurrences(&mut self, number: u32) -> &mut Occurrences {
        if number as usize >= self.occurrences.len() {
            let mut larger = defaults((number as usize + 1).next_power_of_two());
            larger[..self.occurrences.len()].copy_from_slice(&self.occurrences);
            self.occurrences = larger;
        }
        let occurrences = &mut self.occurrences[number as usize];
        if occurrences.document != self.document {
            *occurrences = Occurrences { document: self.document, ..Occurrences::default() };
            self.seen.push(number);
        }
        occurrences
    }

    /// Ends the document: calls `each` with the number, the occurrences and the features of every name that it has.
    pub(super) fn end_document(&mut self, mut each: impl FnMut(u32, Occurrences, &[u32])) {
        let Self { plan, identifiers, occurrences, seen, families_of, families, .. } = self;
        for (at, &number) in seen.iter().enumerate() {
            seen.get(at + 2 * AHEAD).inspect(|&&number| identifiers.prefetch(number));
            seen.get(at + AHEAD).inspect(|&&number| identifiers.prefetch_features(number));
            let found = occurrences[number as usize];
            each(number, found, identifiers.features(number));
            if plan.families {
                families.see(families_of[number as usize], u64::from(found.hits));
            }
        }
        seen.clear();
        families.end_document();
        self.document += 1;
    }

    /// The names of the `wanted` numbers.
    pub(super) fn texts(&self, wanted: &HashSet<u32>) -> HashMap<u32, Box<[u8]>> {
        self.identifiers.names(wanted)
    }

    /// The families of all documents so far.
    pub(super) fn families(&self) -> &Families {
        &self.families
    }

    /// The memory of everything that grows with the names, and is given back by [`Self::forget`].
    pub(super) fn memory_bytes(&self) -> usize {
        self.identifiers.memory_bytes()
            + self.occurrences.capacity() * size_of::<Occurrences>()
            + self.families_of.capacity() * size_of::<FamiliesOf>()
    }
}
