"""Reads a dataset for training: shuffled rows of token shards or sequences as numpy arrays, resumable at any step.

The order of an epoch depends on the files, the seed and the epoch only (`order.shuffling`). A position is the number
of rows of the epoch that all ranks together have consumed. In each step, every rank reads one batch: with R ranks and
batches of b rows, rank r reads the positions start + t·R·b + i·R + r in step t, for i below b. Worker w of W reads
every W-th step of its rank. After any step, the consumed rows are therefore a prefix of the order, and any other
number of ranks and workers can resume after it.

Memory is bounded: a reader holds one decoded row group per stream. Needs numpy and pyarrow, but neither torch
(`cppmill_core.torch_data` does) nor Beam.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, MutableSequence, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any, Generic, TypeVar

import pyarrow as pa

from cppmill_core._native import InvalidInputError
from cppmill_core.batches import Arrays, decode_columns, gather_rows
from cppmill_core.columns import Row, Rows
from cppmill_core.dataset import Dataset
from cppmill_core.order.shuffling import EpochOrder
from cppmill_core.order.steps import Leg, as_json, continued, read_legs

__all__ = ["FORMAT", "Dataset", "Loader", "Place"]

Group = TypeVar("Group")

FORMAT = "cppmill-loader-1"


@dataclass(frozen=True, kw_only=True)
class Place:
    """Which reader this is, among all ranks and workers.

    Attributes:
        rank: Number of the process, from 0.
        ranks: The number of processes.
        worker: Number of the worker in the process, from 0.
        workers: The number of workers of the process.
    """

    rank: int = 0
    ranks: int = 1
    worker: int = 0
    workers: int = 1

    def __post_init__(self) -> None:
        """Check the ranges of the numbers."""
        for name, number, count in (("rank", self.rank, self.ranks), ("worker", self.worker, self.workers)):
            if count < 1:
                raise InvalidInputError(f"{name} {number} of {count}: there is at least one")
            if not 0 <= number < count:
                raise InvalidInputError(f"{name} {number} of {count}: a number from 0 to {count - 1} is needed")


class Loader:
    """Iterates over an epoch of a dataset from its position; the next `for` reads the next epoch.

    After a `break`, the next `for` begins the same iteration again, unless a position is loaded.

    Args:
        dataset: A folder, or an opened `Dataset`.
        columns: The columns to read; all by default.
        seed: Any whole number; it determines the order.
        shuffle: False for the order of the files, in every epoch.
        batch_rows: Rows per step and rank.
        place: The rank and worker of this reader; one reader of everything by default.
        streams: How many row groups are mixed, and held in memory by a run with one reader. Make it a multiple of the
            ranks. Changing it changes the order.
        drop_last: Leave out the last rows of an epoch if they do not fill a step of all ranks, so that all ranks have
            the same number of steps.

    Attributes:
        groups_read: Row groups decoded so far.
        read_by_copies: Whether only copies of this loader are iterated, as by `torch_data.TokenDataset`. It then cannot
            count their rows, so `state_dict` needs `steps`.

    Example:
        >>> for row in Loader("out/demo/tokens", columns=["token_ids"], seed=1):
        ...     train(row["token_ids"])
    """

    def __init__(
        self,
        dataset: Dataset | str | os.PathLike[str],
        *,
        columns: Sequence[str] | None = None,
        seed: int = 0,
        shuffle: bool = True,
        batch_rows: int = 1,
        place: Place | None = None,
        streams: int = 16,
        drop_last: bool = False,
    ) -> None:
        """Open the dataset, at the beginning of epoch 0."""
        if batch_rows < 1 or streams < 1:
            raise InvalidInputError(f"batch_rows = {batch_rows}, streams = {streams}: each must be at least 1")
        self.dataset = dataset if isinstance(dataset, Dataset) else Dataset.open(dataset)
        self.columns = None if columns is None else tuple(columns)
        self.seed = _whole("seed", seed, signed=True)
        self.shuffle = shuffle
        self.batch_rows = batch_rows
        self.place = place or Place()
        self.streams = min(streams, len(self.dataset.groups)) if shuffle else 1
        self.drop_last = drop_last
        self._position: MutableSequence[int] = [0, 0]
        self.groups_read = 0
        self.read_by_copies = False
        self._rows_given = 0
        self._legs: tuple[Leg, ...] = (self._leg(0, 0),)

    @property
    def epoch(self) -> int:
        """Number of the epoch, from 0."""
        return int(self._position[0])

    @epoch.setter
    def epoch(self, epoch: int) -> None:
        self._position[0] = _whole("epoch", epoch)

    @property
    def consumed(self) -> int:
        """Rows of the epoch that all ranks together consumed before the iteration."""
        return int(self._position[1])

    @consumed.setter
    def consumed(self, consumed: int) -> None:
        self._position[1] = _whole("consumed", consumed)

    def keep_position_in(self, place: MutableSequence[int]) -> None:
        """Keep `epoch` and `consumed` in two numbers that other processes read, such as a tensor in shared memory."""
        place[0], place[1] = self._position
        self._position = place

    def at(self, place: Place) -> Loader:
        """Return a loader with the same position and options for another place, such as that of a worker."""
        made = Loader(
            self.dataset,
            columns=self.columns,
            seed=self.seed,
            shuffle=self.shuffle,
            batch_rows=self.batch_rows,
            place=place,
            streams=self.streams,
            drop_last=self.drop_last,
        )
        made.epoch, made.consumed, made._legs = self.epoch, self.consumed, self._legs
        return made

    def steps(self) -> int:
        """Return the number of steps left in the epoch, for the rank with the most."""
        rows, step = self.dataset.rows - self.consumed, self.batch_rows * self.place.ranks
        return rows // step if self.drop_last else -(-rows // step)

    def ends_with(self, done: int) -> bool:
        """Return whether the last step of this rank is one of the first `done` of this worker."""
        left, place = self.dataset.rows - self.consumed - self.place.rank, self.place
        steps = self.steps() if self.drop_last else -(-left // (self.batch_rows * place.ranks))
        return steps > 0 and (steps - 1) % place.workers == place.worker and done > (steps - 1) // place.workers

    def positions(self, done: int = 0) -> Iterator[list[int]]:
        """Yield the positions of each step of this place but the first `done`, up to the end of the epoch."""
        place, step = self.place, self.batch_rows * self.place.ranks
        for number in range(place.worker + done * place.workers, self.steps(), place.workers):
            first = self.consumed + number * step + place.rank
            if mine := list(range(first, min(first + step, self.dataset.rows), place.ranks)):
                yield mine

    def __iter__(self) -> Iterator[Row]:
        """Yield each row of this place as a dict of numpy arrays, numbers and strings."""
        reader = self._begin(Rows.of)
        for positions in self.positions():
            for position in positions:
                rows, row = reader.find(position)
                self._rows_given += 1
                yield rows[row]
        self.next_epoch()

    def batches(self, done: int = 0) -> Iterator[Arrays]:
        """Yield each step of this place as arrays by column, as `cppmill_core.batches` says.

        Args:
            done: Leave out so many steps of this place, as they were made before.
        """
        reader = self._begin(partial(decode_columns, digests=self.dataset.digests))
        self._rows_given = done * self.batch_rows
        for positions in self.positions(done):
            batch = gather_rows([reader.find(position) for position in positions])
            self._rows_given += self.batch_rows  # the last step may be shorter, and shorter than on other ranks
            yield batch
        self.next_epoch()

    def _begin(self, decode: Callable[[pa.Table], Group]) -> _Reader[Group]:
        self._rows_given = 0
        order = EpochOrder(self._group_rows(), self.seed, self.epoch, self.streams, self.shuffle)
        return _Reader(self, order, decode)

    def _group_rows(self) -> tuple[int, ...]:
        return tuple(rows for _, _, rows in self.dataset.groups)

    def next_epoch(self) -> None:
        """Go to the beginning of the next epoch; a complete iteration does so by itself."""
        self.epoch, self.consumed, self._rows_given = self.epoch + 1, 0, 0

    def state_dict(self, steps: int | None = None) -> dict[str, Any]:
        """Return the position of the training for a checkpoint, as plain numbers and strings.

        It assumes that every rank has consumed as much as this one.

        Args:
            steps: The steps (batches) consumed since the epoch was begun or resumed. Needed with workers and with a
                torch dataset, because only the consumer of their batches knows. By default, the loader counts the rows
                that it has yielded.

        Raises:
            InvalidInputError: If `steps` is missing with workers or a torch dataset, or is not a whole number from 0.
        """
        if steps is None and (self.place.workers > 1 or self.read_by_copies):
            raise InvalidInputError(
                "state_dict: pass the number of consumed steps, state_dict(steps=…): workers and torch datasets read "
                "ahead by copies of the loader, so only the training loop knows it"
            )
        given = self._rows_given if steps is None else _whole("state_dict: steps", steps) * self.batch_rows
        consumed = min(self.consumed + given * self.place.ranks, self.dataset.rows)
        ended = consumed == self.dataset.rows
        return {
            "format": FORMAT,
            "epoch": self.epoch + ended,
            "consumed": 0 if ended else consumed,
            **self._order(),
            "source": None if self.dataset.source is None else dict(self.dataset.source),
            "legs": as_json(self._legs),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume from a `state_dict`, with any number of ranks and workers and any `batch_rows`.

        Raises:
            InvalidInputError: If it is for other files or another order (the message names the difference), or is not
                a position of this dataset.
        """
        if not isinstance(state, Mapping):
            raise InvalidInputError(f"the position is {type(state).__name__}: a mapping, as state_dict returns it")
        expected = {"format": FORMAT, **self._order()}
        differs = [name for name, value in expected.items() if state.get(name) != value]
        wrong = [f"{name} {state.get(name)!r} is not {expected[name]!r}" for name in differs]
        if wrong:
            raise InvalidInputError(f"the position is for another order: {'; '.join(wrong)}")
        epoch, consumed = (_whole(f"the position: {name}", state.get(name)) for name in ("epoch", "consumed"))
        if consumed >= self.dataset.rows:
            raise InvalidInputError(
                f"epoch {epoch}, {consumed:,} consumed: no such position, as the dataset has {self.dataset.rows:,} rows"
            )
        self.epoch, self.consumed, self._rows_given = epoch, consumed, 0
        self._legs = continued(read_legs(state), self._leg(epoch, consumed))

    def _leg(self, epoch: int, consumed: int) -> Leg:
        return Leg(
            epoch=epoch,
            consumed=consumed,
            ranks=self.place.ranks,
            batch_rows=self.batch_rows,
            drop_last=self.drop_last,
        )

    def _order(self) -> dict[str, Any]:
        return {
            "dataset": self.dataset.fingerprint,
            "tokenizer": self.dataset.tokenizer,
            "seed": self.seed,
            "shuffle": self.shuffle,
            "streams": self.streams,
        }


