"""Whether near-duplicates can be found: among distinct documents only, and with a library that is not always there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.util import find_spec

from configs.layers import Layer, Tables

_KEY = "near_duplicate_similarity"


def check_near_duplicates(tables: Tables, layers: Sequence[Layer]) -> Iterator[str]:
    """Yield a line for each thing that the filter of near-duplicates lacks, if it is on.

    Args:
        tables: The merged tables; values of a wrong type are passed over, they were told about.
        layers: The layers that were merged, for the places to name.
    """
    ingest = tables.get("ingest", {})
    if ingest.get(_KEY) is None:
        return
    place = next(layer for layer in reversed(layers) if _KEY in layer.table("ingest")).place("ingest", _KEY)
    if ingest.get("drop_duplicates") is False:
        yield f"{place}: near-duplicates are found among distinct documents; leave drop_duplicates on"
    if find_spec("rensa") is None:
        yield f"{place}: it needs rensa: pip install 'cppmill[near-duplicates]'"
