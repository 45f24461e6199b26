"""The vocabulary and the tokenizer directory: bands, lock, decisions, seeds, training and its readable reference.

What turns counts and vocabulary files into a tokenizer belongs here, without Beam. Encoding with it does not: see
`cppmill_core`.
"""
