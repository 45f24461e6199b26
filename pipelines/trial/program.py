"""The program of `cppmill trial`: it plans the cells, trains those that are missing, and writes figures and a receipt.

Cells are kept (`kept`), each with a key: the SHA-256 of everything that decides it. A trial that was killed continues
with the cells that it lacks. The operations that a budget of time came to are kept too.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from configs.outputs import check_outside, check_unlisted
from pipelines.console.lines import format_seconds
from pipelines.console.progress import Reporter
from pipelines.pages.figures import import_matplotlib
from pipelines.stages.session import locked
from pipelines.trial import results
from pipelines.trial.budget import share_budget
from pipelines.trial.entrants import TrialEntrant, open_entrants
from pipelines.trial.kept import CELL, FLOPS, KEPT, keep, read_kept
from pipelines.trial.texts import TrialText, read_trial_text
from schemas.digests import canonical_json, sha256_json
from schemas.errors import ConfigError
from schemas.study_options import TrialOptions
from transforms.records.code import code_versions
from transforms.records.receipts import RECEIPT
from transforms.records.trials import RESULT, make_trial_receipt, publish_trial_receipt
from transforms.storage.folder import OutputFolder
from transforms.storage.scratch import scratch_folder

if TYPE_CHECKING:
    from pipelines.trial.cells import Work

PLOT = "trial.svg"
CELL_FORMAT = "cppmill-trial-cell-1"

_WORK = "work"
"""Names the operations that a budget of time came to, among what is kept; names of cells end with a seed."""

_CACHE_OF_TORCH = "TORCHINDUCTOR_CACHE_DIR"
"""Where torch makes a folder even if it compiles nothing; without it one in TMPDIR, which stays."""


@dataclass(frozen=True, kw_only=True)
class TrialRequest:
    """What is asked for.

    Attributes:
        tokenizers: Paths or URLs, each as `NAME=PATH` if it is to have a name.
        text: Folders of runs, and sources: the text to train on.
        held_out: The same: the text to measure on.
        out: The folder of the trial.
        options: The model, and how it is trained.
        budget_seconds: How long the trial may take on this machine; None if the work is given.
        flops: Floating-point operations of training per cell; None to take the budget.
        pattern: The pattern of files of ranks.
        threads: Threads of torch and of the tokenizers.
        device: `cpu`, `cuda`, or None for a GPU if there is one.
    """

    tokenizers: Sequence[str]
    text: Sequence[str]
    held_out: Sequence[str]
    out: Path
    options: TrialOptions
    budget_seconds: float | None = None
    flops: float | None = None
    pattern: str | None = None
    threads: int = 1
    device: str | None = None


@dataclass(frozen=True)
class Trial:
    """A trial that is prepared.

    Attributes:
        out: Its folder.
        entrants: The tokenizers.
        held_out: The held-out text.
        work: The rest of what every cell needs.
    """

    out: OutputFolder
    entrants: Sequence[TrialEntrant]
    held_out: TrialText
    work: Work

    @property
    def basis(self) -> dict[str, Any]:
        """What decides the figures, besides tokenizers and work: JSON values."""
        return {
            "text": self.work.text.to_json(),
            "held_out": self.held_out.to_json(),
            "options": self.work.options.to_json(),
            "code": {**code_versions(), "torch": _torch_version(), "python": platform.python_version()},
            "device": _device_name(self.work.device),
            "threads": self.work.threads,
        }


def run_trial(request: TrialRequest, reporter: Reporter) -> list[dict[str, Any]]:
    """Carry out a trial, or what is missing of it, and write its files.

    Returns:
        A row per tokenizer, in the order in which they were given.

    Raises:
        ConfigError: If torch or matplotlib is missing, a tokenizer or text cannot be used, the budget is too small, or
            the folder holds other files.
        LockedError: If something else is writing there.
    """
    trial = _prepare(request)
    with locked(trial.out):
        _check_folder(trial.out)  # others may have written since
        flops = _work_per_cell(trial, request, reporter)
        cells = _train_cells(trial, flops, reporter)
        rows = results.summarize([_describe(entrant, trial) for entrant in trial.entrants], cells)
        _publish(trial, flops, rows, cells)
    return rows


def _prepare(request: TrialRequest) -> Trial:
    if (request.budget_seconds is None) == (request.flops is None):
        raise ConfigError("give one of --budget and --flops: how long the trial may take, or the work of each training")
    device = _check_packages(request.device)
    for place in (*request.text, *request.held_out):
        check_outside(request.out, place, option="--out")
    check_unlisted(request.out, option="--out")
    out = OutputFolder(request.out)
    _check_folder(out)
    from pipelines.trial.cells import Work

    options = request.options
    text = read_trial_text(request.text, sample=options.sample, argument="--on")
    held_out = read_trial_text(
        request.held_out,
        sample=1.0,
        argument="--held-out",
        without=text.contents.keys(),
        most_bytes=options.held_out_bytes,
    )
    entrants = open_entrants(request.tokenizers, held_out, pattern=request.pattern, threads=request.threads)
    work = Work(text=text, options=options, threads=request.threads, device=device)
    return Trial(out, entrants, held_out, work)


def _check_packages(device: str | None) -> str:
    """Return the device, once what a trial needs is there.

    Raises:
        ConfigError: Naming the extra, or the device that there is not.
    """
    os.environ.setdefault(_CACHE_OF_TORCH, str(scratch_folder()))
    try:
        import torch

        import_matplotlib()
    except ImportError as error:
        raise ConfigError(f"a trial needs {error.name}: pip install 'cppmill[trial]'") from error
    if device == "cuda" and not torch.cuda.is_available():
        raise ConfigError("--device cuda: torch finds no GPU; leave it out, or install a torch that supports this one")
    return device or ("cuda" if torch.cuda.is_available() else "cpu")


def _check_folder(out: OutputFolder) -> None:
    """Check that a trial may write into a folder.

    Raises:
        ConfigError: Naming a file that no trial wrote.
    """
    ours = (RESULT, PLOT, RECEIPT) if any(out.files(KEPT)) else ()
    foreign = next((name for name in out.files() if name not in ours), None)
    if foreign is not None:
        raise ConfigError(f"--out {out.root}: it holds {foreign}, which no trial wrote; name another folder")


def _work_per_cell(trial: Trial, request: TrialRequest, reporter: Reporter) -> float:
    """Return the FLOPs of each cell: those given, those that an earlier start came to, or those measured now."""
    from pipelines.trial.cells import measure_speed

    flops = request.flops
    if flops is None:
        asked = sha256_json(
            {**trial.basis, "tokenizers": [one.digest for one in trial.entrants], "seconds": request.budget_seconds}
        )
        flops = read_kept(trial.out, _WORK, asked, FLOPS)
        if not flops:
            speeds = [measure_speed(entrant, trial.work) for entrant in trial.entrants]
            flops = float(f"{share_budget(request.budget_seconds or 0, speeds, seeds=trial.work.options.seeds):.3e}")
            _check_steps(trial, flops)  # before it is kept, or the same command would never measure again
            keep(trial.out, _WORK, asked, flops)
            rates = sorted(speed.flops_per_second / 1e9 for speed in speeds)
            reporter.note(f"{rates[0]:,.1f} to {rates[-1]:,.1f} GFLOP/s here; --flops {flops:.3e} is this work again")
    _check_steps(trial, flops)
    return float(flops)


def _check_steps(trial: Trial, flops: float) -> None:
    from pipelines.trial.cells import count_steps

    for entrant in trial.entrants:
        count_steps(entrant, trial.work.options, flops)


def _train_cells(trial: Trial, flops: float, reporter: Reporter) -> list[dict[str, Any]]:
    from pipelines.trial.cells import train_cell

    wanted = [(entrant, seed) for seed in range(trial.work.options.seeds) for entrant in trial.entrants]
    cells = []
    for number, (entrant, seed) in enumerate(wanted, start=1):
        name = f"{entrant.name}-{seed}"
        basis = {**trial.basis, "tokenizer": entrant.digest, "seed": seed, "flops": flops}
        key = sha256_json({"format": CELL_FORMAT, **basis, "options": {**basis["options"], "seeds": None}})
        points = read_kept(trial.out, name, key, CELL)
        if not points:
            started = time.monotonic()
            points = train_cell(entrant, trial.work, seed=seed, flops=flops, progress=lambda done, steps: None)
            keep(trial.out, name, key, points)
            took = format_seconds(time.monotonic() - started)
            bits = points[-1]["bits_per_byte"]
            reporter.note(f"{number} of {len(wanted)}: {entrant.name}, seed {seed}: {bits:.4f} bits per byte, {took}")
        cells.append({"tokenizer": entrant.name, "seed": seed, "points": points})
    return cells


def _describe(entrant: TrialEntrant, trial: Trial) -> dict[str, Any]:
    from pipelines.trial.cells import shape_of

    shape = shape_of(entrant, trial.work.options)
    return {
        **entrant.to_json(),
        "bytes_per_token": trial.held_out.num_bytes / entrant.held_out_tokens,
        "parameters": shape.body_parameters + shape.embedding_parameters,
        "flops_per_token": shape.flops_per_token,
    }


def _publish(trial: Trial, flops: float, rows: Sequence[dict[str, Any]], cells: Sequence[dict[str, Any]]) -> None:
    out = trial.out
    figures = {"flops": flops, "tokenizers": list(rows), "cells": list(cells)}
    contents = {RESULT: canonical_json(figures), PLOT: results.plot(cells)}
    out.remove(RECEIPT)
    files = [out.publish_bytes(name, data) for name, data in contents.items()]
    facts = {**trial.basis, "tokenizers": [one.to_json() for one in trial.entrants], "flops": flops}
    publish_trial_receipt(out, make_trial_receipt(facts, files))


def trial_lines(rows: Sequence[dict[str, Any]], *, as_json: bool) -> list[str]:
    """Return what the command prints: a table, or a JSON object per tokenizer."""
    return [json.dumps({"record": "tokenizer", **row}) for row in rows] if as_json else results.table(rows)


def _torch_version() -> str:
    import torch

    return str(torch.__version__)


def _device_name(device: str) -> str:
    import torch

    return str(torch.cuda.get_device_name()) if device == "cuda" else device
