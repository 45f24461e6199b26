"""Exports: files of other shapes, made from the token shards of a finished run.

A new export format is a folder here. What all formats share (plans, units, prefetch) belongs in `units`.
"""
