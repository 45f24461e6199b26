"""Filters on the content of a document: each gives a reason to leave the document out, or none.

What looks at one document belongs here. Filters that compare documents with one another belong in `ingest.dedup`.

To add a filter: declare its options in `schemas.options.IngestOptions` and its reason in `schemas.reasons`, write it in
a module here, and list it in `verdicts`.
"""
