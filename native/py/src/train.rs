//! Python binding of the core's train module.

use cppmill_core::train::{self, Options};
use pyo3::prelude::*;
use pyo3_arrow::PyRecordBatch;

use crate::errors::without_gil;

/// Learns merges from word counts and seeds; see the stub for the columns.
#[pyfunction]
#[pyo3(signature = (words, *, seeds, vocab_tokens, forbidden, max_token_bytes = None, threads = 1))]
fn train_bpe(
    py: Python<'_>,
    words: Vec<PyRecordBatch>,
    seeds: PyRecordBatch,
    vocab_tokens: usize,
    forbidden: Vec<Vec<u8>>,
    max_token_bytes: Option<usize>,
    threads: usize,
) -> PyResult<Bound<'_, PyAny>> {
    let words: Vec<_> = words.into_iter().map(PyRecordBatch::into_inner).collect();
    let seeds = seeds.into_inner();
    let options = Options { vocab_tokens, forbidden, max_token_bytes, threads };
    let merges = without_gil(py, || train::train_bpe(&words, &seeds, &options))?;
    PyRecordBatch::new(merges).into_pyarrow(py)
}

/// Adds this file's classes and functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(train_bpe, module)?)
}
