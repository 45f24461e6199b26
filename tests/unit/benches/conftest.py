"""Candidates of benchmarks run in this process: for small texts, starting a process each takes most of the time."""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator
from typing import Any

import pytest

import benches.lib.harness
import benches.speed.encoding
import benches.speed.training
from benches.lib.harness import BenchmarkError, Candidate, Sample, peak_memory_bytes


def run_here(bench: str, candidate: Candidate[Any]) -> Sample:
    """Run a candidate as `run_in_process` does, sent through a pickle, but in this process."""
    sent: Candidate[Any] = pickle.loads(pickle.dumps(candidate))
    try:
        state = sent.prepare()
        start = time.perf_counter()
        result = sent.run(state)
        return Sample(time.perf_counter() - start, peak_memory_bytes(), result.with_digest())
    except Exception as error:
        raise BenchmarkError(f"{bench}: {candidate.name} failed with exit code 0: {error}") from error


@pytest.fixture(scope="module")
def in_process() -> Iterator[None]:
    """Let the module's comparisons run in this process; the tests of the harness run them in others."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (benches.lib.harness, benches.speed.encoding, benches.speed.training):
            patch.setattr(module, "run_in_process", run_here)
        patch.setattr(benches.speed.encoding, "usable_threads", lambda: 1)
        yield
