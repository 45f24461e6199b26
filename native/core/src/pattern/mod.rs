//! Pre-token patterns and their hand-written splitters.
