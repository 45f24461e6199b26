"""One cell of a trial: a model trained from one seed with one tokenizer, measured on held-out text along the way.

The documents of the text follow each other, each after the id that begins a document, and are cut into rows wherever a
row ends, the last of some megabytes padded. The rows of these are mixed, because neighbours are much alike. Held-out
documents are cut in the same way: every token of text is predicted once, from the tokens before it in its row. The id
that begins a document is given and never predicted.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from cppmill_core.toy.decoder import IGNORED, Decoder, Shape, learning_rate, make_optimizer, sum_losses, train_step

from pipelines.trial.budget import Speed
from pipelines.trial.entrants import Ids, TrialEntrant, encode
from pipelines.trial.texts import TrialText
from schemas.errors import ConfigError
from schemas.study_options import TrialOptions

POINTS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1)
"""At which shares of the work a model is measured."""

_FEWEST_STEPS = 32
_MEASURED = 3

Rows = list[torch.Tensor]
"""Targets and inputs [rows, length]."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """What is the same for every cell.

    Attributes:
        text: The text to train on.
        options: The model, and how it is trained.
        threads: Threads of torch and of the tokenizers.
        device: `cpu` or `cuda`.
    """

    text: TrialText
    options: TrialOptions
    threads: int
    device: str


def shape_of(entrant: TrialEntrant, options: TrialOptions) -> Shape:
    """Return the size of the model for a tokenizer; it has one id more than the tokenizer, for beginnings."""
    return Shape(vocab_size=entrant.boundary + 1, width=options.width, layers=options.layers, length=options.length)


def count_steps(entrant: TrialEntrant, options: TrialOptions, flops: float) -> int:
    """Return how many steps so many floating-point operations are.

    Raises:
        ConfigError: If they are too few to learn anything.
    """
    steps = int(flops // (shape_of(entrant, options).flops_per_token * options.rows * options.length))
    if steps < _FEWEST_STEPS:
        raise ConfigError(
            f"{flops:.3g} FLOPs are {steps:,} steps of {options.rows * options.length:,} tokens with {entrant.name}, "
            f"and at least {_FEWEST_STEPS} are needed; give a larger --budget or --flops, or a smaller model"
        )
    return steps


def measure_speed(entrant: TrialEntrant, work: Work) -> Speed:
    """Return how fast a cell is on this machine, as busy as it is now."""
    torch.set_num_threads(work.threads)
    model = _Model(entrant, work, seed=0)
    rows = _training_rows(entrant, work, seed=0)
    tokens = work.options.rows * work.options.length
    step = _best_seconds(lambda: model.train(next(rows), rate=0.0), work.device)
    part = entrant.held_out[: tokens + 1]
    measuring = _best_seconds(lambda: model.count_bits(part), work.device) * len(entrant.held_out) / len(part)
    return Speed(tokens * model.shape.flops_per_token / step, len(POINTS) * measuring)


def _best_seconds(call: Callable[[], object], device: str) -> float:
    """Return the seconds of the fastest call but the first."""
    seconds = []
    for _ in range(1 + _MEASURED):
        started = time.perf_counter()
        call()
        if device != "cpu":
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - started)
    return min(seconds[1:])


def train_cell(
    entrant: TrialEntrant, work: Work, *, seed: int, flops: float, progress: Callable[[int, int], None]
) -> list[dict[str, Any]]:
    """Train a model and return what it reached at each point.

    Args:
        entrant: The tokenizer.
        work: What is trained.
        seed: Decides the initial weights and the order of the documents.
        flops: Floating-point operations of training; measuring is not among them.
        progress: Called with the steps done, and with all.

    Returns:
        For each point its steps, the tokens, bytes and FLOPs that were trained on, and bits per byte, held out.

    Raises:
        ConfigError: If the operations are too few.
    """
    torch.set_num_threads(work.threads)
    steps = count_steps(entrant, work.options, flops)
    measured_at = {round(share * steps) for share in POINTS}
    model = _Model(entrant, work, seed)
    tokens, num_bytes, found = 0, 0, []
    for step, rows in zip(range(1, steps + 1), _training_rows(entrant, work, seed), strict=False):
        model.train(rows, learning_rate(step - 1, steps, work.options.learning_rate))
        tokens += rows[0].numel()
        num_bytes += int(entrant.lengths[rows[0][rows[0] != IGNORED].numpy()].sum())
        if step in measured_at:
            bits = model.count_bits(entrant.held_out) / _held_out_bytes(entrant)
            done = {"step": step, "tokens": tokens, "bytes": num_bytes, "flops": tokens * model.shape.flops_per_token}
            found.append({**done, "bits_per_byte": bits})
        progress(step, steps)
    return found


class _Model:
    """A model in training."""

    def __init__(self, entrant: TrialEntrant, work: Work, seed: int) -> None:
        self.shape, self.boundary, self.device = shape_of(entrant, work.options), entrant.boundary, work.device
        self.decoder = Decoder(self.shape, seed).to(work.device)
        self.optimizer = make_optimizer(self.decoder)

    def train(self, rows: Rows, rate: float) -> None:
        train_step(self.decoder, self.optimizer, rows, rate, self.device)

    def count_bits(self, ids: Ids) -> float:
        """Return the bits of all tokens of text."""
        with torch.inference_mode():
            rows = _cut(ids, self.shape.length, self.boundary)
            return sum(float(loss) for loss in sum_losses(self.decoder, rows, self.device)) / math.log(2)


def _training_rows(entrant: TrialEntrant, work: Work, seed: int) -> Iterator[Rows]:
    """Yield the rows of each step: those of some megabytes of documents, mixed, and then of the next ones."""
    generator = torch.Generator().manual_seed(seed)
    rest = _cut(np.zeros(1, np.int64), work.options.length, entrant.boundary)
    for contents in work.text.mixed(seed):
        rows = _cut(encode(entrant.candidate, contents, work.threads), work.options.length, entrant.boundary)
        rows = [torch.cat(pair) for pair in zip(rest, rows, strict=True)]
        order = torch.randperm(len(rows[0]), generator=generator)
        *steps, last = order.split(work.options.rows)
        steps += [last] if len(last) == work.options.rows else []
        yield from ([part[chosen] for part in rows] for chosen in steps)
        rest = [part[order[len(steps) * work.options.rows :]] for part in rows]


def _cut(ids: Ids, length: int, boundary: int) -> Rows:
    """Return rows of targets and inputs: each id but the first is a target once, unless it begins a document."""
    count = -(-(len(ids) - 1) // length)
    targets, inputs = np.full(count * length, IGNORED, np.int64), np.full(count * length, boundary)
    targets[: len(ids) - 1], inputs[: len(ids) - 1] = np.where(ids[1:] == boundary, IGNORED, ids[1:]), ids[:-1]
    return [torch.from_numpy(part.reshape(count, length)) for part in (targets, inputs)]


def _held_out_bytes(entrant: TrialEntrant) -> int:
    return int(entrant.lengths[entrant.held_out].sum())
