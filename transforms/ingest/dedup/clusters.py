"""Near-duplicates across the whole corpus: pairs become clusters, and a cluster keeps one document.

Documents that are connected by pairs form a cluster, together with their exact copies. The cluster keeps the document
with the smallest (project, path), bytewise; among equal names it keeps the first in source and member order. Exact
copies of the kept document are its duplicates; all others are near-duplicates.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from schemas.digests import sha256_json
from schemas.options import IngestOptions
from schemas.tables import DUPLICATES, NEAR_CLUSTERS, NEAR_DUPLICATES, NEAR_KEPT, NEAR_MEMBERS, NEAR_PAIRS
from schemas.units import Unit
from transforms.ingest.dedup.components import connected_components
from transforms.ingest.dedup.lsh import PAIRS
from transforms.ingest.fingerprints import fingerprints_name, read_columns
from transforms.ingest.minhash import (
    Sketches,
    agreeing,
    estimate,
    read_signatures,
    settings,
    signatures_name,
    sketch,
)
from transforms.storage.folder import CACHE, OutputFolder
from transforms.units.batches import bounded_batches
from transforms.units.flow import FlatMap, Flow, GroupByKey
from transforms.units.parts import (
    clear_parts,
    is_whole,
    merge_parts,
    read_parts,
    read_rows,
    row_bytes,
    rows_by_unit,
    sort_rows,
    write_parts,
    write_rows,
)
from transforms.units.sorted_runs import read_run

FOLDER = f"{CACHE}/near_duplicates"
_PARTS = f"{FOLDER}/parts"
_CLUSTERS = f"{FOLDER}/clusters.parquet"

_CLUSTER_PARTITIONS = 64
_UNITS_A_PART = 8
"""One worker chooses the rows of this many units, and writes them to one part."""

_FINGERPRINTS_READ = ["project", "path", "doc_id"]


def near_duplicates_name(duplicates: str, options: IngestOptions) -> str:
    """Return the path, relative to OUT, of the near-duplicates: it depends on all that was found in the input units."""
    value = {"duplicates": duplicates, "similarity": options.near_duplicate_similarity, **settings(options)}
    return f"{FOLDER}/{sha256_json(value)}.parquet"


def has_near_duplicates(name: str, out: OutputFolder) -> bool:
    """Return whether a file of near-duplicates is there and whole; else they are chosen, or chosen again."""
    return is_whole(out, name, NEAR_DUPLICATES)


def clear_near_duplicates(out: OutputFolder) -> None:
    """Remove what an unfinished choice left; to be called before `FindNearPairs`."""
    for folder in (PAIRS, _PARTS):
        clear_parts(out, folder)
    out.remove(_CLUSTERS)


def make_clusters(out: OutputFolder, duplicates: str) -> int:
    """Make clusters of the pairs that `FindNearPairs` found, and return how many documents are in them."""
    pairs = read_parts(out, PAIRS, NEAR_PAIRS)
    table = _cluster(pairs, read_run(partial(out.open_ranges, duplicates), DUPLICATES))
    out.publish(_CLUSTERS, lambda path: write_rows(path, table))
    return int(table.num_rows)


def _cluster(pairs: pa.Table, duplicates: Iterable[pa.RecordBatch]) -> pa.Table:
    """Return the clusters of pairs as a table of NEAR_CLUSTERS; copies are with what they are copies of."""
    first, second = _places(pairs, "unit", "row"), _places(pairs, "near_unit", "near_row")
    nodes, ends = np.unique(np.concatenate([first, second]), return_inverse=True)
    labels = connected_components(len(nodes), ends[: len(first)], ends[len(first) :])
    places, clusters = [nodes], [labels]
    for batch in duplicates:
        kept = _places(batch, "kept_unit", "kept_row")
        is_of = np.isin(kept, nodes)
        places.append(_places(batch, "unit", "row")[is_of])
        clusters.append(labels[np.searchsorted(nodes, kept[is_of])])
    place = np.concatenate(places)
    columns = (place >> np.uint64(32), place & np.uint64(0xFFFFFFFF), np.concatenate(clusters))
    arrays = [pa.array(column.astype(np.uint32)) for column in columns]
    return sort_rows(pa.Table.from_arrays(arrays, schema=NEAR_CLUSTERS))


def _places(table: pa.Table | pa.RecordBatch, unit: str, row: str) -> npt.NDArray[np.uint64]:
    """Return units and rows as one number each."""
    units, rows = (table.column(name).to_numpy().astype(np.uint64) for name in (unit, row))
    return np.asarray((units << np.uint64(32)) | rows)


def merge_near_duplicates(name: str, out: OutputFolder) -> int:
    """Merge the parts that `ChooseNearDuplicates` wrote into a file of OUT, and return how many documents it drops."""
    rows = merge_parts(out, _PARTS, NEAR_DUPLICATES, name)
    clear_near_duplicates(out)
    return rows


def near_duplicates_by_unit(path: Path) -> dict[int, str]:
    """Return for each input unit that has near-duplicates the SHA-256 of what is said of them."""
    return {unit: _digest(share) for unit, share in rows_by_unit(path)}


def _digest(share: pa.Table) -> str:
    digest = hashlib.sha256(row_bytes(share))
    digest.update(share.column("similarity").to_numpy().astype("<f4").tobytes())
    digest.update(json.dumps(share.column("kept").to_pylist()).encode("ascii"))
    return digest.hexdigest()


def unit_near_duplicates(file: Path | pa.NativeFile, index: int) -> dict[int, str]:
    """Return the rows of one input unit's fingerprints that are near-duplicates, each with a few words for people."""
    columns = (read_rows(file, index).column(name).to_pylist() for name in ("row", "kept", "similarity"))
    return {row: f"{similarity:.2f} like {kept}" for row, kept, similarity in zip(*columns, strict=True)}


