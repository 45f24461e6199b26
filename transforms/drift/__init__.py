"""Drift: how the versions of a dataset move away from the text that their tokenizer was made for.

Counting the ids and names of each token shard, keeping totals from version to version, and comparing two versions
belong here. Which documents a version has is in `records`.
"""
