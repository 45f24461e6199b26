"""Studies of quality: bytes per token of patterns, lines and ablations, recall and precision of filters.

What reports no speed but a property of the result belongs here.
"""
