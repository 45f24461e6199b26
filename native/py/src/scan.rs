//! Python binding of the core's scan module.

use cppmill_core::scan;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3_arrow::PyRecordBatch;

use crate::errors::{to_python, without_gil};

/// Counts terms, morphemes, namespaces, statistics and words of documents.
#[pyclass(module = "cppmill_core")]
struct Scanner(scan::Scanner);

#[pymethods]
impl Scanner {
    #[new]
    #[pyo3(signature = (config, threads = 1))]
    fn new(config: &str, threads: usize) -> PyResult<Self> {
        scan::Scanner::new(config, threads).map(Self).map_err(|error| to_python(&error))
    }

    /// Counts every document of a batch.
    fn add(&mut self, py: Python<'_>, documents: PyRecordBatch) -> PyResult<()> {
        let documents = documents.into_inner();
        without_gil(py, || self.0.add(&documents))
    }

    /// Gives the counts so far as record batches by name, and starts anew.
    fn finish<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counts = without_gil(py, || self.0.finish())?;
        let result = PyDict::new(py);
        result.set_item("words", PyRecordBatch::new(counts.words).into_pyarrow(py)?)?;
        result.set_item("terms", PyRecordBatch::new(counts.terms).into_pyarrow(py)?)?;
        result.set_item("morphemes", PyRecordBatch::new(counts.morphemes).into_pyarrow(py)?)?;
        result.set_item("namespaces", PyRecordBatch::new(counts.namespaces).into_pyarrow(py)?)?;
        result.set_item("statistics", PyRecordBatch::new(counts.statistics).into_pyarrow(py)?)?;
        Ok(result)
    }
}

/// Adds this file's classes and functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Scanner>()
}
