//! Python binding of the core's pattern and encode modules.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::BinaryBuilder;
use cppmill_core::pattern::Pattern;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3_arrow::PyArray;

use crate::errors::without_gil;

/// Splits `data` into the words of the pattern called `pattern`.
#[pyfunction]
fn split(py: Python<'_>, pattern: &str, data: &[u8]) -> PyResult<Py<PyAny>> {
    let words = without_gil(py, || {
        let mut words = BinaryBuilder::new();
        Pattern::by_name(pattern)?.split(data, |word| words.append_value(word));
        Ok(words.finish())
    })?;
    to_pyarrow(py, Arc::new(words))
}

fn to_pyarrow(py: Python<'_>, array: ArrayRef) -> PyResult<Py<PyAny>> {
    Ok(PyArray::from_array_ref(array).to_pyarrow(py)?.unbind())
}

/// Adds this file's classes and functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let patterns = PyDict::new(module.py());
    for pattern in Pattern::ALL {
        patterns.set_item(pattern.name(), pattern.regex())?;
    }
    module.add("PATTERNS", patterns)?;
    module.add_function(wrap_pyfunction!(split, module)?)
}
