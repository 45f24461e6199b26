//! One opaque error type for the whole core.

use std::fmt;
use std::path::{Path, PathBuf};

/// What kind of failure it was; a binding maps each to an exception class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The caller passed a value that cannot be used.
    Invalid,
    /// A file or the data in it is not what its format or digest says.
    Corrupt,
    /// Reading or writing failed.
    Io,
    /// The vocabulary cannot be built as asked.
    Vocabulary,
    /// Whoever called has set the [`Stop`](crate::Stop) of the call.
    Stopped,
}

/// An error of the core: a kind, and a message that says what, the value, where, and what to do.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    refused: Option<RefusedFile>,
}

/// A file that the operating system refused.
#[derive(Clone, Debug)]
pub struct RefusedFile {
    /// The file.
    pub path: PathBuf,
    /// The number of the error, such as `EACCES`.
    pub number: i32,
}

/// The result of a core function.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Makes an error of `kind`.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), refused: None }
    }

    /// Makes an [`ErrorKind::Io`] error of a file.
    pub fn of_file(path: &Path, error: &std::io::Error) -> Self {
        let refused = error.raw_os_error().map(|number| RefusedFile { path: path.to_owned(), number });
        Self { refused, ..Self::new(ErrorKind::Io, format!("{}: {error}", path.display())) }
    }

    /// Makes an [`ErrorKind::Invalid`] error.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }

    /// The file that the operating system refused, if that is what happened.
    pub fn refused(&self) -> Option<&RefusedFile> {
        self.refused.as_ref()
    }

    /// The kind of failure.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::new(ErrorKind::Io, error.to_string())
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self::new(ErrorKind::Corrupt, format!("JSON: {error}"))
    }
}

impl From<arrow_schema::ArrowError> for Error {
    fn from(error: arrow_schema::ArrowError) -> Self {
        Self::new(ErrorKind::Invalid, format!("Arrow: {error}"))
    }
}
