"""Flows and the pure functions they apply, grouped by the stages of the data.

What a stage does to its data belongs here. Command lines, locks and progress belong in `pipelines`; schemas and records
that several stages share belong in `schemas`.
"""
