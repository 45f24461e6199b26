"""The filters that a run names: whether licences are known, and libraries and benchmarks there."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path

from configs.layers import Layer, Tables
from configs.places import WILDCARDS
from schemas.licenses import canonical_license, license_identifiers
from schemas.options import BENCHMARK_DIGEST
from schemas.places import is_remote

_LIBRARIES = {"allowed_licenses": ("license_expression", "licenses"), "drop_secrets": ("detect_secrets", "secrets")}
"""Module and extra that a key needs."""

_ONLY_DIGEST = "a receipt has a benchmark's digest alone; name its files again, in a file for --config"


def check_filters(tables: Tables, layers: Sequence[Layer]) -> Iterator[str]:
    """Yield a line for every filter that cannot be used as it is asked for.

    Args:
        tables: The merged tables; values of a wrong type are passed over, they were told about.
        layers: The layers that were merged, for the places to name.
    """
    asked = {key: value for key, value in tables.get("ingest", {}).items() if value}
    missing = [key for key, (module, _) in _LIBRARIES.items() if key in asked and not importlib.util.find_spec(module)]
    for key in missing:
        module, extra = _LIBRARIES[key]
        name = module.replace("_", "-")
        yield f"{_place(layers, key)}: needs {name}, which is not installed: pip install 'cppmill[{extra}]'"
    licenses = asked.get("allowed_licenses")
    if isinstance(licenses, tuple) and "allowed_licenses" not in missing:
        yield from _check_licenses(licenses, layers)
    benchmarks = asked.get("decontaminate")
    for index, place in enumerate(benchmarks if isinstance(benchmarks, tuple) else ()):
        if (
            isinstance(place, str)
            and place
            and not (is_remote(place) or any(character in place for character in WILDCARDS) or _exists(place))
        ):
            known = place.startswith(BENCHMARK_DIGEST)
            yield f"{_place(layers, 'decontaminate', index)}: {_ONLY_DIGEST if known else 'no such file or folder'}"


def _exists(place: str) -> bool:
    return Path(place).expanduser().exists()


def _check_licenses(names: Sequence[object], layers: Sequence[Layer]) -> Iterator[str]:
    for index, name in enumerate(names):
        if isinstance(name, str) and name and canonical_license(name) is None:
            yield f"{_place(layers, 'allowed_licenses', index)}: no SPDX identifier{_nearest(name)}"


def _nearest(name: str) -> str:
    """Return the nearest identifiers as the end of a message."""
    known = {identifier.lower(): identifier for identifier in license_identifiers()}
    near = get_close_matches(name.lower().replace(" ", "-"), known, n=3)
    return (
        f"; did you mean {' or '.join(known[match] for match in near)}?"
        if near
        else ", as https://spdx.org/licenses has"
    )


def _place(layers: Sequence[Layer], key: str, index: int | None = None) -> str:
    layer = next(layer for layer in reversed(layers) if key in layer.table("ingest"))
    return layer.place("ingest", key, index=index)
