"""Reading sources: listing inputs, and one reader for each kind of file or archive, each yielding `Document`s.

Reading belongs here. Deciding what is kept belongs in `filters`; packing documents belongs in `ingest`.

To add an archive or table format: add its kind and suffixes to `listing.Kind`, write its reader in a module like
`archives.tar`, and list the reader in `readers`.
"""
