"""What Beam costs: its time beside the same flow without it, and what it shuffles.

Whatever imports Beam is imported here, so that the benchmark's command starts fast.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from apache_beam import coders

from benches.lib.harness import Candidate, Comparison, Figure, Row, RunResult, compare
from benches.lib.stages import Ready, hash_receipts, prepare_stage
from configs.runs import RunConfig
from pipelines.console.console import Output, log_to_console
from pipelines.console.progress import MEGABYTE, Reporters
from pipelines.stages.scan import plan_scan, scan_settings
from pipelines.stages.session import Session, open_session
from pipelines.stages.tokenize import plan_tokenize, tokenize_settings
from schemas.coders import register_coders
from schemas.units import Stage, Unit, receipt_folder
from transforms.ingest.dedup.candidates import MIN_PARTITIONS, duplicate_candidates
from transforms.scan.merge import GroupKey, PartRows, refer_counts
from transforms.storage.folder import CACHE

_IN_PROCESS = ("--direct_running_mode=in_memory",)


def measure_beam(config: RunConfig, *, rounds: int) -> Iterator[Comparison]:
    """Measure scan and tokenize by Beam's runner in this process, and without Beam, in MB of source per second.

    The processors' time is given too: where other programs run it says more.

    Args:
        config: A run that is done.
        rounds: Runs of each.
    """
    with open_session(config, Reporters()) as session:
        num_bytes = sum(unit.num_bytes for unit in _plan(session, Stage.SCAN))
    for stage in (Stage.SCAN, Stage.TOKENIZE):
        candidates = [
            Candidate(
                name=name,
                prepare=partial(prepare_stage, config, stage),
                run=partial(_run_timed, run, stage, {"MB": num_bytes / MEGABYTE}),
                threads=config.threads,
            )
            for name, run in (("Beam", partial(_run_stage, beam_options=_IN_PROCESS)), ("without Beam", _run_stage))
        ]
        yield compare(f"Beam, {stage}", candidates, input_bytes=num_bytes, rounds=rounds)


def _run_timed(run: Callable[[Stage, Ready], None], stage: Stage, amounts: dict[str, float], ready: Ready) -> RunResult:
    start = time.process_time()
    with log_to_console(Output(quiet=True)):
        run(stage, ready)
    parts = {"of processors": time.process_time() - start}
    return RunResult(amounts, partial(_hash_made, stage, ready.config.out_folder), parts=parts)


def _run_stage(_: Stage, ready: Ready, beam_options: tuple[str, ...] = ()) -> None:
    ready.program(ready.config.model_copy(update={"beam_options": beam_options}), Reporters())


def _plan(session: Session, stage: Stage) -> list[Unit]:
    """Return the units of scan or tokenize."""
    documents = session.current(Stage.INGEST)
    if stage is Stage.SCAN:
        return plan_scan(documents, scan_settings(session))
    return plan_tokenize(documents, tokenize_settings(session))


def _hash_made(stage: Stage, out: Path) -> str:
    """Return the SHA-256 of the receipts of tokenize, or of the merged words."""
    if stage is Stage.TOKENIZE:
        return hash_receipts(out / receipt_folder(stage))
    words = sorted((out / "counts" / "words").glob("*.parquet"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in words)).hexdigest()


def measure_shuffle(config: RunConfig) -> Comparison:
    """Add up the encoded size of what a finished run shuffled, in bytes per MB of source, by kind."""
    register_coders()
    folder = config.out_folder / CACHE
    with open_session(config, Reporters()) as session:
        units = _plan(session, Stage.SCAN)
        sizes = {
            "units of scan and tokenize": _units_bytes(session),
            "candidates for duplicates": _candidates_bytes(folder / "fingerprints"),
            "references to counts": _references_bytes(session),
        }
    num_bytes = sum(unit.num_bytes for unit in units)
    rows = [
        Row("shuffled", name, size * MEGABYTE / num_bytes, "bytes/MB", num_bytes, 1, 0) for name, size in sizes.items()
    ]
    return Comparison("shuffled", tuple(Figure(row, row.value, row.value) for row in rows))


def _units_bytes(session: Session) -> int:
    coder = coders.registry.get_coder(Unit)
    return sum(len(coder.encode(unit)) for stage in (Stage.SCAN, Stage.TOKENIZE) for unit in _plan(session, stage))


def _candidates_bytes(fingerprints: Path) -> int:
    found = (duplicate_candidates(path, 0, MIN_PARTITIONS) for path in fingerprints.iterdir())
    return sum(len(packed) for candidates in found for _, packed in candidates)


def _references_bytes(session: Session) -> int:
    coder, settings = coders.registry.get_coder(tuple[GroupKey, PartRows]), scan_settings(session)
    receipts = (session.require(unit) for unit in _plan(session, Stage.SCAN))
    found = (((kind, 0), part) for receipt in receipts for kind, part in refer_counts(receipt, settings))
    return sum(len(coder.encode(reference)) for reference in found)
