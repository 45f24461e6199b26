"""What the tests of toy models and trials do in a process that has torch; each function returns plain values."""

from __future__ import annotations

import contextlib
import io
import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from pipelines.stages.session import locked
from pipelines.trial.entrants import open_entrants
from pipelines.trial.program import TrialRequest, run_trial
from pipelines.trial.texts import TrialText
from schemas.errors import ConfigError, LockedError
from schemas.study_options import TrialOptions
from transforms.storage.folder import OutputFolder
from transforms.storage.protocol import Lock

ROWS = 3
SIZE = {"vocab_size": 50, "width": 16, "layers": 2, "length": 12}


class Notes:
    """A reporter that keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def note(self, message: str) -> None:
        self.told.append(message)


def carry_out(**asked: Any) -> tuple[list[dict[str, Any]], list[str]]:
    """Carry out a trial: its rows, and what it reported."""
    notes = Notes()
    return run_trial(TrialRequest(**asked), notes), notes.told  # type: ignore[arg-type]


def refused(**asked: Any) -> str:
    """What is said to a trial that cannot be."""
    try:
        carry_out(**asked)
    except (ConfigError, LockedError) as error:
        return str(error)
    return ""


def refused_late(written: str, **asked: Any) -> str:
    """What is said to a trial in whose folder another command writes a file before the trial has the lock."""
    from unittest import mock

    from pipelines.trial import program

    def locked_late(out: OutputFolder) -> AbstractContextManager[Lock]:
        out.publish_bytes(written, b"{}")
        return locked(out)

    with mock.patch.object(program, "locked", locked_late):
        return refused(**asked)


def at_speeds(speeds: Sequence[float], **asked: Any) -> list[list[str]]:
    """What is said to the same trial again and again, with a machine that does so many FLOPs per second each time."""
    from unittest import mock

    from pipelines.trial import cells
    from pipelines.trial.budget import Speed

    said = []
    for speed in speeds:
        with mock.patch.object(cells, "measure_speed", lambda *_, speed=speed: Speed(speed, 0.0)):
            try:
                said.append(carry_out(**asked)[1])
            except ConfigError as error:
                said.append([str(error)])
    return said


def make_model() -> Any:
    from cppmill_core.toy.decoder import Decoder, Shape

    return Decoder(Shape(**SIZE))


def random_rows(seed: int) -> list[Any]:
    import torch

    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(SIZE["vocab_size"], (ROWS, SIZE["length"] + 1), generator=generator)
    return [ids[:, 1:].clone(), ids[:, :-1].clone()]


def count_flops() -> tuple[int, int]:
    """Operations of a training step's products, attention left out: as torch counts them, and as the shape does."""
    from cppmill_core.toy.decoder import sum_losses
    from torch.utils.flop_counter import FlopCounterMode

    model = make_model()
    rows = random_rows(0)
    with FlopCounterMode(display=False) as counter:
        for loss in sum_losses(model, rows, "cpu"):
            loss.backward()
    counts = {str(operation): number for operation, number in counter.get_flop_counts()["Global"].items()}
    products = sum(number for name, number in counts.items() if "attention" not in name)
    shape = model.shape
    attention = 6 * shape.layers * shape.width * (shape.length + 1)
    return products, rows[0].numel() * (shape.flops_per_token - attention)


def compare_losses() -> tuple[float, float]:
    """The losses of some rows, some targets ignored: from the model, and one token at a time from a softmax."""
    import torch
    from cppmill_core.toy.decoder import IGNORED, make_optimizer, sum_losses, train_step

    model = make_model()
    train_step(model, make_optimizer(model), random_rows(1), 0.05, "cpu")
    targets, inputs = random_rows(0)
    targets[1, 4:] = IGNORED
    expected = 0.0
    with torch.no_grad():
        found = sum(float(loss) for loss in sum_losses(model, [targets, inputs], "cpu"))
        for row, ids in zip(targets.tolist(), inputs.tolist(), strict=True):
            for at, target in enumerate(row):
                if target != IGNORED:
                    # It gets only what comes before.
                    logits = model.logits(model(torch.tensor([ids[: at + 1]])))[0, -1].double()
                    expected -= float(logits.log_softmax(0)[target])
    return found, expected


def train_in_parts() -> tuple[float, float]:
    """How far a step moves the weights, and how far it would move them apart if made in one part or in several."""
    import torch
    from cppmill_core.toy.decoder import Decoder, make_optimizer, train_step

    weights = []
    for parts in (0, 1, ROWS):
        model = make_model()
        model.__class__ = type("Parts", (Decoder,), {"chunk_rows": parts})
        if parts:
            train_step(model, make_optimizer(model), random_rows(0), 0.01, "cpu")
        weights.append(torch.cat([one.detach().flatten() for one in model.parameters()]))
    before, first, second = weights
    return float((first - before).norm()), float((first - second).norm())


def learn(text: bytes, tokenizer: Path) -> list[dict[str, Any]]:
    """What a model reaches that is measured on the text that it is trained on."""
    from pipelines.trial.cells import Work, shape_of, train_cell

    document = TrialText(contents={"0": text}, digest="", left_out=0)
    [entrant] = open_entrants([str(tokenizer)], document, pattern=None, threads=1)
    options = TrialOptions(width=16, layers=1, length=16, learning_rate=0.02)
    work = Work(text=document, options=options, threads=1, device="cpu")
    flops = shape_of(entrant, options).flops_per_token * 64 * 64
    return train_cell(entrant, work, seed=0, flops=flops, progress=lambda done, steps: None)


def train_model(*arguments: Any) -> None:
    """Train a toy model to the end."""
    from cppmill_core.toy.train import main

    main([str(argument) for argument in arguments])


def refuse_training(*arguments: Any) -> str:
    """What is said to a training that cannot be."""
    from cppmill_core import CoreError

    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            train_model(*arguments)
    except (CoreError, SystemExit) as error:
        return f"{said.getvalue()}{error}"
    return ""


def has_gpu() -> bool:
    """Whether torch finds a GPU."""
    import torch

    return bool(torch.cuda.is_available())


def read_checkpoint(file: Path) -> dict[str, Any]:
    """What a checkpoint says of itself, the sum of the squares of its weights, and how many platforms were trained."""
    import torch

    found = torch.load(file, weights_only=True)
    weights = math.fsum(float((one.double() ** 2).sum()) for one in found["model"].values())
    used = int((found["model"]["platforms.weight"] != 0).any(dim=1).sum())
    return {**{name: found[name] for name in ("step", "digests", "cppmill")}, "weights": weights, "platforms": used}


def cut(ids: Sequence[Sequence[int]], platforms: Sequence[Sequence[int]], length: int, bag: int) -> list[Any]:
    """The rows that documents are cut into."""
    import torch
    from cppmill_core.batches import Ragged
    from cppmill_core.torch_data import Batch
    from cppmill_core.toy.train import cut_rows

    def ragged(rows: Sequence[Sequence[int]]) -> Ragged:
        offsets = torch.tensor([0, *map(len, rows)]).cumsum(0)
        return Ragged(torch.tensor([number for row in rows for number in row]), offsets)

    batch = Batch(token_ids=ragged(ids), platform_ids=ragged(platforms))
    return [tensor.tolist() for tensor in cut_rows(batch, length, bag)]
