//! Python binding of the core's digest module.

use cppmill_core::digest::{self, DatasetRows, DigestSum, Rows};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use pyo3_arrow::{PyArray, PyRecordBatch};

use crate::checked::Checked;
use crate::errors::without_gil;

fn to_bytes(py: Python<'_>, sum: DigestSum) -> Bound<'_, PyBytes> {
    PyBytes::new(py, &sum.to_bytes())
}

/// Sums the row digests of a corpus.
#[pyfunction]
#[pyo3(signature = (doc_id, project, path, threads = 1))]
#[expect(clippy::needless_pass_by_value, reason = "pyo3 hands over what it extracts")]
fn corpus_digest_sum(
    py: Python<'_>,
    doc_id: Checked<PyArray>,
    project: Checked<PyArray>,
    path: Checked<PyArray>,
    threads: usize,
) -> PyResult<Bound<'_, PyBytes>> {
    let rows = Rows { doc_id: doc_id.array(), project: project.array(), path: path.array() };
    Ok(to_bytes(py, without_gil(py, || digest::corpus_digest_sum(&rows, threads))?))
}

/// Sums the row digests of a dataset.
#[pyfunction]
#[pyo3(signature = (doc_id, project, path, num_bytes, token_ids, platform_ids, threads = 1))]
#[expect(
    clippy::needless_pass_by_value,
    clippy::too_many_arguments,
    reason = "pyo3 hands over what it extracts; columns"
)]
fn dataset_digest_sum(
    py: Python<'_>,
    doc_id: Checked<PyArray>,
    project: Checked<PyArray>,
    path: Checked<PyArray>,
    num_bytes: Checked<PyArray>,
    token_ids: Checked<PyArray>,
    platform_ids: Checked<PyArray>,
    threads: usize,
) -> PyResult<Bound<'_, PyBytes>> {
    let rows = Rows { doc_id: doc_id.array(), project: project.array(), path: path.array() };
    let dataset =
        DatasetRows { num_bytes: num_bytes.array(), token_ids: token_ids.array(), platform_ids: platform_ids.array() };
    Ok(to_bytes(py, without_gil(py, || digest::dataset_digest_sum(&rows, &dataset, threads))?))
}

/// Writes rows as JSON.
#[pyfunction]
fn json_rows(py: Python<'_>, rows: Checked<PyRecordBatch>) -> PyResult<Bound<'_, PyBytes>> {
    let rows = rows.0.into_inner();
    let text = without_gil(py, || digest::json_rows(&rows))?;
    Ok(PyBytes::new(py, text.as_bytes()))
}

/// Adds this file's classes and functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(corpus_digest_sum, module)?)?;
    module.add_function(wrap_pyfunction!(dataset_digest_sum, module)?)?;
    module.add_function(wrap_pyfunction!(json_rows, module)?)
}
