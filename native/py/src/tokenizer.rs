//! Python binding of the core's pattern and encode modules.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::builder::BinaryBuilder;
use arrow_array::{Array, ArrayRef, UInt32Array, UInt64Array};
use cppmill_core::Stop;
use cppmill_core::encode::{self, Markers, Part, byte_slices};
use cppmill_core::pattern::{Pattern, Step};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyBytes, PyDict, PyInt, PySequence, PyString};
use pyo3_arrow::{PyArray, PyChunkedArray, PyRecordBatch};

use crate::checked::{CheckedList, imported, validate};
use crate::control::Control;
use crate::errors::{InvalidInputError, to_python, without_gil};
use crate::interrupt::interruptible;

/// Splits `data` into the words of the pattern called `pattern`.
#[pyfunction]
fn split(py: Python<'_>, pattern: &str, data: &[u8]) -> PyResult<Py<PyAny>> {
    let words = without_gil(py, || {
        let mut words = BinaryBuilder::new();
        Pattern::by_any_name(pattern)?.split(data, |word| words.append_value(word));
        Ok(words.finish())
    })?;
    to_pyarrow(py, Arc::new(words))
}

fn to_pyarrow(py: Python<'_>, array: ArrayRef) -> PyResult<Py<PyAny>> {
    Ok(PyArray::from_array_ref(array).to_pyarrow(py)?.unbind())
}

/// An argument of another type than `wanted`.
fn type_error(object: &Bound<'_, PyAny>, wanted: &str) -> PyErr {
    let found = object.get_type().name().map_or_else(|_| "something else".into(), |name| name.to_string());
    PyTypeError::new_err(format!("{wanted}, not {found}"))
}

/// How many threads may be used; one at least.
fn checked(threads: usize) -> PyResult<usize> {
    if threads == 0 { Err(InvalidInputError::new_err("threads must be 1 or more, not 0")) } else { Ok(threads) }
}

/// One text.
enum TextInput {
    Bytes(PyBackedBytes),
    Str(PyBackedStr),
}

impl<'py> FromPyObject<'_, 'py> for TextInput {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(bytes) = object.extract() {
            return Ok(Self::Bytes(bytes));
        }
        if !object.is_instance_of::<PyString>() {
            return Err(type_error(&object, "a text must be bytes or str"));
        }
        let text = object.extract();
        let error = || InvalidInputError::new_err("a str with lone surrogates is no text: it has no UTF-8");
        text.map(Self::Str).map_err(|_: PyErr| error())
    }
}

impl TextInput {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Str(text) => text.as_bytes(),
        }
    }
}

/// A control token or a text.
#[derive(FromPyObject)]
enum ControlOrText {
    Control(Control),
    Text(TextInput),
}

impl ControlOrText {
    fn part(&self) -> Part<'_> {
        match self {
            Self::Control(control) => Part::Control(&control.name),
            Self::Text(text) => Part::Text(text.bytes()),
        }
    }

    fn size(&self) -> usize {
        match self {
            Self::Control(_) => 0,
            Self::Text(text) => text.bytes().len(),
        }
    }
}

/// Many texts.
enum Documents {
    Array(PyArray),
    Chunks(PyChunkedArray),
    List(Vec<TextInput>),
}

impl<'py> FromPyObject<'_, 'py> for Documents {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let is_checked = validate(&object)?;
        if let Ok(array) = object.extract() {
            return imported(array, is_checked).map(Self::Array);
        }
        if let Ok(chunks) = object.extract() {
            return imported(chunks, is_checked).map(Self::Chunks);
        }
        let wanted = "documents must be an Arrow array of binary or strings, or a list of bytes or str";
        let texts = object.cast::<PySequence>().map_err(|_| type_error(&object, wanted))?;
        if object.is_instance_of::<PyString>() || object.is_instance_of::<PyBytes>() {
            return Err(type_error(&object, wanted));
        }
        texts.try_iter()?.map(|text| text?.extract()).collect::<PyResult<_>>().map(Self::List)
    }
}

impl Documents {
    /// About how many bytes they have.
    fn size(&self) -> usize {
        match self {
            Self::Array(array) => array.array().get_buffer_memory_size(),
            Self::Chunks(chunks) => chunks.chunks().iter().map(Array::get_buffer_memory_size).sum(),
            Self::List(texts) => texts.iter().map(|text| text.bytes().len()).sum(),
        }
    }

    fn slices(&self) -> cppmill_core::Result<Vec<&[u8]>> {
        match self {
            Self::Array(array) => byte_slices(array.array(), "documents"),
            Self::Chunks(chunks) => {
                let slices = chunks.chunks().iter().map(|chunk| byte_slices(chunk, "documents"));
                Ok(slices.collect::<cppmill_core::Result<Vec<_>>>()?.concat())
            }
            Self::List(texts) => Ok(texts.iter().map(TextInput::bytes).collect()),
        }
    }
}

