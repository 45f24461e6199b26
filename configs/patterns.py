"""The pre-token patterns that a run names: of words, of the units of superwords, and whether they go together.

Which patterns there are and what they cut is known to the native core alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import cppmill_core

from configs.layers import Layer, Tables
from configs.problems import did_you_mean

_KEYS = ("pattern", "unit_pattern")


def check_patterns(tables: Tables, layers: Sequence[Layer]) -> Iterator[str]:
    """Yield a line for every pattern that cannot be used, and one if superwords have no units to be learned in.

    Args:
        tables: The merged tables; values of a wrong type are passed over, they were told about.
        layers: The layers that were merged, for the places to name.
    """
    scan = tables.get("scan", {})
    named = {key: scan[key] for key in _KEYS if isinstance(scan.get(key), str) and scan[key]}
    unknown = [key for key in named if named[key] not in cppmill_core.PATTERNS]
    for key in unknown:
        known = ", ".join(cppmill_core.PATTERNS)
        nearest = did_you_mean(named[key], cppmill_core.PATTERNS)
        yield f"{_place(layers, 'scan', key)}: unknown pattern{nearest} (known: {known})"
    if "pattern" in named and not unknown:
        yield from _check_together(named, layers)
    if isinstance(tables.get("build", {}).get("superwords_after"), float) and scan.get("unit_pattern") is None:
        yield (
            f"{_place(layers, 'build', 'superwords_after')}: superwords are learned in units, and none are counted; "
            'set unit_pattern = "cpp-lines-1" in [scan]'
        )


def _check_together(named: dict[str, str], layers: Sequence[Layer]) -> Iterator[str]:
    """Yield what the scanner says of the patterns."""
    for keys in (("pattern",), _KEYS):
        if keys[-1] not in named:
            return
        try:
            cppmill_core.Scanner(json.dumps({key: named[key] for key in keys}))
        except cppmill_core.InvalidInputError as error:
            yield f"{_place(layers, 'scan', keys[-1])}: {error}"
            return


def _place(layers: Sequence[Layer], table: str, key: str) -> str:
    layer = next(layer for layer in reversed(layers) if key in layer.table(table))
    return layer.place(table, key)
