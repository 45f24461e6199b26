"""Pairs of near-duplicates, by locality-sensitive hashing of MinHash signatures (Indyk and Motwani, 1998).

A signature is cut into bands; documents that agree in all of a band are in one bucket and are compared. In a bucket
each document is compared with its neighbours in the order of their sketches and with the first ones of the bucket: all
pairs of a small bucket, and a few pairs per document of a large one. The result depends on the contents alone, not on
units, partitions or their order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from schemas.options import IngestOptions
from schemas.tables import NEAR_PAIRS
from schemas.units import Unit
from transforms.ingest.dedup.candidates import duplicate_partitions
from transforms.ingest.dedup.components import Nodes, connected_components
from transforms.ingest.dedup.exact import unit_duplicates
from transforms.ingest.minhash import (
    Signatures,
    Sketches,
    agreeing,
    least_agreeing,
    read_signatures,
    signatures_name,
    sketch,
)
from transforms.ingest.shingles import Hashes, mix
from transforms.storage.folder import CACHE, OutputFolder
from transforms.units.batches import bounded_batches
from transforms.units.flow import FlatMap, Flow, GroupByKey
from transforms.units.parts import write_parts

PAIRS = f"{CACHE}/near_duplicates/pairs"
"""Where the pairs are kept until clusters are made of them."""

_MAX_BANDS = 16
_MISSED = 0.05
"""A pair of exactly the similarity that is asked for has no common bucket with at most this probability."""

_NEIGHBOURS = 16
_FIRST = 16
_PARTITIONS_A_PART = 32
_CANDIDATE_BYTES = 128
"""What `duplicate_partitions` reckons with for each document."""

_PRIME = np.uint64(0x100000001B3)


@dataclass(frozen=True)
class Bands:
    """How signatures are cut into bands.

    Attributes:
        number: How many there are.
        width: Permutations of each.
    """

    number: int
    width: int


def choose_bands(similarity: float, permutations: int) -> Bands:
    """Return the widest bands, so that the fewest other documents are met, which miss few of the pairs to be found.

    Args:
        similarity: The least similarity of pairs to be found.
        permutations: Bytes of a signature.

    Example:
        >>> choose_bands(0.8, 256)
        Bands(number=13, width=7)
    """
    widest = Bands(_MAX_BANDS, 1)
    for width in range(1, permutations + 1):
        number = math.ceil(math.log(_MISSED) / math.log1p(-(similarity**width))) if similarity < 1 else 1
        if number > min(_MAX_BANDS, permutations // width):
            break
        widest = Bands(number, width)
    return widest


def candidate_type(permutations: int) -> np.dtype[np.void]:
    """Return the type of what is shuffled for each document and band: its bucket, its place and its sketch."""
    return np.dtype([("bucket", "<u8"), ("unit", "<u4"), ("row", "<u4"), ("sketch", "<u8", (permutations // 32,))])


def near_partitions(units: Sequence[Unit], options: IngestOptions) -> int:
    """Return how many partitions to compare documents in, so that each is small; the result does not depend on it."""
    bands = choose_bands(options.near_duplicate_similarity or 1.0, options.near_duplicate_permutations)
    weight = bands.number * candidate_type(options.near_duplicate_permutations).itemsize / _CANDIDATE_BYTES
    return duplicate_partitions(units, weight=max(1, round(weight)))


def near_candidates(
    index: int, rows: npt.NDArray[np.uint32], signatures: Signatures, bands: Bands
) -> npt.NDArray[np.void]:
    """Return what is shuffled for documents: an element a band, in the order of bands.

    Args:
        index: The unit's number in source order.
        rows: The documents' rows in the unit's fingerprints.
        signatures: Their signatures.
        bands: How they are cut.
    """
    found = np.empty((bands.number, len(rows)), dtype=candidate_type(signatures.shape[1]))
    found["unit"], found["row"], found["sketch"] = index, rows, sketch(signatures)
    for band in range(bands.number):
        found["bucket"][band] = _buckets(band, signatures[:, band * bands.width : (band + 1) * bands.width])
    return found.ravel()


def _buckets(band: int, part: Signatures) -> Hashes:
    """Return the hash of each document's bytes in a band: FNV-1a, mixed."""
    hashes = np.full(len(part), mix(np.array([band + 1], dtype=np.uint64))[0])
    for column in part.T:
        hashes = (hashes ^ column) * _PRIME
    return mix(hashes)


def compare(candidates: npt.NDArray[np.void], similarity: float) -> pa.Table:
    """Return which documents are near-duplicates, as a table of NEAR_PAIRS that connects all that belong together.

    Args:
        candidates: All elements of some buckets, in any order.
        similarity: The least estimated similarity.
    """
    pairs = near_pairs(candidates, similarity)
    nodes, places = np.unique(np.concatenate(pairs), return_inverse=True)
    labels = connected_components(len(nodes), *np.split(places, 2))
    moved = np.flatnonzero(labels != np.arange(len(nodes)))
    ends = [half for ids in (nodes[moved], nodes[labels[moved]]) for half in (ids >> np.uint64(32), ids & 0xFFFFFFFF)]
    return pa.Table.from_arrays([pa.array(end.astype(np.uint32)) for end in ends], schema=NEAR_PAIRS)


