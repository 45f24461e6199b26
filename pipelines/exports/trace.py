"""The program of `cppmill trace`: from the steps of a training to the documents that they consumed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from cppmill_core.order.shuffling import EpochOrder
from cppmill_core.order.steps import History, Leg, Stretch, read_legs
from cppmill_core.positions import read_position

from pipelines.console.tables import align
from pipelines.exports.traced_rows import TracedRows
from schemas.errors import ConfigError
from transforms.exports.sequences.spans import DocumentSpan

UNKNOWN = "unknown"
SHOWN = 20


@dataclass(frozen=True)
class Order:
    """The order in which a training read a dataset, and the steps in which it did.

    Attributes:
        seed: As of the loader.
        streams: As of the loader.
        shuffle: As of the loader.
        legs: How the steps were made.
        position: The epoch, and the rows of it that were consumed; None without a checkpoint.
        state: What a checkpoint says about its dataset; None without one.
    """

    seed: int
    streams: int
    shuffle: bool
    legs: tuple[Leg, ...]
    position: tuple[int, int] | None = None
    state: Mapping[str, Any] | None = None

    @classmethod
    def of_checkpoint(cls, checkpoint: Path) -> Order:
        """Read the order from the position of the loader in a checkpoint.

        Raises:
            ConfigError: If its position is from before positions listed their steps.
            OSError: If it cannot be read.
        """
        state = read_position(checkpoint)
        legs = read_legs(state)
        if not legs:
            raise ConfigError(f"{checkpoint}: it does not record how steps were made; give --step, --ranks, …")
        position = (int(state["epoch"]), int(state["consumed"]))
        return cls(int(state["seed"]), int(state["streams"]), bool(state["shuffle"]), legs, position, state)


class GivenOrder(NamedTuple):
    """What a user says of the loader where there is no checkpoint; None or False for what was not given."""

    ranks: int | None = None
    batch_rows: int | None = None
    seed: int | None = None
    streams: int | None = None
    in_order: bool = False
    drop_last: bool = False

    def order(self, rows: TracedRows) -> Order:
        """Return the order of a loader with these options, and its defaults for all others."""
        leg = Leg(epoch=0, consumed=0, ranks=self.ranks or 1, batch_rows=self.batch_rows or 1, drop_last=self.drop_last)
        streams = 1 if self.in_order else min(self.streams or 16, len(rows.groups))
        return Order(self.seed or 0, streams, not self.in_order, (leg,))


def find_order(checkpoint: Path | None, given: GivenOrder, rows: TracedRows, *, data: str) -> Order:
    """Return the order in which a training read a dataset.

    Raises:
        ConfigError: If the checkpoint is of another dataset, has a position that no loader of it comes to, or options
            are given that it decides.
    """
    if checkpoint is None:
        return given.order(rows)
    if given != GivenOrder():
        raise ConfigError(
            f"{checkpoint}: it decides ranks, batches and order; leave out --ranks, --batch-rows, --seed, --streams, "
            "--no-shuffle and --drop-last"
        )
    order = Order.of_checkpoint(checkpoint)
    check_dataset(order, rows, data=data)
    check_position(order, rows, checkpoint)
    return order


def check_dataset(order: Order, rows: TracedRows, *, data: str) -> None:
    """Check that a dataset is the one that a checkpoint was trained on.

    Raises:
        ConfigError: Naming both digests.
    """
    state, facts = order.state, rows.facts()
    if state is None:
        return
    source = state.get("source") or {}
    stated = {"dataset": source.get("dataset"), "tokenizer": state["tokenizer"]}
    for name, digest in stated.items():
        if digest is not None and digest != facts[name]:
            raise ConfigError(f"--data {data}: its {name} is {facts[name]}, but the checkpoint's is {digest}")
    if state["dataset"] != rows.fingerprint:
        raise ConfigError(
            f"--data {data}: its files have the fingerprint {rows.fingerprint}, but the checkpoint read files with "
            f"{state['dataset']}: other shards, or sequences instead of them"
        )


def check_position(order: Order, rows: TracedRows, checkpoint: Path) -> None:
    """Check that a loader of a dataset can come to a position.

    Raises:
        ConfigError: Naming what no loader of it does.
    """
    if order.streams != (min(order.streams, len(rows.groups)) if order.shuffle else 1):
        shuffled = "shuffled" if order.shuffle else "not shuffled"
        raise ConfigError(f"{checkpoint}: {order.streams} streams of {len(rows.groups)} row groups, {shuffled}")
    places = [(leg.epoch, leg.consumed) for leg in order.legs]
    _, consumed = position = order.position or places[-1]
    if places[-1] > position or any(leg.consumed >= rows.rows for leg in order.legs):
        raise ConfigError(f"{checkpoint}: its legs, from (epoch, consumed) {places}, do not lead to {position}")
    size = order.legs[-1].ranks * order.legs[-1].batch_rows
    if consumed >= rows.rows + size:  # workers count a short last step as the others
        raise ConfigError(f"{checkpoint}: {consumed:,} rows of an epoch consumed, it has {rows.rows:,}")


def trace(
    rows: TracedRows, order: Order, *, step: int | None, epoch: int | None, until: bool, rank: int | None
) -> Iterator[dict[str, Any]]:
    """Yield the documents of steps, as JSON values.

    The rows of one step are in the order of their positions. Of several steps, they are in the order in which the
    files are read, a row group at a time.

    Args:
        rows: The dataset.
        order: How it was read.
        step: The step to trace: its number in the epoch, or over all epochs; by default the last before the checkpoint.
        epoch: The epoch of the step.
        until: Trace all steps up to the checkpoint.
        rank: Only what this rank read.

    Raises:
        ConfigError: If there is no such step.
        IntegrityError: If a file is not what its record says.
    """
    history = History(rows.rows, order.legs)
    for stretch in _chosen(history, order, step=step, epoch=epoch, until=until):
        if rank is not None and not 0 <= rank < stretch.ranks:
            raise ConfigError(f"--rank {rank}: epoch {stretch.epoch} was read by {stretch.ranks} ranks, from 0 on")
        found = _records(rows, order, stretch, rank)
        yield from found if until else sorted(found, key=lambda record: int(record["position"]))


def _chosen(history: History, order: Order, *, step: int | None, epoch: int | None, until: bool) -> Iterator[Stretch]:
    if epoch is not None and step is None:
        raise ConfigError(f"--epoch {epoch}: it is the epoch of --step; give both")
    if until and step is not None:
        raise ConfigError("--until --step: give one of them")
    if step is not None:
        first = order.legs[0]
        if (first.epoch, first.consumed) != (0, 0) and (epoch is None or epoch <= first.epoch):
            raise ConfigError(
                f"--step {step}: the checkpoint does not record how steps were made before row {first.consumed:,} of "
                f"epoch {first.epoch}; give an --epoch behind it"
            )
        found = history.find(step, epoch)
        if order.position is not None and (found.epoch, found.start) >= order.position:
            raise ConfigError(f"--step {step}: the training had not made this step when the checkpoint was written")
        yield found
    elif order.position is None:
        raise ConfigError("CHECKPOINT: give a checkpoint, or --step")
    elif until:
        yield from history.until(*order.position)
    elif (last := history.last(*order.position)) is not None:
        yield last


def _records(rows: TracedRows, order: Order, stretch: Stretch, rank: int | None) -> Iterator[dict[str, Any]]:
    group_rows = [number for _, _, number in rows.groups]
    epoch_order = EpochOrder(group_rows, order.seed, stretch.epoch, order.streams, order.shuffle)
    for group, found, positions in epoch_order.rows_between(stretch.start, stretch.end):
        size = stretch.ranks * stretch.batch_rows
        mine = np.ones(len(found), bool) if rank is None else (positions - stretch.start) % size % stretch.ranks == rank
        name, number, _ = rows.groups[group]
        numbered = zip(found[mine].tolist(), positions[mine].tolist(), rows.documents(group, found[mine]), strict=True)
        for row, position, spans in numbered:
            step, reader = stretch.locate(position)
            place = {"epoch": stretch.epoch, "step": step, "rank": reader, "position": position}
            for span in spans:
                yield {"record": "document", **place, "file": name, "group": number, "row": row, **_described(span)}


def _described(span: DocumentSpan) -> dict[str, Any]:
    document = span.document
    return {
        "doc_id": document.doc_id,
        "project": document.project,
        "path": document.path,
        "license": document.license,
        "bytes": [span.start, span.end],
        "num_bytes": document.num_bytes,
        "tokens": span.tokens,
    }


def head(rows: TracedRows, order: Order) -> dict[str, Any]:
    """Return the first record: what was read, and how."""
    state = order.state or {}
    position = {name: state[name] for name in ("epoch", "consumed", "source") if name in state}
    return {
        "record": "dataset",
        **rows.facts(),
        "rows": rows.rows,
        "seed": order.seed,
        "streams": order.streams,
        "shuffle": order.shuffle,
        "checkpoint": position or None,
    }


class Sums:
    """Distinct documents, bytes and tokens of records, by project and by licence."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.by: dict[str, dict[str | None, Counter[str]]] = {"project": {}, "license": {}}
        self._seen: set[str] = set()

    def add(self, record: Mapping[str, Any]) -> None:
        """Add a record."""
        start, end = record["bytes"]
        new = record["doc_id"] not in self._seen
        self._seen.add(record["doc_id"])
        for name, sums in self.by.items():
            total = sums.setdefault(record[name], Counter(documents=0, bytes=0, tokens=0))
            total.update(documents=new, bytes=end - start, tokens=record["tokens"])

    def sorted(self, name: str) -> list[tuple[str | None, Counter[str]]]:
        """Return the sums by project or licence, the most bytes first."""
        return sorted(self.by[name].items(), key=lambda entry: (-entry[1]["bytes"], str(entry[0])))


