"""Trials of tokenizers: the same small model trained with each of them on the same text, for the same work.

Only `cells` imports torch, and only when a trial runs.
"""
