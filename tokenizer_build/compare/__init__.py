"""Comparing tokenizers: candidates of any make, compression, costs, the origin of tokens and moved ids.

Nothing here changes a tokenizer; building one belongs in the package above.
"""
