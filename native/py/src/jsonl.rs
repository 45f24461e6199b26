//! Python binding of the core's jsonl module.

use cppmill_core::jsonl::{self, Keys};
use pyo3::prelude::*;
use pyo3_arrow::PyRecordBatch;

use crate::errors::without_gil;

/// Reads lines of JSON.
#[pyfunction]
#[pyo3(signature = (data, start, *, content, path, project = None, license = None, max_lines))]
#[expect(clippy::too_many_arguments, reason = "keys")]
fn read_json_lines<'py>(
    py: Python<'py>,
    data: &[u8],
    start: usize,
    content: &[u8],
    path: &[u8],
    project: Option<&[u8]>,
    license: Option<&[u8]>,
    max_lines: usize,
) -> PyResult<(Bound<'py, PyAny>, usize, usize)> {
    let keys = Keys { content, path, project, license };
    let found = without_gil(py, || jsonl::read_lines(data, start, &keys, max_lines))?;
    Ok((PyRecordBatch::new(found.rows).into_pyarrow(py)?, found.lines, found.end))
}

/// Adds this file's functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(read_json_lines, module)?)
}
