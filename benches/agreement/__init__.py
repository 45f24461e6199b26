"""Agreement with other implementations: libclang's lexer, and the ids of `tokenizers` on whole corpora.

What counts differences from a reference belongs here. What fails on a difference is a test.
"""
