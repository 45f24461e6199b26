//! Python binding of the core's lexer module.

use cppmill_core::lexer;
use pyo3::prelude::*;
use pyo3_arrow::PyRecordBatch;

use crate::errors::without_gil;

/// Cuts `data` into tokens, one row each.
#[pyfunction]
fn lex<'py>(py: Python<'py>, data: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let tokens = without_gil(py, || lexer::token_table(data))?;
    PyRecordBatch::new(tokens).into_pyarrow(py)
}

/// Adds this file's classes and functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(lex, module)?)
}
