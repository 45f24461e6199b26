"""The filters that a run names: whether the licences are known, and the libraries there."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from configs.layers import Layer, Tables
from schemas.licenses import canonical_license, license_identifiers


def check_filters(tables: Tables, layers: Sequence[Layer]) -> Iterator[str]:
    """Yield a line for every filter that cannot be used as it is asked for.

    Args:
        tables: The merged tables; values of a wrong type are passed over, they were told about.
        layers: The layers that were merged, for the places to name.
    """
    names = tables.get("ingest", {}).get("allowed_licenses")
    if not isinstance(names, tuple) or not names:
        return
    if importlib.util.find_spec("license_expression") is None:
        place = _layer(layers, "allowed_licenses").place("ingest", "allowed_licenses")
        yield f"{place}: needs license-expression, which is not installed: pip install 'cppmill[licenses]'"
        return
    for index, name in enumerate(names):
        if isinstance(name, str) and name and canonical_license(name) is None:
            place = _layer(layers, "allowed_licenses").place("ingest", "allowed_licenses", index=index)
            yield f"{place}: no SPDX identifier{_nearest(name)}"


def _nearest(name: str) -> str:
    """Return the nearest identifiers as the end of a message."""
    known = {identifier.lower(): identifier for identifier in license_identifiers()}
    near = get_close_matches(name.lower().replace(" ", "-"), known, n=3)
    return (
        f"; did you mean {' or '.join(known[match] for match in near)}?"
        if near
        else ", as https://spdx.org/licenses has"
    )


def _layer(layers: Sequence[Layer], key: str) -> Layer:
    return next(layer for layer in reversed(layers) if key in layer.table("ingest"))