class _Reader(Generic[Group]):
    """Row groups by the position of their rows; keeps one decoded row group open per stream."""

    def __init__(self, loader: Loader, order: EpochOrder, decode: Callable[[pa.Table], Group]) -> None:
        self._loader = loader
        self._order = order
        self._decode = decode
        self._open: dict[int, tuple[int, Group, list[int]]] = {}

    def find(self, position: int) -> tuple[Group, int]:
        """Return the row group of a position and the row in it; the positions within a stream must ascend."""
        stream, number = self._order.find(position)
        segment = self._order.segments[stream][number]
        if stream not in self._open or self._open[stream][0] != number:
            self._open.pop(stream, None)
            self._loader.groups_read += 1
            group = self._decode(self._loader.dataset.read(segment.group, self._loader.columns))
            self._open[stream] = (number, group, self._order.rows_of(stream, number).tolist())
        _, group, order = self._open[stream]
        return group, order[position // self._order.streams - segment.at]


def _whole(name: str, value: Any, *, signed: bool = False) -> int:  # noqa: ANN401 - any value of a caller or checkpoint
    """Return a whole number; the text of anything else need not be the same in every rank."""
    if isinstance(value, bool) or not isinstance(value, Integral) or (value < 0 and not signed):
        raise InvalidInputError(f"{name} is {value!r}: a whole number{'' if signed else ' from 0'} is needed")
    return int(value)