/// Lists of token ids.
struct Lists(PyArray);

impl<'py> FromPyObject<'_, 'py> for Lists {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let wanted = "ids must be an Arrow list array (of chunks, combine_chunks() makes one)";
        let is_checked = validate(&object)?;
        let array = object.extract().map_err(|_: PyErr| type_error(&object, wanted))?;
        imported(array, is_checked).map(Self)
    }
}

/// Token ids.
enum IdInput {
    Array(PyArray),
    List(Vec<u32>),
}

impl<'py> FromPyObject<'_, 'py> for IdInput {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let wanted = "ids must be an Arrow array of integers or a list of int";
        let is_checked = validate(&object)?;
        if let Ok(array) = object.extract() {
            return imported(array, is_checked).map(Self::Array);
        }
        let numbers = object.cast::<PySequence>().map_err(|_| type_error(&object, wanted))?;
        if object.is_instance_of::<PyString>() || object.is_instance_of::<PyBytes>() {
            return Err(type_error(&object, wanted));
        }
        let id = |number: PyResult<Bound<'py, PyAny>>| {
            let number = number?;
            let error = || InvalidInputError::new_err(format!("{number} is no token id"));
            if number.is_instance_of::<PyInt>() { number.extract().map_err(|_| error()) } else { number.extract() }
        };
        numbers.try_iter()?.map(id).collect::<PyResult<_>>().map(Self::List)
    }
}

impl IdInput {
    /// About how many bytes they take.
    fn size(&self) -> usize {
        match self {
            Self::Array(array) => array.array().get_buffer_memory_size(),
            Self::List(ids) => size_of_val(ids.as_slice()),
        }
    }

    fn array(&self) -> ArrayRef {
        match self {
            Self::Array(array) => Arc::clone(array.array()),
            Self::List(ids) => Arc::new(UInt32Array::from(ids.clone())),
        }
    }

    fn numbers(&self) -> cppmill_core::Result<Cow<'_, [u32]>> {
        match self {
            Self::Array(array) => Ok(Cow::Owned(encode::integers(array.array(), "ids")?)),
            Self::List(ids) => Ok(Cow::Borrowed(ids)),
        }
    }
}

/// A tokenizer directory, ready to encode and decode.
#[pyclass(frozen, module = "cppmill_core")]
struct Tokenizer(encode::Tokenizer);

#[pymethods]
impl Tokenizer {
    #[staticmethod]
    #[pyo3(signature = (path, digest = None))]
    fn from_dir(py: Python<'_>, path: PathBuf, digest: Option<&str>) -> PyResult<Py<Self>> {
        let loaded = Py::new(py, Self(without_gil(py, || encode::Tokenizer::from_dir(&path, digest))?))?;
        py.import("cppmill_core.loading")?.call_method1("check_native", (path, &loaded))?;
        Ok(loaded)
    }

