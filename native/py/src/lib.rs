//! The Python module `cppmill_core._native`: a thin binding, no logic.

mod checked;
mod control;
mod digest;
mod errors;
mod files;
mod interrupt;
mod jsonl;
mod lex;
mod memory;
mod platform;
mod scan;
mod tokenizer;
mod train;

use pyo3::prelude::*;

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", cppmill_core::VERSION)?;
    errors::register(module)?;
    control::register(module)?;
    digest::register(module)?;
    files::register(module)?;
    jsonl::register(module)?;
    lex::register(module)?;
    platform::register(module)?;
    scan::register(module)?;
    tokenizer::register(module)?;
    train::register(module)
}
