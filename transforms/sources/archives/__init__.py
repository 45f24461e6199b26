"""Readers of tar and zip archives, and what they say of an archive whose members fsspec lists and opens."""
