"""The documentation site: what `mkdocs` needs to be told to build it from docs/ and from the README."""
