//! Python binding of the core's scan and counts modules.

use std::path::PathBuf;

use cppmill_core::{counts, scan};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3_arrow::{PyRecordBatch, PyRecordBatchReader};

use crate::checked::Checked;
use crate::errors::{to_python, without_gil};

/// Counts terms, morphemes, namespaces, statistics and words of documents.
#[pyclass(module = "cppmill_core")]
struct Scanner(scan::Scanner);

#[pymethods]
impl Scanner {
    #[new]
    #[pyo3(signature = (config, threads = 1, memory_bytes = 2 << 30, spill_dir = None))]
    fn new(config: &str, threads: usize, memory_bytes: usize, spill_dir: Option<PathBuf>) -> PyResult<Self> {
        let budget = scan::Budget { memory_bytes, spill_dir };
        scan::Scanner::new(config, threads, budget).map(Self).map_err(|error| to_python(&error))
    }

    /// Counts every document of a batch.
    fn add(&mut self, py: Python<'_>, documents: Checked<PyRecordBatch>) -> PyResult<()> {
        let documents = documents.0.into_inner();
        without_gil(py, || self.0.add(&documents))
    }

    /// Gives the counts so far by name and starts anew: `words` and `units` (lines) as readers, the others as record
    /// batches.
    fn finish<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counts = without_gil(py, || self.0.finish())?;
        let result = PyDict::new(py);
        result.set_item("words", PyRecordBatchReader::new(Box::new(counts.words)).into_pyarrow(py)?)?;
        if let Some(lines) = counts.lines {
            result.set_item("units", PyRecordBatchReader::new(Box::new(lines)).into_pyarrow(py)?)?;
        }
        result.set_item("terms", PyRecordBatch::new(counts.terms).into_pyarrow(py)?)?;
        result.set_item("morphemes", PyRecordBatch::new(counts.morphemes).into_pyarrow(py)?)?;
        result.set_item("namespaces", PyRecordBatch::new(counts.namespaces).into_pyarrow(py)?)?;
        if let Some(families) = counts.families {
            result.set_item("families", PyRecordBatch::new(families).into_pyarrow(py)?)?;
        }
        result.set_item("statistics", PyRecordBatch::new(counts.statistics).into_pyarrow(py)?)?;
        Ok(result)
    }
}

/// Counts words of documents, and nothing else.
#[pyclass(module = "cppmill_core")]
struct WordCounter(scan::WordCounter);

#[pymethods]
impl WordCounter {
    #[new]
    #[pyo3(signature = (pattern, threads = 1))]
    fn new(pattern: &str, threads: usize) -> PyResult<Self> {
        scan::WordCounter::new(pattern, threads).map(Self).map_err(|error| to_python(&error))
    }

    /// Counts every document of a batch.
    fn add(&mut self, py: Python<'_>, documents: Checked<PyRecordBatch>) -> PyResult<()> {
        let documents = documents.0.into_inner();
        without_gil(py, || self.0.add(&documents))
    }

    /// Gives the words so far as a reader, and starts anew.
    fn finish<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let words = without_gil(py, || self.0.finish())?;
        PyRecordBatchReader::new(Box::new(words)).into_pyarrow(py)
    }
}

/// Merges sorted runs of words.
#[pyfunction]
fn merge_words(py: Python<'_>, runs: Vec<Checked<PyRecordBatchReader>>) -> PyResult<Bound<'_, PyAny>> {
    let runs = runs.into_iter().map(Checked::into_reader).collect::<PyResult<Vec<_>>>()?;
    let words = without_gil(py, || counts::merge(runs))?;
    PyRecordBatchReader::new(Box::new(words)).into_pyarrow(py)
}

/// Adds this file's classes and functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Scanner>()?;
    module.add_class::<WordCounter>()?;
    module.add_function(wrap_pyfunction!(merge_words, module)?)
}
