//! Byte-level BPE training.
