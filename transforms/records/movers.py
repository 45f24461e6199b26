"""Projects whose compression moved most over the versions of a store, from the sums that were recorded of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow.compute as pc

from schemas.errors import IntegrityError
from transforms.records.trend import Trend, find_sums
from transforms.records.versions import Versions

MOVERS = 20
"""How many projects are given."""

COMPARED_VERSIONS = 12
"""At how many versions their compression is read at most, the first and the last included."""


@dataclass(frozen=True, kw_only=True)
class Mover:
    """A project whose compression moved.

    Attributes:
        project: Its name.
        ratios: Bytes per token by version, oldest first; versions without the project are left out.
        tokens: How many more tokens its text in the last version has than at the bytes per token of the first one.
    """

    project: str
    ratios: Mapping[str, float]
    tokens: int


def find_movers(trend: Trend) -> list[Mover]:
    """Return the projects whose change in bytes per token makes the most tokens, from the first version to the last.

    Only versions with recorded projects count. None if there is but one, or if nothing moved.
    """
    compared = pick([facts.version for facts in trend.versions if facts.projects is not None], COMPARED_VERSIONS)
    if len(compared) < 2:
        return []
    versions = Versions(trend.store)
    moved = _moved(*(_read(versions, name) for name in (compared[0], compared[-1])))
    if not moved:
        return []
    ratios = dict(_ratios(versions, compared, list(moved)))
    return [
        Mover(
            project=project,
            ratios={name: found[project] for name, found in ratios.items() if project in found},
            tokens=tokens,
        )
        for project, tokens in moved.items()
    ]


def pick(names: Sequence[str], number: int) -> list[str]:
    """Return at most so many of some names, evenly spread, the first and the last among them.

    Example:
        >>> pick(["a", "b", "c", "d", "e"], 3), pick(["a", "b"], 3)
        (['a', 'c', 'e'], ['a', 'b'])
    """
    if len(names) <= number:
        return list(names)
    return [names[place] for place in np.linspace(0, len(names) - 1, number).round().astype(int)]


def _moved(first: pd.DataFrame, last: pd.DataFrame) -> dict[str, int]:
    """Return the tokens that the change makes, by project, the largest number first."""
    both = first.add_suffix("_first").join(last.add_suffix("_last"), how="inner")
    both = both[(both["num_bytes_first"] > 0) & (both["num_tokens_first"] > 0)]
    expected = both["num_bytes_last"] * both["num_tokens_first"] / both["num_bytes_first"]
    tokens = (both["num_tokens_last"] - expected).round()
    ordered = tokens[tokens != 0].sort_index().sort_values(key=abs, ascending=False, kind="stable")
    return {str(project): int(number) for project, number in ordered.head(MOVERS).items()}


def _ratios(versions: Versions, compared: Sequence[str], projects: list[str]) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield each version with the bytes per token of some projects."""
    for name in compared:
        sums = _read(versions, name, projects)
        sums = sums[sums["num_tokens"] > 0]
        ratios = sums["num_bytes"] / sums["num_tokens"]
        yield name, {str(project): float(ratio) for project, ratio in ratios.items()}


def _read(versions: Versions, name: str, projects: list[str] | None = None) -> pd.DataFrame:
    sums = find_sums(versions, name)
    if sums is None:
        raise IntegrityError(f"{versions.folder.where(f'trend/{name}.parquet')}: missing; remove {name}.json beside it")
    if projects is not None:
        sums = sums.filter(pc.field("project").isin(projects))
    return sums.to_pandas().set_index("project")
