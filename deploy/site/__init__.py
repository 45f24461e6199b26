"""The documentation site: the hooks with which `mkdocs` builds it from docs/ and the README."""
