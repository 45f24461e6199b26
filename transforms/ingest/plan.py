"""What the first pass found, read from `.cache` once, and the units of the second pass that follow from it.

Their keys depend on what was found in the inputs, not on places or times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from schemas.errors import IntegrityError
from schemas.options import IngestOptions
from schemas.units import Stage, Unit, unit_key
from transforms.filters.redaction import REDACTION
from transforms.ingest.dedup.clusters import has_near_duplicates, near_duplicates_by_unit, near_duplicates_name
from transforms.ingest.dedup.exact import duplicates_by_unit, duplicates_name, has_duplicates
from transforms.ingest.fingerprints import IS_READ, find_digest, fingerprints_digest, fingerprints_name
from transforms.ingest.input_units import UNMARKED
from transforms.ingest.minhash import finds_near_duplicates, signatures_name
from transforms.sources.listing import Kind
from transforms.storage.folder import FIRST_PASS, OutputFolder


@dataclass(frozen=True, kw_only=True)
class FirstPass:
    """What the first pass has found so far.

    Attributes:
        units: The input units, in source order.
        digests: For each unit the SHA-256 over its fingerprints; empty if the unit is still to be read.
        duplicates: The file of the exact duplicates, relative to OUT; empty if all copies are kept, None if it is not
            known yet which.
        near_duplicates: The file of the near-duplicates, relative to OUT; empty if none are dropped, None if
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


def plan_ingest(
    found: FirstPass, out: OutputFolder, options: IngestOptions, *, config: dict[str, Any], core_version: str
) -> list[Unit]:
    """Return the units of the second pass, one for each input unit, in the same order.

    A key is made from the fingerprints, the unit's share of the duplicates and near-duplicates, and what shapes the
    output: a file that is touched or moved as a whole with its source, bytes unchanged, redoes nothing. Units that
    would have the same key are numbered.

    Args:
        found: What the first pass found; the files that it names are in `.cache`.
        out: The output folder.
        options: The options of ingest.
        config: What else decides the documents' bytes: the digest of the platform rules, say.
        core_version: Version of the native core.

    Raises:
        IntegrityError: If the first pass is not finished.
    """
    if not found.is_finished:
        raise IntegrityError(f"{out.root}: the first pass of ingest is not finished; run it before units are planned")
    shares = _shares(out, found.duplicates, duplicates_by_unit)
    near_shares = _shares(out, found.near_duplicates, near_duplicates_by_unit)
    redact = {"redact": [*sorted(options.redact), options.redact_with, REDACTION]} if options.redact else {}
    found_licenses = {"find_licenses": True} if options.find_licenses else {}  # the fingerprints have what was found
    config = {**config, "detect_platforms": options.detect_platforms, **redact, **found_licenses}
    seen = Counter[str]()
    planned = []
    for unit, digest in zip(found.units, found.digests, strict=True):
        share, near_share = (by_unit.get(unit.payload["index"], "") for by_unit in (shares, near_shares))
        inputs: dict[str, Any] = {"fingerprints": digest, "duplicates": share}
        if unit.payload["kind"] != Kind.FILE:
            inputs["shard_bytes"] = options.unit_bytes
        if near_share:
            inputs["near_duplicates"] = near_share
        key = unit_key(Stage.INGEST, core_version=core_version, config=config, inputs=inputs)
        seen[key] += 1
        if seen[key] > 1:
            inputs["occurrence"] = seen[key]
            key = unit_key(Stage.INGEST, core_version=core_version, config=config, inputs=inputs)
        payload = {
            **unit.payload,
            "fingerprints": fingerprints_name(unit.key),
            "duplicates": found.duplicates if share else "",
            "near_duplicates": found.near_duplicates if near_share else "",
        }
        planned.append(replace(unit, key=key, payload=payload))
    return planned


def _shares(out: OutputFolder, name: str | None, by_unit: Callable[[Path], dict[int, str]]) -> dict[int, str]:
    if not name:
        return {}
    with out.open_local(name) as path:
        return by_unit(path)


def prune_cache(found: FirstPass, out: OutputFolder, options: IngestOptions) -> int:
    """Remove what the first pass made of input units that are no more, and return how many files that were.

    Args:
        found: What the first pass found in the sources as they are now.
        out: The output folder; only for the holder of its lock.
        options: The options of ingest.
    """
    keys = [key for unit in found.units for key in (unit.key, unit.payload.get(UNMARKED)) if key]
    kept = {fingerprints_name(key) for key in keys}
    kept |= {duplicates_name(found.units, found.digests), found.near_duplicates or ""}
    if finds_near_duplicates(options):
        kept |= {signatures_name(key, options) for key in keys}
    stale = [name for folder in FIRST_PASS for name in out.files(folder) if name not in kept]
    for name in stale:
        out.remove(name)
    return len(stale)
