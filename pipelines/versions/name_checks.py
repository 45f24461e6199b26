"""Whether the files of a run have the names that a run gives them, with the keys of the units that wrote them.

Readers go by names: they pass over files that begin with `_` or `.` or do not end in `.parquet`, and make columns of
folders such as `project=x`. So a shard with another name could be left out, or read with columns that it has not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from schemas.units import RUN_STAGES, is_unit_receipt
from transforms.records.checks.unit_checks import RunUnits
from transforms.scan.kinds import Family

_KEY = "(?P<key>[0-9a-f]{64})"
_PARTITIONED = "|".join(family for family in Family if family.is_partitioned)
_OTHERS = "|".join(family for family in Family if not family.is_partitioned and family is not Family.STATISTICS)

_NAMES = {
    "documents/": re.compile(rf"documents/(?:(rejects)|part)-{_KEY}(?(1)|-\d{{5,}})\.parquet"),
    "tokens/": re.compile(rf"tokens/part-{_KEY}\.parquet"),
    "counts/parts/": re.compile(rf"counts/parts/({'|'.join(Family)})-{_KEY}\.parquet"),
    "counts/": re.compile(rf"counts/(({_PARTITIONED})/part-\d{{3,}}\.parquet|({_OTHERS})\.parquet|statistics\.json)"),
    "proofs/": re.compile("(?!)"),
    "units/": re.compile("(?!)"),
}
"""The names below each folder that are no unit receipts, by folder; the first that fits counts."""


def check_names(run: RunUnits) -> Iterator[str]:
    """Yield the files of stages that have other names than a run gives them."""
    keys = {line["path"]: line["unit"] for line in run.receipt["dataset"]["shards"]}
    keys |= {output.path: unit.key for units in run.by_stage.values() for unit in units for output in unit.outputs}
    for name in sorted(run.files):
        pattern = next((pattern for folder, pattern in _NAMES.items() if name.startswith(folder)), None)
        if pattern is None or any(is_unit_receipt(name, stage) for stage in RUN_STAGES):
            continue
        found = pattern.fullmatch(name)
        key = found.groupdict().get("key") if found else None
        if found is None or (key is not None and key != keys.get(name, key)):
            yield f"{run.out.where(name)}: a run gives none of its files this name, and readers go by names"
