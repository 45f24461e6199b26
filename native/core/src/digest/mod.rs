//! Digests of rows and of sets of rows.
