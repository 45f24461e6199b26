"""The entry of a receipt for the benchmark that documents were compared with: its digest, not its path."""

from __future__ import annotations

from schemas.errors import ConfigError
from schemas.options import BENCHMARK_DIGEST, RunOptions
from transforms.filters.decontamination import Benchmark, read_benchmark
from transforms.storage.folder import CACHE, OutputFolder

_RECORD = f"{CACHE}/stages/benchmark"


def remember_benchmark(benchmark: Benchmark | None, out: OutputFolder) -> None:
    """Write down which benchmark the documents in OUT were compared with."""
    if benchmark is None:
        out.remove(_RECORD)
    else:
        out.publish_bytes(_RECORD, benchmark.digest.encode("ascii"))


def recorded_options(options: RunOptions, out: OutputFolder) -> RunOptions:
    """Return options as a receipt has them: with the benchmark's digest in place of its paths.

    Raises:
        ConfigError: If the benchmark is not the one that the documents in OUT were compared with.
    """
    benchmark = read_benchmark(options.ingest)
    if benchmark is None:
        return options
    try:
        made = out.read_bytes(_RECORD).decode("ascii", "replace")
    except FileNotFoundError:  # a folder that was copied without its cache
        made = benchmark.digest
    if made != benchmark.digest:
        raise ConfigError(
            f"ingest.decontaminate: the benchmark has changed since the documents in {out.root} were compared with "
            "it; run `cppmill run` again"
        )
    ingest = options.ingest.model_copy(update={"decontaminate": (f"{BENCHMARK_DIGEST}{made}",)})
    return options.model_copy(update={"ingest": ingest})
