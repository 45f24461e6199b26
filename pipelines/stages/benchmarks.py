"""The entries of a receipt for files that filters read, a benchmark and a list: their digests, not their paths."""

from __future__ import annotations

from contextlib import suppress

from schemas.digests import parse_json
from schemas.errors import ConfigError
from schemas.options import FILE_DIGEST, RunOptions
from transforms.filters.decontamination import Benchmark, read_benchmark
from transforms.filters.withdrawals import WITHDRAWN, read_withdrawals
from transforms.records.receipts import RECEIPT
from transforms.storage.folder import CACHE, OutputFolder

_RECORD = f"{CACHE}/stages/benchmark"


def remember_benchmark(benchmark: Benchmark | None, out: OutputFolder) -> None:
    """Write down which benchmark the documents in OUT were compared with."""
    if benchmark is None:
        out.remove(_RECORD)
    else:
        out.publish_bytes(_RECORD, benchmark.digest.encode("ascii"))


def recorded_options(options: RunOptions, out: OutputFolder) -> RunOptions:
    """Return options as a receipt has them: with the digests of a benchmark and a list in place of their paths.

    Raises:
        ConfigError: If they are not those that the documents in OUT were compared with.
    """
    options = _with_list(options, out)
    benchmark = read_benchmark(options.ingest)
    if benchmark is None:
        return options
    made = _recorded(out) or benchmark.digest
    if made != benchmark.digest:
        raise ConfigError(
            f"ingest.decontaminate: the benchmark has changed since the documents in {out.root} were compared with "
            "it; run `cppmill run` again"
        )
    ingest = options.ingest.model_copy(update={"decontaminate": (f"{FILE_DIGEST}{made}",)})
    return options.model_copy(update={"ingest": ingest})


def _recorded(out: OutputFolder) -> str:
    """Return the digest of the benchmark that the documents in OUT were compared with; empty if nothing says it."""
    with suppress(FileNotFoundError):  # a folder that was copied without its cache
        return out.read_bytes(_RECORD).decode("ascii", "replace")
    with suppress(FileNotFoundError, ValueError, KeyError, TypeError):
        given = parse_json(out.read_bytes(RECEIPT))["configs"]["ingest"]["decontaminate"]
        return str(given[0]).removeprefix(FILE_DIGEST) if given else ""
    return ""


def _with_list(options: RunOptions, out: OutputFolder) -> RunOptions:
    """Return options with the digest of the list of withdrawn documents."""
    withdrawals = read_withdrawals(options.ingest.withdrawn)
    if withdrawals is None:
        return options
    if withdrawals.digest != out.digest(WITHDRAWN):
        raise ConfigError(
            f"ingest.withdrawn: the list has changed since the documents in {out.root} were compared with it; run "
            "`cppmill run` again"
        )
    ingest = options.ingest.model_copy(update={"withdrawn": withdrawals.option})
    return options.model_copy(update={"ingest": ingest})
