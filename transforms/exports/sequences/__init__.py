"""Sequences: rows of one length, packed or padded, with fill-in-the-middle, and their proofs.

What `cppmill sequences` does to token shards belongs here. Loading rows in training belongs in `cppmill_core`.
"""
