"""`.bin` shards and Megatron pairs: the token streams of training programs, split for validation.

The file formats, splits and writer of the command `cppmill shards` belong here.
"""
