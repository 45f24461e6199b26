"""The order in which a training reads a dataset: rows by position, and positions by step, from a few numbers alone."""
