"""`.bin` shards and Megatron pairs: the token streams of training programs, split for validation.

The file formats, splits and writer of `cppmill shards` belong here. Its command and progress belong in `pipelines`.
"""
