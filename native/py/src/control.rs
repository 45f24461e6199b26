//! The Python class of control tokens.

use pyo3::prelude::*;
use pyo3::types::PyString;

/// A control token, by its name without angle brackets.
#[pyclass(frozen, eq, hash, from_py_object, module = "cppmill_core")]
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Control {
    #[pyo3(get)]
    pub name: String,
}

#[pymethods]
impl Control {
    #[new]
    fn new(name: &str) -> Self {
        let inner = name.strip_prefix('<').and_then(|name| name.strip_suffix('>'));
        Self { name: inner.unwrap_or(name).into() }
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("Control({})", PyString::new(py, &self.name).repr()?))
    }

    fn __getnewargs__(&self) -> (&str,) {
        (&self.name,)
    }
}

/// Adds this file's class to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Control>()
}