def _sketches(path: Path, rows: npt.NDArray[np.uint32], permutations: int) -> Sketches:
    """Return the sketches of rows, in their order, all of which have one."""
    found = [
        (batch_rows[wanted], sketch(signatures[wanted]))
        for batch_rows, signatures in read_signatures(path, permutations)
        if (wanted := np.isin(batch_rows, rows)).any()
    ]
    have, sketches = (np.concatenate(column) for column in zip(*found, strict=True))
    return np.asarray(sketches[np.searchsorted(have, rows)])


def _by_number(table: pa.Table, numbers: npt.NDArray[np.uint32]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the rows of a table by the number of each, as (number, batch)."""
    found, place = np.unique(numbers, return_inverse=True)
    for index, number in enumerate(found.tolist()):
        yield from ((number, batch) for batch in bounded_batches(table.take(np.flatnonzero(place == index))))


@dataclass(frozen=True)
class ClusterSettings:
    """What clusters are read and dropped with: the output folder, and the options of ingest."""

    out: OutputFolder
    options: IngestOptions


def choose_near_duplicates(settings: ClusterSettings) -> Flow:
    """Return the flow from input units to what clusters of near-duplicates do not keep, which it writes.

    Call `make_clusters` before the pipeline and `merge_near_duplicates` after it. Yields (part, number of documents).
    """
    batches = tuple[int, pa.RecordBatch]
    return (
        FlatMap(name="Members", function=partial(_unit_members, settings=settings), gives=batches),
        GroupByKey(name="GroupByCluster"),
        FlatMap(name="ChooseKept", function=_choose_kept, gives=batches),
        GroupByKey(name="GroupByUnits"),
        FlatMap(name="Drop", function=partial(_drop, settings=settings), gives=batches),
        *write_parts(settings.out, _PARTS, NEAR_DUPLICATES),
    )


def _unit_members(unit: Unit, settings: ClusterSettings) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield what a unit has of clusters, the smallest name of each, as (partition, batch of NEAR_MEMBERS)."""
    with settings.out.open_ranges(_CLUSTERS) as file:
        places = read_rows(file, unit.payload["index"])
    if places.num_rows:
        members = _members(unit, places, settings)
        yield from _by_number(members, members.column("cluster").to_numpy() % _CLUSTER_PARTITIONS)


def _members(unit: Unit, places: pa.Table, settings: ClusterSettings) -> pa.Table:
    """Return a table of NEAR_MEMBERS, one row per cluster."""
    out, options = settings.out, settings.options
    with out.open_local(fingerprints_name(unit.key)) as path:
        named = read_columns(path, _FINGERPRINTS_READ).take(places.column("row"))
    for name in _FINGERPRINTS_READ:
        places = places.append_column(name, named.column(name))
    members = _smallest(places).sort_by("row")
    with out.open_local(signatures_name(unit.key, options)) as path:
        sketches = _sketches(path, members.column("row").to_numpy(), options.near_duplicate_permutations)
    members = members.append_column("sketch", pa.array([sketch.tobytes() for sketch in sketches], pa.binary()))
    members = members.append_column("key", pa.array([unit.key] * len(sketches), pa.string()))
    return members.select(NEAR_MEMBERS.names).cast(NEAR_MEMBERS)


def _smallest(members: pa.Table) -> pa.Table:
    """Return of each cluster, in their order, the row with the smallest name, among equal ones the first."""
    names = ("cluster", "project", "path", "unit", "row")
    ordered = members.sort_by([(name, "ascending") for name in names])
    return ordered.take(np.unique(ordered.column("cluster").to_numpy(), return_index=True)[1])


def _choose_kept(grouped: tuple[int, Iterable[pa.RecordBatch]]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the kept documents of a partition's clusters, as (part of units, batch of NEAR_KEPT)."""
    members = pa.Table.from_batches(grouped[1], NEAR_MEMBERS)
    kept = _smallest(members)
    chosen = kept.take(np.searchsorted(kept.column("cluster").to_numpy(), members.column("cluster").to_numpy()))
    columns = [*members.select(["cluster", "unit", "key"]).columns, *chosen.select(["doc_id", "sketch"]).columns]
    table = pa.Table.from_arrays(columns, schema=NEAR_KEPT)
    yield from _by_number(table, table.column("unit").to_numpy() // _UNITS_A_PART)


def _drop(
    part: tuple[int, Iterable[pa.RecordBatch]], settings: ClusterSettings
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield what is dropped of several units, as (number of the part, batch of NEAR_DUPLICATES)."""
    number, batches = part
    kept = pa.Table.from_batches(batches, NEAR_KEPT).sort_by("cluster")
    units: npt.NDArray[np.uint32] = kept.column("unit").to_numpy()
    for index in np.unique(units).tolist():
        dropped = _dropped(index, kept.take(np.flatnonzero(units == index)), settings)
        yield from ((number, batch) for batch in bounded_batches(dropped))


def _dropped(index: int, kept: pa.Table, settings: ClusterSettings) -> pa.Table:
    """Return what is dropped of a unit, as a table of NEAR_DUPLICATES."""
    key = str(kept.column("key")[0])
    with settings.out.open_ranges(_CLUSTERS) as file:
        places = read_rows(file, index)
    with settings.out.open_local(fingerprints_name(key)) as path:
        own = read_columns(path, ["doc_id"]).take(places.column("row")).column("doc_id")
    kept = kept.take(np.searchsorted(kept.column("cluster").to_numpy(), places.column("cluster").to_numpy()))
    others = np.flatnonzero(pc.not_equal(own, kept.column("doc_id")).to_numpy())
    places, kept = places.take(others), kept.take(others)
    similarity = pa.array(_similarity(key, places, kept, settings), pa.float32())
    dropped = places.select(["unit", "row"]).append_column("kept", kept.column("doc_id"))
    return dropped.append_column("similarity", similarity).cast(NEAR_DUPLICATES)


def _similarity(key: str, places: pa.Table, kept: pa.Table, settings: ClusterSettings) -> npt.NDArray[np.float64]:
    """Return how similar each document of a unit is to the one that is kept of its cluster."""
    if not places.num_rows:
        return np.empty(0)
    permutations = settings.options.near_duplicate_permutations
    with settings.out.open_local(signatures_name(key, settings.options)) as path:
        own = _sketches(path, places.column("row").to_numpy(), permutations)
    theirs = b"".join(value.as_buffer() for value in kept.column("sketch"))
    return estimate(agreeing(own, np.frombuffer(theirs, dtype="<u8").reshape(own.shape)), permutations)
