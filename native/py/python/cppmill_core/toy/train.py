"""Trains a small model on a run's token shards, with platform embeddings: a program to run and to copy.

    python -m cppmill_core.toy.train OUT --held-out OTHER_OUT --model MODEL

A step is a batch of the loader: some whole documents. They are cut into rows, and each row gets the sum of the
embeddings of its document's platforms. The rows of a step are mixed, and every few of them update the weights once.
So after each step the model was trained on exactly the documents that the loader has given. MODEL has

| file | |
|---|---|
| `config.json` | what is trained, on what and how |
| `losses.jsonl` | a first line that says of what; then a line per update: its step, from 0, mean loss and targets |
| `checkpoint.pt` | the last checkpoint: weights, optimizer, and the position of the loader |
| `result.json` | bits per byte of the held-out documents |

Each names the digests of tokenizer and dataset. After a crash or `kill -9`, the same command resumes from the last
checkpoint. The losses are those of an uninterrupted training, bit for bit on a CPU with the same number of threads.
`cppmill trace` names the documents of each step, and of all steps up to a checkpoint.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import math
import os
import pickle
import re
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from operator import itemgetter
from pathlib import Path
from typing import IO, Any

try:
    import torch
    from torch import Tensor, nn
except ModuleNotFoundError as missing:
    if __name__ != "__main__":
        raise
    sys.exit(
        f"error: training needs {missing.name}: pip install torch; or, in a checkout, make engines NAME=torch, "
        "then what docs/tutorials/train-a-model.md sets"
    )

from cppmill_core import (
    CoreError,
    CorruptDataError,
    InvalidInputError,
    assert_vocab,
    load_tokenizer,
    platform_vocab,
    stamp,
)
from cppmill_core.byte_tables import ByteTables
from cppmill_core.loader import Loader
from cppmill_core.torch_data import Batch, TokenDataset, pad_bags
from cppmill_core.toy.decoder import IGNORED, Decoder, Shape, learning_rate, make_optimizer, sum_losses, train_step

CONFIG, LOSSES, CHECKPOINT, RESULT = "config.json", "losses.jsonl", "checkpoint.pt", "result.json"

_COLUMNS = ("token_ids", "platform_ids", "num_bytes")
_UNREADABLE = (RuntimeError, pickle.UnpicklingError, EOFError, ValueError, LookupError, TypeError)
"""What torch raises on a file that it has not saved, or that is cut."""


@dataclass(frozen=True, kw_only=True)
class Training:
    """What decides the weights: the configuration of a model, which its checkpoints must have too.

    Attributes:
        tokenizer: Digest of the tokenizer of both runs.
        dataset: Digest of the dataset that is trained on.
        held_out: Digest of the dataset that is measured.
        shape: The size of the decoder.
        platforms: Number of platform ids.
        bag: The most platform ids of a document.
        steps: Steps: batches of the loader.
        documents: Documents per step, whose rows are mixed.
        rows: Rows per update of the weights.
        rate: The highest learning rate.
        seed: Decides the initial weights and the order of the documents.
        threads: Threads of torch; with another number, last digits of losses differ.
    """

    tokenizer: str
    dataset: str
    held_out: str
    shape: Shape
    platforms: int
    bag: int
    steps: int
    documents: int
    rows: int
    rate: float
    seed: int
    threads: int

    @property
    def digests(self) -> dict[str, str]:
        """What every file names."""
        return {"tokenizer": self.tokenizer, "dataset": self.dataset, "held_out": self.held_out}


class PlatformDecoder(Decoder):
    """A decoder that adds the embeddings of a document's platforms to each of its tokens.

    They begin at 0, so the model begins without them.

    Args:
        training: Its size, the number of platform ids, and the seed of the initial weights.
    """

    def __init__(self, training: Training) -> None:
        """Make the model with its initial weights, on the CPU."""
        super().__init__(training.shape, training.seed)
        self.platforms = nn.EmbeddingBag(training.platforms, training.shape.width, mode="sum", padding_idx=0)
        nn.init.zeros_(self.platforms.weight)

    def forward(self, ids: Tensor, added: Tensor | None = None) -> Tensor:
        """Return what the logits are made from; `added` are the platform ids of each row [rows, bag], padded with 0."""
        return super().forward(ids, None if added is None else self.platforms(added)[:, None])


def cut_rows(batch: Batch, length: int, bag: int) -> tuple[Tensor, Tensor, Tensor]:
    """Cut each document of a batch into rows.

    Args:
        batch: With the columns `token_ids` and `platform_ids`.
        length: Tokens per row; the last row of a document is padded.
        bag: The most platform ids of a document.

    Returns:
        Targets and inputs, int64 [rows, length], and the platform ids of each row, [rows, bag]. Each token of a
        document but its first is a target once, after the tokens before it in its row and the last of the row before.
    """
    rows: list[tuple[Tensor, Tensor, Tensor]] = []
    for ids, platforms in zip(batch["token_ids"].rows(), pad_bags(batch["platform_ids"], bag), strict=True):
        count = -(-(len(ids) - 1) // length)
        targets, inputs = torch.full((count * length,), IGNORED), torch.zeros(count * length, dtype=torch.int64)
        targets[: len(ids) - 1], inputs[: len(ids) - 1] = ids[1:], ids[:-1]
        rows.append((targets.view(count, length), inputs.view(count, length), platforms.expand(count, -1)))
    targets, inputs, bags = map(torch.cat, zip(*rows, strict=True))
    return targets, inputs, bags


class Trainer:
    """A model in training, and its files.

    Args:
        training: What is trained.
        run: The folder of the run.
        folder: The folder of the model.
        device: `cpu` or `cuda`.
    """

    def __init__(self, training: Training, run: Path, folder: Path, device: str) -> None:
        """Make the model, or restore its last checkpoint."""
        self.training, self.run, self.folder, self.device = training, run, folder, device
        self.model = PlatformDecoder(training).to(device)
        self.optimizer = make_optimizer(self.model)
        self.loader = Loader(run / "tokens", columns=_COLUMNS, batch_rows=training.documents, seed=training.seed)
        self.dataset = TokenDataset(self.loader)
        self.step = self.saved = self.updates = 0
        if (folder / CHECKPOINT).exists():
            self._restore(_load(folder / CHECKPOINT, device))

    def _restore(self, checkpoint: dict[str, Any]) -> None:
        assert_vocab(checkpoint, self.run)
        _check_same(self.folder / CHECKPOINT, checkpoint["training"], asdict(self.training))
        self.model.load_state_dict(checkpoint["model"])
        self.optimizer.load_state_dict(checkpoint["optimizer"])
        self.loader.load_state_dict(checkpoint["position"])
        self.step = self.saved = checkpoint["step"]
        self.updates = checkpoint["updates"]
        print(f"resumed at step {self.step:,}", flush=True)

    def train(self, save_every: int) -> None:
        """Train to the last step, and save a checkpoint after every so many steps."""
        with ExitStack() as stack:
            losses = stack.enter_context(self._open_losses())
            while self.step < self.training.steps:
                for number, batch in enumerate(self.dataset, start=1):
                    self._train_step(batch, losses)
                    if self.step >= min(self.saved + save_every, self.training.steps):
                        os.fsync(losses.fileno())  # a checkpoint counts on the lines of its updates
                        self._save(self.loader.state_dict(steps=number))
                    if self.step == self.training.steps:
                        return
                self.loader.next_epoch()

    def _train_step(self, batch: Batch, losses: IO[str]) -> None:
        """Train on all rows of a batch; the learning rate is as if all steps had as many updates as this one."""
        parts = self._mixed(cut_rows(batch, self.training.shape.length, self.training.bag))
        for number, rows in enumerate(parts, start=self.step * len(parts)):
            rate = learning_rate(number, self.training.steps * len(parts), self.training.rate)
            loss = train_step(self.model, self.optimizer, rows, rate, self.device)
            line = {"step": self.step, "loss": loss, "targets": int((rows[0] != IGNORED).sum())}
            print(json.dumps(line), file=losses, flush=True)
        self.step += 1
        self.updates += len(parts)

    def _mixed(self, rows: Sequence[Tensor]) -> list[list[Tensor]]:
        """Return the rows of each update, in an order that the seed and the step decide."""
        place = f"{self.training.seed} {self.step}"
        generator = torch.Generator().manual_seed(int.from_bytes(hashlib.sha256(place.encode()).digest()[:8]) >> 1)
        order = torch.randperm(len(rows[0]), generator=generator)
        return [[tensor[chosen] for tensor in rows] for chosen in order.split(self.training.rows)]

    def _open_losses(self) -> IO[str]:
        """Open the log of losses; what was written after the checkpoint is dropped, and will be written again."""
        path = self.folder / LOSSES
        written = path.read_text().split("\n")[:-1] if self.updates and path.exists() else []
        kept = written[1 : 1 + self.updates]
        if len(kept) < self.updates:
            raise CorruptDataError(
                f"{path}: {len(kept):,} of the {self.updates:,} updates of {CHECKPOINT}; put a copy in its place, or "
                f"remove {CHECKPOINT} to train from the beginning"
            )
        publish(path, "".join(f"{line}\n" for line in (json.dumps(self.training.digests), *kept)).encode())
        return path.open("a")

    def _save(self, position: dict[str, Any]) -> None:
        checkpoint = {
            "step": self.step,
            "updates": self.updates,
            "digests": self.training.digests,
            "training": asdict(self.training),
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "position": position,
        }
        stamp(checkpoint, self.run)
        data = io.BytesIO()
        torch.save(checkpoint, data)
        publish(self.folder / CHECKPOINT, data.getvalue())
        self.saved = self.step
        print(f"saved step {self.step:,} of {self.training.steps:,}", flush=True)

    def measure(self, held_out: Path) -> dict[str, Any]:
        """Return documents, bytes, predicted tokens and bits per byte of a run under the model.

        All tokens with text are predicted. BOS is given, and what has no text, such as EOS, is left out.
        """
        is_boundary = torch.from_numpy(ByteTables.of(load_tokenizer(held_out / "tokenizer")).is_boundary)
        found = {"documents": 0, "bytes": 0, "tokens": 0}
        nats = 0.0
        loader = Loader(held_out / "tokens", columns=_COLUMNS, batch_rows=self.training.documents, shuffle=False)
        with torch.inference_mode():
            for batch in TokenDataset(loader):
                targets, *inputs = cut_rows(batch, self.training.shape.length, self.training.bag)
                targets[is_boundary[targets.clamp(min=0)]] = IGNORED
                nats += sum(float(loss) for loss in sum_losses(self.model, [targets, *inputs], self.device))
                found["documents"] += len(batch["num_bytes"])
                found["bytes"] += int(batch["num_bytes"].sum())
                found["tokens"] += int((targets != IGNORED).sum())
        return {**found, "bits_per_byte": nats / math.log(2) / found["bytes"]}


def _load(path: Path, device: str) -> dict[str, Any]:
    """Return a checkpoint."""
    try:
        checkpoint: dict[str, Any] = torch.load(path, map_location=device, weights_only=True)
        itemgetter("model", "optimizer", "position", "step", "updates", "training")(checkpoint)
    except _UNREADABLE as error:
        raise CorruptDataError(
            f"{path}: damaged, or of another version; put a copy in its place, or remove it to train from the beginning"
        ) from error
    return checkpoint


def publish(path: Path, data: bytes) -> None:
    """Write a file and give it its name when it is on the disk, so that a crash leaves the old one or the new one."""
    part = path.with_name(f".{path.name}.part")
    with part.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def configure(options: argparse.Namespace) -> Training:
    """Return the training that a command line describes.

    Raises:
        InvalidInputError: If the runs differ in tokenizer or platforms, have no text, or do not begin their documents
            with BOS; or if torch finds no GPU for the device.
        OSError: If one is not the folder of a finished run.
    """
    run, held_out = (json.loads((folder / "receipt.json").read_bytes()) for folder in (options.run, options.held_out))
    if options.device == "cuda" and not torch.cuda.is_available():
        raise InvalidInputError("--device cuda: torch finds no GPU; leave it out, or install a torch that finds yours")
    for folder, receipt in ((options.run, run), (options.held_out, held_out)):
        if receipt["dataset"]["bytes"] == 0:
            raise InvalidInputError(f"{folder}: a run without text; name one that kept documents")
    for name, words in (("tokenizer", "tokenizer"), ("platform_vocab", "platform vocabulary")):
        trained, measured = run[name]["digest"], held_out[name]["digest"]
        if trained != measured:
            raise InvalidInputError(
                f"{options.held_out}: its {words} has the digest {measured}, but that of {options.run} has {trained}; "
                "make both runs with one tokenizer (`cppmill run … --tokenizer`) and the same platforms"
            )
    if not (run["policy"]["bos"] and held_out["policy"]["bos"]):
        raise InvalidInputError(
            f"{options.run}, {options.held_out}: documents must begin with BOS, from which the first "
            "token is predicted; run again without bos = false"
        )
    platforms = platform_vocab(options.run / "platform_vocab.json")
    width, layers = options.size
    size = Shape(vocab_size=run["tokenizer"]["vocab_size"], width=width, layers=layers, length=options.length)
    return Training(
        tokenizer=run["tokenizer"]["digest"],
        dataset=run["dataset"]["digest"],
        held_out=held_out["dataset"]["digest"],
        shape=size,
        platforms=platforms.size,
        bag=platforms.max_ids_per_document,
        **{name: getattr(options, name) for name in ("steps", "documents", "rows", "rate", "seed", "threads")},
    )


def prepare(training: Training, options: argparse.Namespace) -> None:
    """Write the configuration of a model, or check that it is the same as before.

    Raises:
        InvalidInputError: If the folder has a model that is trained otherwise.
        CorruptDataError: If its configuration cannot be read.
    """
    path = options.model / CONFIG
    config = {**asdict(training), "digests": training.digests}
    stamp(config, options.run)
    if path.exists():
        try:
            before = dict(json.loads(path.read_bytes()))
        except (ValueError, TypeError) as error:
            raise CorruptDataError(
                f"{path}: damaged ({error}); remove it, and the checkpoint is compared with the options alone"
            ) from error
        _check_same(path, before, config)
        return
    options.model.mkdir(parents=True, exist_ok=True)
    publish(path, (json.dumps(config, indent=2) + "\n").encode())


def _check_same(path: Path, before: dict[str, Any], now: dict[str, Any]) -> None:
    """Check that a file is of the training that is asked for."""
    differs = [name for name in {**now, **before} if before.get(name) != now.get(name)]
    if differs:
        # The others repeat what has a name of its own.
        told = [name for name in differs if name not in ("digests", "cppmill")] or differs
        said = "; ".join(f"{name} {before.get(name)} is not {now.get(name)}" for name in told)
        raise InvalidInputError(f"{path}: another training: {said}; name another folder with --model")


def _positive(text: str) -> int:
    if not re.fullmatch("0*[1-9][0-9]*", text):
        raise argparse.ArgumentTypeError(f"{text}: not a whole number from 1 on")
    return int(text)


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = math.nan
    if not 0 < rate < math.inf:
        raise argparse.ArgumentTypeError(f"{text}: not a number above 0")
    return rate


def _size(text: str) -> tuple[int, int]:
    found = re.fullmatch("([1-9][0-9]*)x([1-9][0-9]*)", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text}: not a width and a number of layers, such as 64x2")
    return int(found[1]), int(found[2])


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options of a command line."""
    parser = argparse.ArgumentParser(prog="python -m cppmill_core.toy.train", description="Train a toy model on a run.")
    parser.add_argument("run", type=Path, metavar="OUT", help="folder of a finished run")
    parser.add_argument("--held-out", type=Path, required=True, metavar="OUT", help="a run with the same tokenizer")
    parser.add_argument("--model", type=Path, required=True, metavar="DIR", help="folder of the model")
    parser.add_argument(
        "--size", type=_size, default="64x2", metavar="WIDTHxLAYERS", help="of the decoder (%(default)s)"
    )
    parser.add_argument("--length", type=_positive, default=128, help="tokens per row (%(default)s)")
    parser.add_argument("--steps", type=_positive, default=10, help="batches of the loader (%(default)s)")
    parser.add_argument("--documents", type=_positive, default=16, help="documents per step (%(default)s)")
    parser.add_argument("--rows", type=_positive, default=8, help="rows per update of the weights (%(default)s)")
    parser.add_argument("--rate", type=_rate, default=3e-3, help="highest learning rate (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of weights and order (%(default)s)")
    parser.add_argument(
        "--save-every", type=_positive, default=1, metavar="STEPS", help="between checkpoints (%(default)s)"
    )
    parser.add_argument("--threads", type=_positive, default=torch.get_num_threads(), help="of torch (%(default)s)")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    parser.add_argument("--device", choices=["cpu", "cuda"], default=device, help="(%(default)s)")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Train a model, or resume its training, and measure it."""
    options = parse(arguments)
    training = configure(options)
    prepare(training, options)
    torch.set_num_threads(training.threads)
    trainer = Trainer(training, options.run, options.model, options.device)
    trainer.train(options.save_every)
    result = {**training.digests, "steps": training.steps, **trainer.measure(options.held_out)}
    publish(options.model / RESULT, (json.dumps(result, indent=2) + "\n").encode())
    print(
        f"{result['bits_per_byte']:.4f} bits per byte on {result['documents']:,} documents, {result['bytes']:,} bytes"
    )


if __name__ == "__main__":
    try:
        main()
    except (CoreError, OSError) as error:
        sys.exit(f"error: {error}")
