"""Records of a finished folder: receipts, manifests, versions, and the same facts in standard formats.

What says what a folder holds, or checks that it does, belongs here. Unit receipts belong in `units` and `schemas`.
"""
