"""The kinds of counts: their names in files and between workers, and where the merged counts are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath

PARTS = "counts/parts"
"""The folder of the counts of single shards, relative to OUT."""


class Family(StrEnum):
    """What is counted; the value begins the names of files."""

    WORDS = "words"
    LINES = "units"
    """Lines, from which superwords are learned."""
    TERMS = "terms"
    MORPHEMES = "morphemes"
    NAMESPACES = "namespaces"
    STATISTICS = "statistics"

    @property
    def is_partitioned(self) -> bool:
        """Whether the counts are merged a partition at a time, row group by row group."""
        return self in (Family.WORDS, Family.LINES)


MERGED_FOLDERS = tuple(f"counts/{family}" for family in Family if family.is_partitioned)
"""The folders of the merged counts of words and lines, relative to OUT."""


@dataclass(frozen=True)
class Kind:
    """Counts that are merged into one file.

    Attributes:
        family: What is counted.
        partition: Which partition of words or lines; None for the other families.
    """

    family: Family
    partition: int | None = None

    @classmethod
    def parse(cls, name: str) -> Kind:
        """Return the kind with a name."""
        family, _, partition = name.partition("-")
        return cls(Family(family), int(partition) if partition else None)

    @classmethod
    def of_merged(cls, path: str) -> Kind:
        """Return the kind whose words or lines are in a merged file.

        Example:
            >>> Kind.of_merged("counts/units/part-012.parquet").name
            'units-012'
        """
        found = PurePosixPath(path)
        return cls(Family(found.parent.name), int(found.stem.removeprefix("part-")))

    @property
    def name(self) -> str:
        """The name that is sent between workers: `terms`, `words-003`."""
        return str(self.family) if self.partition is None else f"{self.family}-{self.partition:03d}"

    @property
    def merged_path(self) -> str:
        """The path of the merged counts, relative to OUT."""
        if self.partition is not None:
            return f"counts/{self.family}/part-{self.partition:03d}.parquet"
        return f"counts/{self.family}.{'json' if self.family is Family.STATISTICS else 'parquet'}"


def count_kinds(*, word_partitions: int, lines: bool) -> Iterator[Kind]:
    """Yield every kind that a scan counts."""
    for family in Family:
        if family.is_partitioned:
            partitions = range(word_partitions if lines or family is not Family.LINES else 0)
            yield from (Kind(family, number) for number in partitions)
        else:
            yield Kind(family)


def part_path(family: Family, key: str) -> str:
    """Return the path of the counts of one shard, relative to OUT."""
    return f"{PARTS}/{family}-{key}.parquet"


def part_family(path: str) -> Family:
    """Return what is counted in a file that `part_path` names."""
    return Family(PurePosixPath(path).name.split("-")[0])
