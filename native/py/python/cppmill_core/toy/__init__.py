"""A small language model in torch, and a program that trains it on a dataset: an example to read, run and copy.

`cppmill trial` trains the same model with several tokenizers. The modules need torch, so nothing is imported here.
"""
