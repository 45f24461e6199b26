"""Input units: what one worker reads at a time, with the verdicts that depend on names and listed sizes only."""

from __future__ import annotations

import hashlib
import heapq
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from itertools import groupby, pairwise
from typing import Any

from schemas.digests import path_fraction
from schemas.options import NEAR_DUPLICATE_OPTIONS, IngestOptions
from schemas.places import is_remote
from schemas.plugins.entry_points import find_reader
from schemas.reasons import Filtered
from schemas.tables import DATA_FORMAT_VERSION, SOURCE_DOC_ID
from schemas.units import Stage, Unit
from transforms.filters.decontamination import Benchmark
from transforms.filters.verdicts import filter_versions
from transforms.filters.withdrawals import Withdrawals
from transforms.sources.document import accepts_extension, display_path, in_sample
from transforms.sources.files import local_target
from transforms.sources.license_files import (
    is_license_file,
    license_files_by_folder,
    nearest_license_files,
    unknown_links,
)
from transforms.sources.license_terms import NAMES_READING
from transforms.sources.listing import GROUPED, Input, Kind, Listing, Root, extension_of, stem_of
from transforms.units.chunking import cut

READER_VERSION = 1
"""To be raised when readers or filters come to another verdict on the same bytes: all is then read again."""

_VERSIONS = {Kind.PARQUET: 3, Kind.JSONL: 3, Kind.TAR: 2, Kind.ZIP: 2, Kind.TEXT: 2}
"""The same for one kind of inputs: since the second version of tables the text's column is found, since the third not
by one row. Since the second of archives no times of GNU tar are in names, nor places beyond a zip file. Since the
second of texts, wide text is not taken for one document. Since the last of each, what needs too much memory to
decompress is not called damaged.
"""

_NOT_READ_BY = (
    *("unit_bytes", "max_input_seconds", "drop_duplicates", "detect_platforms", "decontaminate", "readers"),
    *("withdrawn", *NEAR_DUPLICATE_OPTIONS),
)

UNMARKED = "unmarked"
"""Names, in a unit's payload, the key of its fingerprints without withdrawals."""

_DECIDED_BY_PLAN = ("sample", "limit")


def plan_inputs(
    listing: Listing,
    options: IngestOptions,
    benchmark: Benchmark | None = None,
    withdrawals: Withdrawals | None = None,
) -> list[Unit]:
    """Return the input units of a listing, in source order, within a source by their first path.

    Loose and text files are cut by content-defined boundaries; an archive, Parquet or JSONL file is a unit by itself.
    The key of a unit changes when its files, their sizes or versions, or an option that bears on reading them does. The
    payload holds `root`, `kind`, `project`, `inputs` as [path, bytes, version, reason], and `index`, the unit's
    number; if licences of folders are looked for, the `license_files` that bear on it as [path, bytes, version] too,
    and as `license_links` the paths of links among them.
    With withdrawals the key changes with their list, and the payload names the `UNMARKED` one.
    """
    versions = filter_versions(options, benchmark)
    units = list[Unit]()
    for source, group in groupby(listing.inputs, key=lambda item: item.source):
        root, inputs = listing.roots[source], list(group)
        by_folder, links = _license_files(listing, source, inputs, options)
        parts = [[item] for item in inputs if item.kind not in GROUPED]
        loose = _with_verdicts([item for item in inputs if item.kind == Kind.FILE], options)
        for grouped in (loose, [item for item in inputs if item.kind == Kind.TEXT]):
            ends = cut(((item.path, 0 if item.reason else item.num_bytes) for item in grouped), options.unit_bytes)
            parts.extend(grouped[first:last] for first, last in pairwise([0, *ends]))
        parts.sort(key=lambda part: part[0].path.encode("utf-8", "surrogateescape"))
        for index, part in enumerate(parts, start=len(units)):
            nearest = nearest_license_files(part, by_folder, links) if part[0].kind in GROUPED else {}
            units.append(_unit(root, part, index, options, versions, nearest))
    return units if withdrawals is None else [_marked(unit, withdrawals, options) for unit in units]