def near_pairs(candidates: npt.NDArray[np.void], similarity: float) -> tuple[Hashes, Hashes]:
    """Return the pairs that were compared and are similar, two documents (unit and row as one number) for each."""
    _, place, sizes = np.unique(candidates["bucket"], return_inverse=True, return_counts=True)
    candidates = candidates[sizes[place] > 1]
    sketches: Sketches = np.ascontiguousarray(candidates["sketch"])
    order = np.lexsort([*sketches.T, candidates["bucket"]])
    candidates, sketches = candidates[order], sketches[order]
    least = math.ceil(least_agreeing(similarity, 32 * sketches.shape[1]) - 1e-9)
    documents = (candidates["unit"].astype(np.uint64) << np.uint64(32)) | candidates["row"]
    first, second = [documents[:0]], [documents[:0]]
    for left, right in _compared(candidates["bucket"]):
        same = agreeing(sketches[left], sketches[right]) >= least
        first.append(documents[left[same]])
        second.append(documents[right[same]])
    return np.concatenate(first), np.concatenate(second)


def _compared(buckets: Hashes) -> Iterator[tuple[Nodes, Nodes]]:
    """Yield pairs of places in one bucket: neighbours at every distance, then the first ones with all others."""
    places = np.arange(len(buckets))
    begins = np.flatnonzero(np.append(True, buckets[1:] != buckets[:-1])[: len(buckets)])
    begin = np.repeat(begins, np.diff(np.append(begins, len(buckets))))
    for distance in range(1, _NEIGHBOURS + 1):
        right = np.flatnonzero(places - begin >= distance)
        if not len(right):
            return
        yield right - distance, right
    for number in range(_FIRST):
        right = np.flatnonzero(places - begin > number + _NEIGHBOURS)
        yield begin[right] + number, right


@dataclass(frozen=True, kw_only=True)
class NearSettings:
    """What near-duplicates are looked for with.

    Attributes:
        out: The output folder.
        options: The options of ingest, with a similarity.
        duplicates: The file of the exact duplicates, relative to OUT.
        partitions: How many partitions documents are compared in.
    """

    out: OutputFolder
    options: IngestOptions
    duplicates: str
    partitions: int


def find_near_pairs(settings: NearSettings) -> Flow:
    """Return the flow from input units to pairs of near-duplicates among their documents, which it writes to `PAIRS`.

    The units' fingerprints and signatures and the exact duplicates must be there, and `PAIRS` must be cleared. Yields
    (part, number of pairs).
    """
    found = FlatMap(name="Candidates", function=partial(_candidates, settings=settings), gives=tuple[int, bytes])
    compared = partial(_compare_partition, options=settings.options)
    return (
        found,
        GroupByKey(name="GroupByPartition"),
        FlatMap(name="Compare", function=compared, gives=tuple[int, pa.RecordBatch]),
        *write_parts(settings.out, PAIRS, NEAR_PAIRS),
    )


def _candidates(unit: Unit, settings: NearSettings) -> Iterator[tuple[int, bytes]]:
    """Yield the candidates of a unit, a copy of each content, as (partition, packed candidates)."""
    options, index = settings.options, unit.payload["index"]
    bands = choose_bands(options.near_duplicate_similarity or 1.0, options.near_duplicate_permutations)
    with settings.out.open_ranges(settings.duplicates) as file:
        copies = unit_duplicates(file, index)
    with settings.out.open_local(signatures_name(unit.key, options)) as path:
        for rows, signatures in read_signatures(path, options.near_duplicate_permutations):
            kept = ~np.isin(rows, copies)
            yield from _packed(near_candidates(index, rows[kept], signatures[kept], bands), settings.partitions)


def _packed(candidates: npt.NDArray[np.void], partitions: int) -> Iterator[tuple[int, bytes]]:
    partition = candidates["bucket"] % np.uint64(partitions)
    order = np.argsort(partition, kind="stable")
    found, starts = np.unique(partition[order], return_index=True)
    for number, part in zip(found.tolist(), np.split(candidates[order], starts[1:]), strict=False):
        yield number, part.tobytes()


def _compare_partition(
    grouped: tuple[int, Iterable[bytes]], options: IngestOptions
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the pairs of a partition, as (number of a part, batch of NEAR_PAIRS)."""
    partition, packed = grouped
    candidates = np.frombuffer(b"".join(packed), dtype=candidate_type(options.near_duplicate_permutations))
    pairs = compare(candidates, options.near_duplicate_similarity or 1.0)
    yield from ((partition // _PARTITIONS_A_PART, batch) for batch in bounded_batches(pairs))
