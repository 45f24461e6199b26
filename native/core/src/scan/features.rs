//! What documents have of each feature.

use super::plan::Plan;
use super::tally::Tally;

/// The features of the current document, and of the documents of its project so far.
pub(super) struct Features {
    /// Hits in the document, by feature.
    hits: Vec<u64>,
    /// The features whose hits are not zero.
    seen: Vec<u32>,
    /// The totals of the project, by feature.
    totals: Vec<Tally>,
    /// The features whose totals are not zero.
    found: Vec<u32>,
}

impl Features {
    pub(super) fn new(plan: &Plan) -> Self {
        let features = plan.labels.len();
        Self { hits: vec![0; features], seen: Vec::new(), totals: vec![Tally::default(); features], found: Vec::new() }
    }

    /// Adds hits of a feature.
    #[inline]
    pub(super) fn add(&mut self, feature: u32, hits: u64) {
        let total = &mut self.hits[feature as usize];
        if *total == 0 {
            self.seen.push(feature);
        }
        *total += hits;
    }

    /// Ends the document.
    pub(super) fn end_document(&mut self) {
        for feature in self.seen.drain(..) {
            let total = &mut self.totals[feature as usize];
            if total.documents == 0 {
                self.found.push(feature);
            }
            total.add(std::mem::take(&mut self.hits[feature as usize]));
        }
    }

    /// Ends the documents of a project: calls `each` with every feature that they have, and its totals.
    pub(super) fn end_project(&mut self, mut each: impl FnMut(u32, Tally)) {
        for feature in self.found.drain(..) {
            each(feature, std::mem::take(&mut self.totals[feature as usize]));
        }
    }
}
