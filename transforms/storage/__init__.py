"""The output folder OUT, on a file system or an object store: publishing, locks, leases, logs and scratch files.

Everything that knows where OUT is belongs here. What the files hold does not: see `units`, `records` and the stages.
"""
