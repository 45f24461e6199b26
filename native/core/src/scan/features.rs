//! What one document has of each feature.

use super::plan::Plan;

/// The features of the current document.
pub(super) struct Features {
    /// By feature.
    hits: Vec<u64>,
    /// The features whose hits are not zero.
    seen: Vec<u32>,
}

impl Features {
    pub(super) fn new(plan: &Plan) -> Self {
        Self { hits: vec![0; plan.labels.len()], seen: Vec::new() }
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

    /// Ends the document: calls `each` with every feature that it has, and its hits.
    pub(super) fn end_document(&mut self, mut each: impl FnMut(u32, u64)) {
        for feature in self.seen.drain(..) {
            each(feature, std::mem::take(&mut self.hits[feature as usize]));
        }
    }
}
