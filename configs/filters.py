"""The filters of a run: whether licences are known, and whether libraries and benchmarks are there."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path

from configs.layers import Layer, Tables, place_of
from configs.places import WILDCARDS
from schemas.licenses import canonical_license, license_identifiers
from schemas.options import BENCHMARK_DIGEST
from schemas.places import is_remote

_LIBRARIES = {
    "allowed_licenses": ("license_expression", "licenses"),
    "drop_secrets": ("detect_secrets", "secrets"),
    "near_duplicate_similarity": ("rensa", "near-duplicates"),
}
"""The module that a key needs, and the extra that installs it."""

_ONLY_DIGEST = "a receipt has only a benchmark's digest; name its files again"


def check_filters(tables: Tables, layers: Sequence[Layer]) -> Iterator[str]:
    """Yield a line for every filter that cannot be used as it is asked for.

    Args:
        tables: The merged tables; values of a wrong type are passed over, as they were reported.
        layers: The layers that were merged, for the places to name.
    """
    ingest = tables.get("ingest", {})
    asked = {key: value for key, value in ingest.items() if value}
    missing = [key for key, (module, _) in _LIBRARIES.items() if key in asked and not importlib.util.find_spec(module)]
    for key in missing:
        module, extra = _LIBRARIES[key]
        name = module.replace("_", "-")
        yield f"{place_of(layers, 'ingest', key)}: needs {name}, which is not installed: pip install 'cppmill[{extra}]'"
    if "allowed_licenses" not in missing:
        yield from _check_licenses(asked.get("allowed_licenses"), layers)
    yield from _check_benchmarks(asked.get("decontaminate"), layers)
    if "near_duplicate_similarity" in asked and ingest.get("drop_duplicates") is False:
        place = place_of(layers, "ingest", "near_duplicate_similarity")
        yield f"{place}: near-duplicates are found among distinct documents; leave drop_duplicates on"


def _check_benchmarks(places: object, layers: Sequence[Layer]) -> Iterator[str]:
    for index, text in enumerate(places if isinstance(places, tuple) else ()):
        if isinstance(text, str) and text and not _may_exist(text):
            reason = _ONLY_DIGEST if text.startswith(BENCHMARK_DIGEST) else "no such file or folder"
            yield f"{place_of(layers, 'ingest', 'decontaminate', index=index)}: {reason}"


def _may_exist(text: str) -> bool:
    """Tell whether a place is there, as far as a look at the file system can tell."""
    is_glob = any(character in text for character in WILDCARDS)
    return is_glob or is_remote(text) or Path(text).expanduser().exists()


def _check_licenses(names: object, layers: Sequence[Layer]) -> Iterator[str]:
    for index, name in enumerate(names if isinstance(names, tuple) else ()):
        if isinstance(name, str) and name and canonical_license(name) is None:
            yield f"{place_of(layers, 'ingest', 'allowed_licenses', index=index)}: no SPDX identifier{_nearest(name)}"


def _nearest(name: str) -> str:
    """Return the nearest identifiers as the end of a message."""
    known = {identifier.lower(): identifier for identifier in license_identifiers()}
    near = get_close_matches(name.lower().replace(" ", "-"), known, n=3)
    return (
        f"; did you mean {' or '.join(known[match] for match in near)}?"
        if near
        else ", as https://spdx.org/licenses has"
    )
