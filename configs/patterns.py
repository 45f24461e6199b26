"""The pre-token patterns of a run: of words, of the lines of superwords, and whether they fit together.

Only the native core knows which patterns there are and what they cut.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import cppmill_core

from configs.layers import Layer, Tables, place_of
from configs.problems import did_you_mean

_KEYS = ("pattern", "unit_pattern")


def check_patterns(tables: Tables, layers: Sequence[Layer]) -> Iterator[str]:
    """Yield a line for every pattern that cannot be used, and one if superwords have no lines to be learned in.

    Args:
        tables: The merged tables; values of a wrong type are passed over, as they were reported.
        layers: The layers that were merged, for the places to name.
    """
    scan = tables.get("scan", {})
    named = {key: scan[key] for key in _KEYS if isinstance(scan.get(key), str) and scan[key]}
    unknown = [key for key in named if named[key] not in cppmill_core.PATTERNS]
    for key in unknown:
        known = ", ".join(cppmill_core.PATTERNS)
        nearest = did_you_mean(named[key], cppmill_core.PATTERNS)
        yield f"{place_of(layers, 'scan', key)}: unknown pattern{nearest} (known: {known})"
    if "pattern" in named and not unknown:
        yield from _check_together(named, layers)
    if isinstance(tables.get("build", {}).get("superwords_after"), float) and scan.get("unit_pattern") is None:
        yield (
            f"{place_of(layers, 'build', 'superwords_after')}: superwords are learned in units, and none are counted; "
            'set unit_pattern = "cpp-lines-1" in [scan]'
        )


def _check_together(named: dict[str, str], layers: Sequence[Layer]) -> Iterator[str]:
    """Yield what the scanner says about the patterns."""
    for keys in (("pattern",), _KEYS):
        if keys[-1] not in named:
            return
        try:
            cppmill_core.Scanner(json.dumps({key: named[key] for key in keys}))
        except cppmill_core.InvalidInputError as error:
            yield f"{place_of(layers, 'scan', keys[-1])}: {error}"
            return
