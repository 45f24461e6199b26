"""Scan: counting what the C++ lexer sees in documents shards, and merging the counts of all shards.

Counting and merging belong here. Decisions based on the counts belong in `tokenizer_build`.
"""
