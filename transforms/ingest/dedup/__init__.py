"""Duplicates across the whole corpus: exact ones by digest, near-duplicates by MinHash and LSH.

What compares documents with one another belongs here. Filters that look at one document belong in `filters`.
"""