def trace_lines(
    rows: TracedRows, order: Order, records: Iterable[dict[str, Any]], *, as_json: bool, every: bool
) -> Iterator[str]:
    """Yield what the command prints: a JSON object per line, or tables for people.

    Args:
        rows: The dataset.
        order: How it was read.
        records: What `trace` yields.
        as_json: JSON.
        every: Whether the tables have a row for each document, and not only sums.
    """
    sums = Sums()
    if as_json:
        yield json.dumps(head(rows, order))
        for record in records:
            sums.add(record)
            yield json.dumps(record)
        for name, total in sums.sorted("license"):
            yield json.dumps({"record": "license", "license": name, **total})
        return
    cells = []
    for record in records:
        sums.add(record)
        cells += [_cells(record)] if every else []
    facts = rows.facts()
    yield f"dataset   {facts['dataset']}"
    yield f"tokenizer {facts['tokenizer']} ({facts['revision']})"
    if every:
        yield from ["", *align([_HEADINGS, *cells])]
    for name in sums.by:
        yield from ["", *_table_of_sums(name, sums.sorted(name))]
    if rows.lacks_licenses:
        yield "the run's documents are gone, so their licences are not known"


_HEADINGS = ["project/path", "epoch", "step", "rank", "bytes", "of", "tokens", "license", "document"]


def _cells(record: Mapping[str, Any]) -> list[str]:
    start, end = record["bytes"]
    where = f"{record['project']}/{record['path']}"
    numbers = [str(record[name]) for name in ("epoch", "step", "rank")]
    sizes = [f"{start:,}-{end:,}", f"{record['num_bytes']:,}", f"{record['tokens']:,}"]
    return [where, *numbers, *sizes, record["license"] or UNKNOWN, record["doc_id"][:12]]


def _table_of_sums(name: str, sums: Sequence[tuple[str | None, Counter[str]]]) -> list[str]:
    columns = ["documents", "bytes", "tokens"]
    cells = [[key or UNKNOWN, *(f"{total[column]:,}" for column in columns)] for key, total in sums[:SHOWN]]
    more = [f"… and {len(sums) - SHOWN:,} more"] if len(sums) > SHOWN else []
    return [*align([[name, *columns], *cells]), *more]
