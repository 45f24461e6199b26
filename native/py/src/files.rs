//! Python binding of the core's files module.

use std::ffi::OsString;

use cppmill_core::files::{self, Files};
use pyo3::prelude::*;
use pyo3::types::PyList;
use pyo3_arrow::{PyArray, PyRecordBatch};

use crate::checked::{Checked, CheckedList};
use crate::errors::without_gil;
use crate::interrupt::interruptible;

/// So many bytes of reading may take as long as a byte of computing.
const BYTES_PER_FILE: usize = 64 << 10;

/// Reads files.
#[pyfunction]
#[pyo3(signature = (root, paths, num_bytes, *, max_bytes, keep = false, threads = 1))]
#[expect(clippy::needless_pass_by_value, reason = "pyo3 hands over what it extracts")]
fn read_files<'py>(
    py: Python<'py>,
    root: &[u8],
    paths: Checked<PyArray>,
    num_bytes: Checked<PyArray>,
    max_bytes: u64,
    keep: bool,
    threads: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let files = Files { root, paths: paths.array(), num_bytes: num_bytes.array(), max_bytes };
    let found =
        interruptible(py, files.paths.len() * BYTES_PER_FILE, |stop| files::read_files(&files, keep, threads, stop))?;
    PyRecordBatch::new(found).into_pyarrow(py)
}

/// Lists folders.
#[pyfunction]
#[pyo3(signature = (root, folders, *, threads = 1))]
#[expect(clippy::needless_pass_by_value, reason = "pyo3 hands over what it extracts")]
fn list_folders<'py>(
    py: Python<'py>,
    root: &[u8],
    folders: CheckedList<OsString>,
    threads: usize,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let bytes = folders.0.len() * BYTES_PER_FILE;
    let found = interruptible(py, bytes, |stop| files::list_folders(root, &folders.0, threads, stop))?;
    found.into_iter().map(|listed| to_entries(py, listed)).collect()
}

/// A list of tuples, or the number of an error.
fn to_entries(py: Python<'_>, listed: files::Listed) -> PyResult<Bound<'_, PyAny>> {
    match listed {
        Err(number) => Ok(number.into_pyobject(py)?.into_any()),
        Ok(entries) => {
            let tuple = |entry: files::Entry| {
                let version = (entry.modified_ns, entry.changed_ns, entry.inode);
                (entry.name, entry.kind as u8, entry.num_bytes, version, entry.error).into_pyobject(py)
            };
            let tuples = entries.into_iter().map(tuple).collect::<PyResult<Vec<_>>>()?;
            Ok(PyList::new(py, tuples)?.into_any())
        }
    }
}

/// Digests documents in memory.
#[pyfunction]
#[pyo3(signature = (content, threads = 1))]
#[expect(clippy::needless_pass_by_value, reason = "pyo3 hands over what it extracts")]
fn digest_contents(py: Python<'_>, content: Checked<PyArray>, threads: usize) -> PyResult<Bound<'_, PyAny>> {
    let found = without_gil(py, || files::digest_contents(content.array(), threads))?;
    PyRecordBatch::new(found).into_pyarrow(py)
}

/// Adds this file's functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(list_folders, module)?)?;
    module.add_function(wrap_pyfunction!(read_files, module)?)?;
    module.add_function(wrap_pyfunction!(digest_contents, module)?)
}