def _license_files(
    listing: Listing, source: int, inputs: Sequence[Input], options: IngestOptions
) -> tuple[dict[str, list[Input]], list[str]]:
    """Return the licence files of a source by folder, and the links that count as unknown ones; none if not asked."""
    if options.find_licenses != "folders":
        return {}, []
    by_folder = license_files_by_folder(inputs, options)
    root = listing.roots[source].location
    links = [path for number, path in listing.links if number == source and is_license_file(path, options)]
    targets = ((path, None if is_remote(root) else local_target(root, path)) for path in links)
    return by_folder, unknown_links(targets, {item.path for folder in by_folder.values() for item in folder})


def _marked(unit: Unit, withdrawals: Withdrawals, options: IngestOptions) -> Unit:
    looked_at = SOURCE_DOC_ID if options.alters_content else ""  # earlier versions looked at doc_id alone
    named = NAMES_READING if withdrawals.counts["licenses"] else ""
    key = hashlib.sha256(f"{unit.key}{withdrawals.digest}{looked_at}{named}".encode("ascii")).hexdigest()
    return replace(unit, key=key, payload={**unit.payload, UNMARKED: unit.key})


def _with_verdicts(files: Sequence[Input], options: IngestOptions) -> list[Input]:
    """Return loose files with the reason of the first filter that drops them unread."""
    verdicts = (item.reason or _verdict(item, options) for item in files)
    decided = [item._replace(reason=reason) if reason else item for item, reason in zip(files, verdicts, strict=True)]
    if options.limit is None:
        return decided
    open_places = (place for place, item in enumerate(decided) if item.reason in ("", Filtered.SIZE))
    taken = set(heapq.nsmallest(options.limit, open_places, key=lambda place: path_fraction(decided[place].path)))
    return [
        item._replace(reason=Filtered.LIMIT) if item.reason in ("", Filtered.SIZE) and place not in taken else item
        for place, item in enumerate(decided)
    ]


def _verdict(item: Input, options: IngestOptions) -> str:
    if not accepts_extension(item.path, options):
        return Filtered.EXTENSION
    if options.sample < 1.0 and not in_sample(display_path(item.path), options.sample):
        return Filtered.SAMPLE
    return Filtered.SIZE if item.num_bytes > options.max_document_bytes else ""


def _unit(
    root: Root,
    inputs: list[Input],
    index: int,
    options: IngestOptions,
    versions: dict[str, str],
    license_files: Mapping[str, Sequence[Any]],
) -> Unit:
    first = inputs[0]
    payload: dict[str, Any] = {
        **license_files,
        "root": root.location,
        "kind": str(first.kind),
        "project": root.name if first.kind in GROUPED else stem_of(first.path),
        "inputs": [[item.path, item.num_bytes, item.version, str(item.reason)] for item in inputs],
    }
    more = f" and {len(inputs) - 1} more" if len(inputs) > 1 else ""
    return Unit(
        stage=Stage.INGEST,
        key=_read_key(payload, options, versions),
        num_bytes=sum(item.num_bytes for item in inputs if not item.reason),
        label=display_path(first.path) + more,
        payload={**payload, "index": index},
    )


def _read_key(payload: dict[str, Any], options: IngestOptions, versions: dict[str, str]) -> str:
    """Return the SHA-256 of all that a reader's findings depend on, versions of libraries among it."""
    unread = _NOT_READ_BY if payload["kind"] != Kind.FILE else (*_NOT_READ_BY, *_DECIDED_BY_PLAN)
    reader = _VERSIONS.get(payload["kind"], READER_VERSION)
    value: dict[str, Any] = {
        "format": [DATA_FORMAT_VERSION, reader, version("pyarrow") if payload["kind"] == Kind.PARQUET else ""],
        "options": {name: value for name, value in options.to_json().items() if name not in unread},
        "inputs": payload,
    }
    if payload["kind"] == Kind.OTHER:
        value["reader"] = find_reader(extension_of(payload["inputs"][0][0])).version
    if versions:
        value["filters"] = versions
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode("ascii")).hexdigest()
