"""PTransforms: one idea a file, the pure function above, the transform below."""
