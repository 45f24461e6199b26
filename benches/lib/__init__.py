"""What benchmarks share: the harness, corpora, peers and their vocabularies.

Nothing here is run by itself.
"""
