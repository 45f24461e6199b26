"""Filters on the content of a document: each gives a reason to leave the document out, or none.

A new filter belongs here, with its reason in `schemas.reasons`. Filters that compare documents with one another belong
in `ingest.dedup`.
"""
