//! Python binding of the core's platform module.

use cppmill_core::platform::PlatformDetector as Core;
use pyo3::prelude::*;
use pyo3_arrow::PyRecordBatch;

use crate::checked::Checked;
use crate::errors::{to_python, without_gil};

#[pyclass(module = "cppmill_core", frozen)]
struct PlatformDetector(Core);

#[pymethods]
impl PlatformDetector {
    #[new]
    fn new(rules: &str) -> PyResult<Self> {
        Core::new(rules).map(Self).map_err(|error| to_python(&error))
    }

    #[pyo3(signature = (documents, threads = 1))]
    fn detect<'py>(
        &self,
        py: Python<'py>,
        documents: Checked<PyRecordBatch>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let documents = documents.0.into_inner();
        let found = without_gil(py, || self.0.detect(&documents, threads))?;
        PyRecordBatch::new(found).into_pyarrow(py)
    }
}

/// Adds this file's classes and functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PlatformDetector>()
}
