"""Ingest: a first pass that identifies every document, and a second pass that writes those that are kept.

The plans of both passes and the documents shards belong here. Reading files belongs in `sources`.
"""
