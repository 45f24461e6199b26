//! Python binding of the core's pattern and encode modules.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::BinaryBuilder;
use cppmill_core::encode::{self, byte_slices};
use cppmill_core::pattern::Pattern;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyBytes, PyDict};
use pyo3_arrow::PyArray;

use crate::errors::{to_python, without_gil};

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

/// One text.
#[derive(FromPyObject)]
enum Text {
    Bytes(PyBackedBytes),
    Str(PyBackedStr),
}

impl Text {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Str(text) => text.as_bytes(),
        }
    }
}

/// Many texts.
#[derive(FromPyObject)]
enum Documents {
    Array(PyArray),
    List(Vec<Text>),
}

impl Documents {
    fn slices(&self) -> cppmill_core::Result<Vec<&[u8]>> {
        match self {
            Self::Array(array) => byte_slices(array.array(), "documents"),
            Self::List(texts) => Ok(texts.iter().map(Text::bytes).collect()),
        }
    }
}

/// Token ids.
#[derive(FromPyObject)]
enum Ids {
    Array(PyArray),
    List(Vec<u32>),
}

/// A tokenizer directory, ready to encode and decode.
#[pyclass(frozen, module = "cppmill_core")]
struct Tokenizer(encode::Tokenizer);

#[pymethods]
impl Tokenizer {
    #[staticmethod]
    #[expect(clippy::needless_pass_by_value, reason = "pyo3 hands over what it extracts")]
    fn from_dir(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        without_gil(py, || encode::Tokenizer::from_dir(&path)).map(Self)
    }

    #[expect(clippy::needless_pass_by_value, reason = "pyo3 hands over what it extracts")]
    fn encode(&self, py: Python<'_>, data: Text) -> PyResult<Py<PyAny>> {
        to_pyarrow(py, without_gil(py, || self.0.encode(data.bytes()))?)
    }

    #[pyo3(signature = (documents, threads = 1))]
    #[expect(clippy::needless_pass_by_value, reason = "pyo3 hands over what it extracts")]
    fn encode_batch(&self, py: Python<'_>, documents: Documents, threads: usize) -> PyResult<Py<PyAny>> {
        to_pyarrow(py, Arc::new(without_gil(py, || self.0.encode_batch(&documents.slices()?, threads))?))
    }

    #[pyo3(signature = (ids, *, skip_control = false))]
    fn decode<'py>(&self, py: Python<'py>, ids: Ids, skip_control: bool) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = without_gil(py, || match ids {
            Ids::Array(array) => self.0.decode(&encode::integers(array.array(), "ids")?, skip_control),
            Ids::List(ids) => self.0.decode(&ids, skip_control),
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    #[pyo3(signature = (ids, *, skip_control = false))]
    #[expect(clippy::needless_pass_by_value, reason = "pyo3 hands over what it extracts")]
    fn decode_batch(&self, py: Python<'_>, ids: PyArray, skip_control: bool) -> PyResult<Py<PyAny>> {
        to_pyarrow(py, without_gil(py, || self.0.decode_batch(ids.array(), skip_control))?)
    }

    #[expect(clippy::needless_pass_by_value, reason = "pyo3 hands over what it extracts")]
    fn count_control<'py>(&self, py: Python<'py>, documents: Documents) -> PyResult<Bound<'py, PyDict>> {
        let counts = PyDict::new(py);
        for (name, count) in without_gil(py, || Ok(self.0.count_control(&documents.slices()?)))? {
            counts.set_item(name, count)?;
        }
        Ok(counts)
    }

    fn control_id(&self, name: &str) -> PyResult<u32> {
        self.0.control_id(name).map_err(|error| to_python(&error))
    }

    fn token_bytes<'py>(&self, py: Python<'py>, id: u32) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let bytes = self.0.token_bytes(id).map_err(|error| to_python(&error))?;
        Ok(bytes.map(|bytes| PyBytes::new(py, bytes)))
    }

    #[getter]
    fn vocab_size(&self) -> u32 {
        self.0.vocab_size()
    }

    #[getter]
    fn digest(&self) -> &str {
        self.0.digest()
    }

    #[getter]
    fn pattern(&self) -> &'static str {
        self.0.pattern()
    }

    fn __repr__(&self) -> String {
        format!("<Tokenizer {}: {} ids, pattern {}>", &self.0.digest()[..12], self.0.vocab_size(), self.0.pattern())
    }
}

/// Adds this file's classes and functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let patterns = PyDict::new(module.py());
    for pattern in Pattern::ALL {
        patterns.set_item(pattern.name(), pattern.regex())?;
    }
    module.add("PATTERNS", patterns)?;
    module.add_class::<Tokenizer>()?;
    module.add_function(wrap_pyfunction!(split, module)?)
}
