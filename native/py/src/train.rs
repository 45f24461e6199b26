//! Python binding of the core's train module.

use arrow_array::{RecordBatch, RecordBatchReader};
use cppmill_core::pattern::Pattern;
use cppmill_core::train::{self, Options, SuperwordBounds, SuperwordRanks};
use pyo3::prelude::*;
use pyo3_arrow::{PyRecordBatch, PyRecordBatchReader};

use crate::checked::Checked;
use crate::errors::{to_python, without_gil};

/// Counted words: batches, or a reader that is read once.
#[derive(FromPyObject)]
enum Words {
    Batches(Vec<Checked<PyRecordBatch>>),
    Reader(Checked<PyRecordBatchReader>),
}

impl Words {
    fn into_batches(self) -> PyResult<Box<dyn Iterator<Item = cppmill_core::Result<RecordBatch>> + Send>> {
        match self {
            Self::Batches(words) => Ok(Box::new(words.into_iter().map(|batch| Ok(batch.0.into_inner())))),
            Self::Reader(words) => Ok(Box::new(batches(Some(words.into_reader()?)))),
        }
    }
}

/// Learns merges from word counts and seeds, and superwords from the counts of lines (`units`); see the stub for the
/// columns.
#[pyfunction]
#[pyo3(signature = (words, *, seeds, vocab_tokens, forbidden, max_token_bytes = None, threads = 1, units = None,
    superword_tokens = 0, unit_pattern = None, max_superword_words = None, max_superword_bytes = None,
    max_held_tokens = None, group_cap = None))]
#[allow(clippy::too_many_arguments, reason = "keywords of a Python function")]
fn train_bpe<'py>(
    py: Python<'py>,
    words: Words,
    seeds: Checked<PyRecordBatch>,
    vocab_tokens: usize,
    forbidden: Vec<Vec<u8>>,
    max_token_bytes: Option<usize>,
    threads: usize,
    units: Option<Checked<PyRecordBatchReader>>,
    superword_tokens: usize,
    unit_pattern: Option<&str>,
    max_superword_words: Option<usize>,
    max_superword_bytes: Option<usize>,
    max_held_tokens: Option<usize>,
    group_cap: Option<f64>,
) -> PyResult<Bound<'py, PyAny>> {
    let words = words.into_batches()?;
    let units = units.map(Checked::into_reader).transpose()?;
    let seeds = seeds.0.into_inner();
    let pattern = unit_pattern.map(Pattern::by_name).transpose().map_err(|error| to_python(&error))?;
    let superwords = pattern.map(|pattern| SuperwordBounds {
        pattern,
        max_words: max_superword_words.unwrap_or(usize::MAX),
        max_bytes: max_superword_bytes.unwrap_or(usize::MAX),
    });
    let options = Options {
        vocab_tokens,
        forbidden,
        max_token_bytes,
        superword_tokens,
        superwords,
        max_held_tokens,
        group_cap,
        threads,
    };
    let merges = without_gil(py, || train::train_bpe(words, batches(units), &seeds, &options))?;
    PyRecordBatch::new(merges).into_pyarrow(py)
}

/// Counts the tokens of texts that are encoded by merges; see the stub.
#[pyfunction]
#[pyo3(signature = (merges, texts, *, first_superword = None, unit_pattern = None, threads = 1))]
fn count_tokens<'py>(
    py: Python<'py>,
    merges: Checked<PyRecordBatch>,
    texts: Checked<PyRecordBatchReader>,
    first_superword: Option<usize>,
    unit_pattern: Option<&str>,
    threads: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let (merges, texts) = (merges.0.into_inner(), texts.into_reader()?);
    let pattern = unit_pattern.map(Pattern::by_name).transpose().map_err(|error| to_python(&error))?;
    let superwords = first_superword.zip(pattern).map(|(first, pattern)| SuperwordRanks { first, pattern });
    let counts = without_gil(py, || train::count_tokens(&merges, batches(Some(texts)), superwords, threads))?;
    PyRecordBatch::new(counts).into_pyarrow(py)
}

fn batches(
    reader: Option<Box<dyn RecordBatchReader + Send>>,
) -> impl Iterator<Item = cppmill_core::Result<RecordBatch>> + Send {
    reader.into_iter().flatten().map(|batch| Ok(batch?))
}

/// Adds this file's classes and functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(train_bpe, module)?)?;
    module.add_function(wrap_pyfunction!(count_tokens, module)?)
}
