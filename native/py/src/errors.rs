//! Maps core errors to Python exceptions and runs core calls without the GIL.

use cppmill_core::{Error, ErrorKind, RefusedFile};
use pyo3::create_exception;
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

create_exception!(cppmill_core, CoreError, PyRuntimeError, "Base class of the errors of the native core.");
create_exception!(cppmill_core, InvalidInputError, CoreError, "A value that the native core cannot use.");
create_exception!(cppmill_core, CorruptDataError, CoreError, "Data that is not what its format or digest says.");
create_exception!(cppmill_core, VocabularyError, CoreError, "A vocabulary that cannot be built as asked.");

/// Converts a core error to its Python exception.
pub fn to_python(error: &Error) -> PyErr {
    let message = error.to_string();
    match error.kind() {
        ErrorKind::Invalid => InvalidInputError::new_err(message),
        ErrorKind::Corrupt => CorruptDataError::new_err(message),
        ErrorKind::Io => match error.refused() {
            // Python makes of the number a class, such as PermissionError, and keeps the file's name beside it.
            Some(RefusedFile { path, number }) => {
                PyOSError::new_err((*number, strerror(*number), path.clone().into_os_string()))
            }
            None => PyOSError::new_err(message),
        },
        ErrorKind::Vocabulary => VocabularyError::new_err(message),
        _ => PyValueError::new_err(message),
    }
}

/// What the operating system calls an error.
fn strerror(number: i32) -> String {
    let shown = std::io::Error::from_raw_os_error(number).to_string();
    shown.trim_end_matches(&format!(" (os error {number})")).to_owned()
}

/// Runs `call` with the GIL released and maps its error.
pub fn without_gil<T: Send>(py: Python<'_>, call: impl FnOnce() -> cppmill_core::Result<T> + Send) -> PyResult<T> {
    py.detach(call).map_err(|error| to_python(&error))
}

/// Adds the exception classes to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("CoreError", py.get_type::<CoreError>())?;
    module.add("InvalidInputError", py.get_type::<InvalidInputError>())?;
    module.add("CorruptDataError", py.get_type::<CorruptDataError>())?;
    module.add("VocabularyError", py.get_type::<VocabularyError>())
}
