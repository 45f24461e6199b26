"""The stages of a run, each a program that wires sources, transforms and an engine, and the run of all of them.

A new stage is a module here, its transform a folder in `transforms`. Exports have a folder of their own.
"""
