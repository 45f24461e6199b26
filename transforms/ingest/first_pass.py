"""The first pass of ingest as a flow: fingerprints of what is new, and candidates for duplicates of everything."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from schemas.options import IngestOptions
from schemas.units import Unit
from transforms.filters.decontamination import load_benchmark
from transforms.filters.verdicts import ContentFilter, make_content_filter
from transforms.filters.withdrawals import Withdrawals, load_withdrawals
from transforms.ingest.dedup.candidates import duplicate_candidates
from transforms.ingest.fingerprints import fingerprint_unit
from transforms.ingest.withdrawn_rows import fingerprint_marked
from transforms.storage.folder import OutputFolder
from transforms.units.flow import FlatMap, Flow


@dataclass(frozen=True, kw_only=True)
class FirstPassSettings:
    """What the units of the first pass are run with.

    Attributes:
        out: The output folder; fingerprints go to `.cache/fingerprints`.
        options: The options of ingest.
        partitions: How many partitions duplicates are chosen in.
        benchmark: Where in OUT the index of `decontaminate` is; empty for none.
        withdrawn: Where in OUT the list of `withdrawn` is; empty for none.
        rehash: Read everything again, whatever is remembered.
        threads: The most threads that a unit digests documents with.
    """

    out: OutputFolder
    options: IngestOptions
    partitions: int
    benchmark: str = ""
    withdrawn: str = ""
    rehash: bool = False
    threads: int = 1


def fingerprint_inputs(settings: FirstPassSettings) -> Flow:
    """Return the flow from input units to what may be duplicates, as (partition, packed candidates)."""
    make = partial(_make_fingerprint, settings)
    return (FlatMap(name="Fingerprint", function=make, gives=tuple[int, bytes], makes=True),)


def _make_fingerprint(settings: FirstPassSettings) -> Callable[[Unit], Iterator[tuple[int, bytes]]]:
    """Return what makes the fingerprints of units; the filters are made once."""
    out, options = settings.out, settings.options
    benchmark = load_benchmark(settings.benchmark, out, options) if settings.benchmark else None
    withdrawals = load_withdrawals(settings.withdrawn, out) if settings.withdrawn else None
    filters = make_content_filter(options, benchmark)
    return partial(_fingerprint, settings=settings, filters=filters, withdrawals=withdrawals)


def _fingerprint(
    unit: Unit, settings: FirstPassSettings, filters: ContentFilter, withdrawals: Withdrawals | None
) -> Iterator[tuple[int, bytes]]:
    """Yield (partition, packed candidates) of a unit, once its fingerprints are made."""
    out, options = settings.out, settings.options
    make = partial(
        fingerprint_unit, out=out, options=options, filters=filters, rehash=settings.rehash, threads=settings.threads
    )
    name = (
        make(unit)
        if withdrawals is None
        else fingerprint_marked(unit, out, options, withdrawals, make, rehash=settings.rehash)
    )
    if options.drop_duplicates:
        with out.open_local(name) as path:
            yield from duplicate_candidates(path, unit.payload["index"], settings.partitions)
