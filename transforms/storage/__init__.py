"""The output folder OUT, on a file system or an object store: publishing, locks, leases, logs and scratch files.

Everything that depends on where OUT is belongs here; a new object store is one class beside `s3` (see `protocol`). What
the files contain does not: see `units`, `records` and the stages.
"""