    /// For pickle: where it was read from, and that it must still be the same.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (PathBuf, String))> {
        let this = slf.get();
        Ok((slf.getattr("from_dir")?, (this.0.dir().into(), this.0.digest().into())))
    }

    #[expect(clippy::needless_pass_by_value, reason = "pyo3 hands over what it extracts")]
    fn encode(&self, py: Python<'_>, data: TextInput) -> PyResult<Py<PyAny>> {
        let data = data.bytes();
        to_pyarrow(py, interruptible(py, data.len(), |stop| self.0.encode(data, stop))?)
    }

    #[pyo3(signature = (documents, threads = 1, *, bos = None, eos = None))]
    #[expect(clippy::needless_pass_by_value, reason = "pyo3 hands over what it extracts")]
    fn encode_batch(
        &self,
        py: Python<'_>,
        documents: Documents,
        threads: usize,
        bos: Option<u32>,
        eos: Option<u32>,
    ) -> PyResult<Py<PyAny>> {
        let threads = checked(threads)?;
        let encode = |stop: &Stop| self.0.encode_batch(&documents.slices()?, Markers { bos, eos }, threads, stop);
        to_pyarrow(py, Arc::new(interruptible(py, documents.size(), encode)?))
    }

    #[pyo3(signature = (paths, threads = 1))]
    #[expect(clippy::needless_pass_by_value, reason = "pyo3 hands over what it extracts")]
    fn encode_files(&self, py: Python<'_>, paths: CheckedList<PathBuf>, threads: usize) -> PyResult<Py<PyAny>> {
        let threads = checked(threads)?;
        // What the files have is not known yet, and reading them may take its time anyway.
        let encode = |stop: &Stop| self.0.encode_files(&paths.0, threads, stop);
        to_pyarrow(py, Arc::new(interruptible(py, usize::MAX, encode)?))
    }

    #[expect(clippy::needless_pass_by_value, reason = "pyo3 hands over what it extracts")]
    fn encode_parts(&self, py: Python<'_>, parts: Vec<ControlOrText>) -> PyResult<Py<PyAny>> {
        let size = parts.iter().map(ControlOrText::size).sum();
        let parts: Vec<_> = parts.iter().map(ControlOrText::part).collect();
        to_pyarrow(py, interruptible(py, size, |stop| self.0.encode_parts(&parts, stop))?)
    }

    #[expect(clippy::needless_pass_by_value, reason = "pyo3 hands over what it extracts")]
    fn stable_prefix(&self, py: Python<'_>, ids: IdInput) -> PyResult<usize> {
        interruptible(py, ids.size(), |stop| self.0.stable_prefix(&ids.numbers()?, stop))
    }

    #[expect(clippy::needless_pass_by_value, reason = "pyo3 hands over what it extracts")]
    fn byte_offsets(&self, py: Python<'_>, ids: IdInput) -> PyResult<Py<PyAny>> {
        to_pyarrow(py, without_gil(py, || self.0.byte_offsets(&ids.array()))?)
    }

    #[expect(clippy::needless_pass_by_value, reason = "pyo3 hands over what it extracts")]
    fn count(&self, py: Python<'_>, data: TextInput) -> PyResult<u64> {
        let data = data.bytes();
        let counts = interruptible(py, data.len(), |stop| self.0.count_batch(&[data], 1, stop))?;
        Ok(counts.iter().sum())
    }

    #[pyo3(signature = (documents, threads = 1))]
    #[expect(clippy::needless_pass_by_value, reason = "pyo3 hands over what it extracts")]
    fn count_batch(&self, py: Python<'_>, documents: Documents, threads: usize) -> PyResult<Py<PyAny>> {
        let threads = checked(threads)?;
        let count = |stop: &Stop| self.0.count_batch(&documents.slices()?, threads, stop);
        let counts = interruptible(py, documents.size(), count)?;
        to_pyarrow(py, Arc::new(UInt64Array::from(counts)))
    }

    #[pyo3(signature = (ids, *, skip_control = false))]
    #[expect(clippy::needless_pass_by_value, reason = "pyo3 hands over what it extracts")]
    fn decode<'py>(&self, py: Python<'py>, ids: IdInput, skip_control: bool) -> PyResult<Bound<'py, PyBytes>> {
        let decode = |stop: &Stop| self.0.decode(&ids.numbers()?, skip_control, stop);
        Ok(PyBytes::new(py, &interruptible(py, ids.size(), decode)?))
    }

    #[pyo3(signature = (ids, threads = 1, *, bos = None, eos = None, skip_control = false))]
    #[expect(clippy::needless_pass_by_value, reason = "pyo3 hands over what it extracts")]
    fn decode_batch(
        &self,
        py: Python<'_>,
        ids: Lists,
        threads: usize,
        bos: Option<u32>,
        eos: Option<u32>,
        skip_control: bool,
    ) -> PyResult<Py<PyAny>> {
        let threads = checked(threads)?;
        let markers = Markers { bos, eos };
        let decode = |stop: &Stop| self.0.decode_batch(ids.0.array(), markers, skip_control, threads, stop);
        to_pyarrow(py, interruptible(py, ids.0.array().get_buffer_memory_size(), decode)?)
    }

    #[pyo3(signature = (ids, threads = 1, *, bos = None, eos = None))]
    #[expect(clippy::needless_pass_by_value, reason = "pyo3 hands over what it extracts")]
    fn digest_batch<'py>(
        &self,
        py: Python<'py>,
        ids: Lists,
        threads: usize,
        bos: Option<u32>,
        eos: Option<u32>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let threads = checked(threads)?;
        let digest = |stop: &Stop| self.0.digest_batch(ids.0.array(), Markers { bos, eos }, threads, stop);
        PyRecordBatch::new(interruptible(py, ids.0.array().get_buffer_memory_size(), digest)?).into_pyarrow(py)
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

    #[getter]
    fn is_lossy(&self) -> bool {
        self.0.is_lossy()
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
    let foreign = PyDict::new(module.py());
    for pattern in Pattern::foreign() {
        let names = pattern.steps().iter().map(|step| match step {
            Step::Regex(regex) => *regex,
            Step::Digits => "Digits",
        });
        foreign.set_item(pattern.name(), names.collect::<Vec<_>>())?;
    }
    module.add("FOREIGN_PATTERNS", foreign)?;
    module.add_class::<Tokenizer>()?;
    module.add_function(wrap_pyfunction!(split, module)?)
}
