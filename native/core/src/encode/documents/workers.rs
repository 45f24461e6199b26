//! The workers at rest, for the next call.

use std::sync::{Mutex, PoisonError};

use super::encoder::Worker;
use crate::encode::id::Id;

/// Workers at rest, with their caches.
pub(crate) struct Workers<T: Id>(Mutex<Vec<Worker<T>>>);

impl<T: Id> Default for Workers<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Id> Workers<T> {
    /// Lends a worker to `call`.
    pub(crate) fn with<R>(&self, call: impl FnOnce(&mut Worker<T>) -> R) -> R {
        let resting = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut worker = resting.unwrap_or_default();
        let result = call(&mut worker);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(worker);
        result
    }
}
