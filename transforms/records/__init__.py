"""Records of a finished folder: receipts, manifests, versions, and the same facts in standard formats.

Code that records or checks the contents of a folder belongs here. Unit receipts belong in `units` and `schemas`.
"""
