"""Programs for tokenizers: adopting, encoding, comparing, showing, and the vocabulary's releases.

They work on tokenizer directories. Building one from counts is the stage `pipelines.stages.build`.
"""
