//! The control ids around a document.

/// The control ids around each document, where they are wanted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Markers {
    /// Before the ids of the text.
    pub bos: Option<u32>,
    /// After them.
    pub eos: Option<u32>,
}
