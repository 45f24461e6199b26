"""Benchmarks of the stages and of the native core beside their peers."""
