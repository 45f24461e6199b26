//! Arrow data from Python that has checked itself before it is read.

use std::ops::Deref;

use arrow_array::{Array, RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::IntoPyDict;
use pyo3_arrow::{PyArray, PyChunkedArray, PyRecordBatch, PyRecordBatchReader};

use crate::errors::InvalidInputError;

/// An array, a record batch or a reader of Arrow, whose offsets and buffers fit together.
pub struct Checked<T>(pub T);

impl<'a, 'py, T> FromPyObject<'a, 'py> for Checked<T>
where
    T: FromPyObject<'a, 'py, Error = PyErr> + Import,
{
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let is_checked = validate(&object)?;
        imported(object.extract()?, is_checked).map(Self)
    }
}

/// A list of Python objects. An array of Arrow is checked before it is iterated, which reads its buffers.
pub struct CheckedList<T>(pub Vec<T>);

impl<'a, 'py, T> FromPyObject<'a, 'py> for CheckedList<T>
where
    Vec<T>: FromPyObject<'a, 'py, Error = PyErr>,
{
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        validate(&object)?;
        object.extract().map(Self)
    }
}

/// Data that was imported through the C data interface.
pub trait Import {
    /// # Errors
    /// If offsets, views or text contradict each other.
    fn validate(&self) -> Result<(), ArrowError>;
}

impl Import for PyArray {
    fn validate(&self) -> Result<(), ArrowError> {
        self.array().to_data().validate_full()
    }
}

impl Import for PyChunkedArray {
    fn validate(&self) -> Result<(), ArrowError> {
        self.chunks().iter().try_for_each(|chunk| chunk.to_data().validate_full())
    }
}

impl Import for PyRecordBatch {
    fn validate(&self) -> Result<(), ArrowError> {
        self.as_ref().columns().iter().try_for_each(|column| column.to_data().validate_full())
    }
}

/// A reader's batches are checked when they are read.
impl Import for PyRecordBatchReader {
    fn validate(&self) -> Result<(), ArrowError> {
        Ok(())
    }
}

impl<T> Deref for Checked<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// Lets data of pyarrow check itself, and returns whether it did: once it is imported, nothing tells how long its buffers
/// are.
///
/// # Errors
/// `InvalidInputError` if it is malformed.
pub fn validate(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let is_arrow = object.hasattr("__arrow_c_array__")? || object.hasattr("__arrow_c_stream__")?;
    if is_arrow && let Some(validate) = object.getattr_opt("validate")? {
        let py = object.py();
        validate.call((), Some(&[("full", true)].into_py_dict(py)?)).map_err(|error| {
            let is_finding = error.is_instance_of::<PyException>(py);
            if is_finding {
                InvalidInputError::new_err(format!("malformed Arrow data: {}", error.value(py)))
            } else {
                error
            }
        })?;
        for chunk in object.getattr_opt("chunks")?.map_or(Ok(vec![object.clone()]), |chunks| chunks.extract())? {
            check_values(&chunk)?;
        }
        return Ok(true);
    }
    Ok(false)
}

/// Checks that a list of fixed size has all its values: pyarrow doesn't count those before its first row.
fn check_values(array: &Bound<'_, PyAny>) -> PyResult<()> {
    let kind = array.getattr_opt("type")?;
    if let Some(size) = kind.map(|kind| kind.getattr_opt("list_size")).transpose()?.flatten() {
        let rows = array.getattr("offset")?.extract::<usize>()? + array.len()?;
        if size.extract::<usize>()?.saturating_mul(rows) > array.getattr("values")?.len()? {
            return Err(InvalidInputError::new_err("malformed Arrow data: a list of fixed size lacks values"));
        }
    }
    Ok(())
}

/// Data that checked itself, or that is checked now, as far as its own offsets tell how long its buffers are.
///
/// # Errors
/// `InvalidInputError` if it is malformed.
pub fn imported<T: Import>(data: T, is_checked: bool) -> PyResult<T> {
    if !is_checked {
        data.validate().map_err(|error| InvalidInputError::new_err(format!("malformed Arrow data: {error}")))?;
    }
    Ok(data)
}

impl Checked<PyRecordBatchReader> {
    /// A reader that checks each batch, as far as its own offsets tell how long its buffers are.
    pub fn into_reader(self) -> PyResult<Box<dyn RecordBatchReader + Send>> {
        Ok(Box::new(CheckedReader(self.0.into_reader()?)))
    }
}

struct CheckedReader(Box<dyn RecordBatchReader + Send>);

impl Iterator for CheckedReader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.0.next()?;
        Some(batch.and_then(|batch| {
            batch.columns().iter().try_for_each(|column| column.to_data().validate_full())?;
            Ok(batch)
        }))
    }
}

impl RecordBatchReader for CheckedReader {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }
}
