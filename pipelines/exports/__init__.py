"""Programs that read the token shards of a finished run and write something else for training.

Each is a command. Their transforms belong in `transforms.exports`.
"""
