//! A request from outside to stop a long call.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::{Error, ErrorKind, Result};

/// A flag that ends a call before its time. It is set once and stays set.
///
/// Whoever sees it may leave work half done, as [`Self::check`] at the end of the call makes an error of it.
#[derive(Debug, Default)]
pub struct Stop(AtomicBool);

/// The flag of a call that nobody ends.
pub(crate) static NEVER: Stop = Stop(AtomicBool::new(false));

impl Stop {
    /// Ends the calls that look at this flag.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the call is to end.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Nothing, as long as the call may go on.
    ///
    /// # Errors
    /// `Stopped` if the flag is set.
    pub fn check(&self) -> Result<()> {
        if self.is_set() {
            return Err(Error::new(ErrorKind::Stopped, "stopped from outside"));
        }
        Ok(())
    }
}
