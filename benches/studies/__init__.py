"""Studies of quality: bytes per token of patterns, lines and ablations, recall and precision of filters.

Programs that report a property of the result, not its speed, belong here.
"""
