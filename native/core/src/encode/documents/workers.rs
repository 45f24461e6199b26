//! The workers at rest, for the next call.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::encoder::{Shared, Worker};
use crate::encode::id::Id;

/// Workers at rest, with their caches, and the words that they share.
pub(crate) struct Workers<T: Id> {
    resting: Mutex<Vec<Worker<T>>>,
    /// Made with the second worker; the first one has it, too.
    shared: Arc<OnceLock<Shared>>,
}

impl<T: Id> Default for Workers<T> {
    fn default() -> Self {
        Self { resting: Mutex::default(), shared: Arc::default() }
    }
}

impl<T: Id> Workers<T> {
    /// Lends a worker to `call`.
    pub(crate) fn with<R>(&self, call: impl FnOnce(&mut Worker<T>) -> R) -> R {
        let resting = self.resting.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut worker = resting.unwrap_or_else(|| self.hire());
        let result = call(&mut worker);
        self.resting.lock().unwrap_or_else(PoisonError::into_inner).push(worker);
        result
    }

    /// Makes a worker.
    fn hire(&self) -> Worker<T> {
        let shared = Arc::clone(&self.shared);
        // Of several that are made at once, the last one counts them all.
        if Arc::strong_count(&shared) > 2 {
            shared.get_or_init(Shared::default);
        }
        Worker::new(shared)
    }
}
