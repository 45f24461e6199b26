//! Encoding and decoding with a trained vocabulary.
