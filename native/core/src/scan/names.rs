//! The identifiers and keywords of one thread, and what the current document has of each.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::plan::{Identifiers, Plan};

/// What the last document that has a name has of it.
#[derive(Clone, Copy, Default)]
pub(super) struct Occurrences {
    document: u32,
    pub(super) hits: u32,
    /// Those that lead a chain `a::b`.
    pub(super) leading: u32,
}

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
}

impl Names {
    pub(super) fn new(plan: Arc<Plan>) -> Self {
        Self { identifiers: Identifiers::new(&plan), plan, occurrences: Vec::new(), document: 1, seen: Vec::new() }
    }

    /// The number of a name.
    pub(super) fn number(&mut self, name: &[u8]) -> u32 {
        self.identifiers.number(&self.plan, name)
    }

    /// Counts the name of that number; `leading` if it leads a chain.
    #[inline]
    pub(super) fn see(&mut self, number: u32, leading: bool) {
        let occurrences = self.occurrences(number);
        occurrences.hits += 1;
        occurrences.leading += u32::from(leading);
    }

    /// Notes that the name of that number, counted before, leads a chain.
    pub(super) fn lead(&mut self, number: u32) {
        self.occurrences(number).leading += 1;
    }

    #[inline]
    fn occurrences(&mut self, number: u32) -> &mut Occurrences {
        if number as usize >= self.occurrences.len() {
            self.occurrences.resize((number as usize + 1).next_power_of_two(), Occurrences::default());
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
        for number in self.seen.drain(..) {
            each(number, self.occurrences[number as usize], self.identifiers.features(number));
        }
        self.document += 1;
    }

    /// The names of the `wanted` numbers.
    pub(super) fn texts(&self, wanted: &HashSet<u32>) -> HashMap<u32, Box<[u8]>> {
        self.identifiers.names(wanted)
    }

    /// The memory of everything that grows with the names.
    pub(super) fn memory_bytes(&self) -> usize {
        self.identifiers.memory_bytes() + self.occurrences.capacity() * size_of::<Occurrences>()
    }
}
