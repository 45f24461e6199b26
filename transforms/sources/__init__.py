"""Reading sources: listing inputs, and one reader for each kind of file or archive, each yielding `Document`s.

A new input format belongs here. Deciding what is kept belongs in `filters`; packing documents belongs in `ingest`.
"""
