"""Tokenizing documents shards, proving token shards, and reading them back.

What makes or measures token shards belongs here. Files made from token shards belong in `exports`.
"""
