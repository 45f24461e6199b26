//! Runs long calls so that Ctrl-C ends them.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use cppmill_core::{Error, Result, Stop};
use pyo3::prelude::*;

use crate::errors::{to_python, without_gil};

/// A call on less is over sooner than Python looks for signals itself.
const MIN_BYTES: usize = 1 << 20;
/// How long to wait between two looks for signals.
const INTERVAL: Duration = Duration::from_millis(50);

/// Runs `call` with the GIL released; it works on about `bytes`. Of a long one Python's signals are looked for
/// meanwhile: if their handler raises, as the one of Ctrl-C does, the call is stopped and its exception is the result.
pub fn interruptible<T: Send>(
    py: Python<'_>,
    bytes: usize,
    call: impl FnOnce(&Stop) -> Result<T> + Send,
) -> PyResult<T> {
    let stop = Stop::default();
    if bytes < MIN_BYTES {
        return without_gil(py, || call(&stop));
    }
    py.detach(|| thread::scope(|scope| watch(scope, &stop, call)))
}

/// Runs `call` in a thread of its own and looks for signals in this one, as only Python's main thread may handle them.
fn watch<'scope, T: Send + 'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    stop: &'scope Stop,
    call: impl FnOnce(&Stop) -> Result<T> + Send + 'scope,
) -> PyResult<T> {
    let (ended, end) = mpsc::channel::<()>();
    let work = move || {
        let _dropped_at_the_end = ended;
        call(stop)
    };
    let worker = thread::Builder::new().spawn_scoped(scope, work).map_err(|error| to_python(&Error::from(error)))?;
    while end.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
        Python::attach(|py| py.check_signals().inspect_err(|_| stop.set()))?;
    }
    match worker.join() {
        Ok(result) => result.map_err(|error| to_python(&error)),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}
