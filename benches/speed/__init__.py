"""Speed and memory of the stages and of the native core, beside their peers in the same run.

Benchmarks that report seconds or bytes belong here; studies of quality belong in `studies`.
"""
