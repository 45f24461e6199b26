"""What the first pass found in the input units: read from `.cache` once, and handed from step to step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from schemas.options import IngestOptions
from schemas.units import Unit
from transforms.ingest.dedup.clusters import has_near_duplicates, near_duplicates_name
from transforms.ingest.dedup.exact import duplicates_name, has_duplicates
from transforms.ingest.fingerprints import IS_READ, find_digest, fingerprints_digest, fingerprints_name
from transforms.ingest.minhash import finds_near_duplicates
from transforms.storage.folder import OutputFolder


@dataclass(frozen=True, kw_only=True)
class FirstPass:
    """What the first pass found, as far as it is done.

    Attributes:
        units: The input units, in source order.
        digests: For each unit the SHA-256 over its fingerprints; empty if the unit is still to be read.
        duplicates: The file of the exact duplicates, relative to OUT; empty if all copies are kept, None if it is not
            known yet which.
        near_duplicates: The file of the near-duplicates, relative to OUT; empty if none are to be dropped, None if
            they are not known yet.
    """

    units: tuple[Unit, ...]
    digests: tuple[str, ...]
    duplicates: str | None = None
    near_duplicates: str | None = None

    @property
    def unread(self) -> list[Unit]:
        """The units that are still to be read."""
        return [unit for unit, digest in zip(self.units, self.digests, strict=True) if not digest]

    @property
    def is_finished(self) -> bool:
        """Whether everything is known that the second pass needs."""
        return all(self.digests) and self.duplicates is not None and self.near_duplicates is not None

    @property
    def marked_units(self) -> list[Unit]:
        """The units, marked if they are read: a worker then need not open their files to find out."""
        return [
            replace(unit, payload={**unit.payload, IS_READ: True}) if digest else unit
            for unit, digest in zip(self.units, self.digests, strict=True)
        ]


def find_first_pass(
    units: Sequence[Unit], out: OutputFolder, options: IngestOptions, *, rehash: bool = False
) -> FirstPass:
    """Return what earlier runs found in these units; opens the files of each unit once.

    Args:
        units: The input units.
        out: The output folder.
        options: The options of ingest.
        rehash: Take every unit for unread.
    """
    digests = [""] * len(units) if rehash else out.each(lambda unit: find_digest(unit, out, options), units)
    return look_up_choices(FirstPass(units=tuple(units), digests=tuple(digests)), out, options)


def add_digests(found: FirstPass, out: OutputFolder) -> FirstPass:
    """Return what is known once the unread units are read; opens the files of these alone.

    Raises:
        FileNotFoundError: If one of them has not been read.
    """
    read = iter(out.each(lambda unit: fingerprints_digest(out, fingerprints_name(unit.key)), found.unread))
    return replace(found, digests=tuple(digest or next(read) for digest in found.digests))


def look_up_choices(found: FirstPass, out: OutputFolder, options: IngestOptions) -> FirstPass:
    """Return what is known with the duplicates and near-duplicates of units that are read, if they are chosen."""
    if not all(found.digests):
        return found
    duplicates, near = "", ""
    if options.drop_duplicates:
        duplicates = duplicates_name(found.units, found.digests)
        if not has_duplicates(duplicates, out):
            return found
    if finds_near_duplicates(options):
        near = near_duplicates_name(duplicates, options)
    chosen = not near or has_near_duplicates(near, out)
    return replace(found, duplicates=duplicates, near_duplicates=near if chosen else None)
