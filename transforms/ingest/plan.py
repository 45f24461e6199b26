"""The units of ingest's second pass: keys follow from what was found in the inputs, not from where or when."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from schemas.errors import IntegrityError
from schemas.options import IngestOptions
from schemas.units import Stage, Unit, unit_key
from transforms.ingest.dedup.clusters import FOLDER, near_duplicates_by_unit
from transforms.ingest.dedup.exact import duplicates_by_unit, duplicates_name
from transforms.ingest.findings import FirstPass
from transforms.ingest.fingerprints import fingerprints_name
from transforms.ingest.minhash import finds_near_duplicates, signatures_name
from transforms.sources.listing import Kind
from transforms.storage.folder import CACHE, OutputFolder


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
    config = {**config, "detect_platforms": options.detect_platforms}
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
    kept = {fingerprints_name(unit.key) for unit in found.units}
    kept |= {duplicates_name(found.units, found.digests), found.near_duplicates or ""}
    if finds_near_duplicates(options):
        kept |= {signatures_name(unit.key, options) for unit in found.units}
    folders = (f"{CACHE}/fingerprints", f"{CACHE}/duplicates", f"{CACHE}/signatures", FOLDER)
    stale = [name for folder in folders for name in out.files(folder) if name not in kept]
    for name in stale:
        out.remove(name)
    return len(stale)
