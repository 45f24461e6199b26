"""The training corpora of the ready tokenizer: fetched in the versions that `sources.lock` has."""
