"""Benchmarks and studies, each beside its peers in the same run. They are never shipped.

What measures belongs here. What asserts that results are right belongs in `tests`.
"""
