//! Platform detection from code.
