"""The steps of a training: which positions of which epoch each step consumed, from a checkpoint alone.

A step of a loader takes the next `ranks * batch_rows` positions of an epoch. Both may change when a training is
resumed, so the position of a loader lists its *legs*: from which position on steps were made by how many ranks, with
how many rows each. So every step can be computed, and nothing is logged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import count, pairwise
from numbers import Integral
from operator import ge
from typing import Any

from cppmill_core._native import InvalidInputError

__all__ = ["History", "Leg", "Stretch", "as_json", "continued", "read_legs"]

_LEAST = {"epoch": 0, "consumed": 0, "ranks": 1, "batch_rows": 1}
"""The least numbers of a leg."""


@dataclass(frozen=True, kw_only=True)
class Leg:
    """How steps are made from a position on.

    Attributes:
        epoch: Number of the epoch, from 0.
        consumed: Rows of the epoch that were consumed before.
        ranks: The number of processes.
        batch_rows: Rows per step and rank.
        drop_last: Whether an epoch ends before a step that it does not fill.
    """

    epoch: int
    consumed: int
    ranks: int
    batch_rows: int
    drop_last: bool

    def differs(self, other: Leg) -> bool:
        """Return whether another leg makes its steps otherwise."""
        return replace(self, epoch=other.epoch, consumed=other.consumed) != other


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """Consecutive steps of one epoch that were made in the same way.

    Attributes:
        epoch: Number of the epoch.
        start: The first position.
        end: The position behind the last one.
        ranks: The ranks that read it.
        batch_rows: Rows per step and rank.
        step: Number of the first step, from 0 over all epochs.
        step_in_epoch: Number of the first step in its epoch.
    """

    epoch: int
    start: int
    end: int
    ranks: int
    batch_rows: int
    step: int
    step_in_epoch: int

    @property
    def steps(self) -> int:
        """The number of steps; the last one may be short."""
        return -(-(self.end - self.start) // (self.ranks * self.batch_rows))

    def only(self, number: int) -> Stretch:
        """Return one of the steps, by its number from 0 in the stretch."""
        size = self.ranks * self.batch_rows
        start = self.start + number * size
        return replace(
            self,
            start=start,
            end=min(start + size, self.end),
            step=self.step + number,
            step_in_epoch=self.step_in_epoch + number,
        )

    def locate(self, position: int) -> tuple[int, int]:
        """Return the number of the step, over all epochs, and the rank that consumed a position."""
        step, place = divmod(position - self.start, self.ranks * self.batch_rows)
        return self.step + step, place % self.ranks


@dataclass(frozen=True)
class History:
    """All steps of a training.

    Attributes:
        rows: Rows of an epoch.
        legs: How the steps were made, in order; at least one.
    """

    rows: int
    legs: Sequence[Leg]

    def stretches(self) -> Iterator[Stretch]:
        """Yield the steps of all epochs, in order; the last leg goes on forever.

        Raises:
            InvalidInputError: If steps are larger than an epoch and incomplete ones are left out, so that none is left.
        """
        leg, done = self.legs[0], 0
        for epoch in count(leg.epoch):
            here = [found for found in self.legs if found.epoch == epoch]
            if epoch > self.legs[0].epoch and (not here or here[0].consumed):
                here.insert(0, replace(leg, epoch=epoch, consumed=0))
            in_epoch = 0
            for leg, end in zip(here, [*(following.consumed for following in here[1:]), None], strict=True):
                made = self._stretch(leg, end, done, in_epoch)
                if made.steps:
                    yield made
                    done, in_epoch = done + made.steps, in_epoch + made.steps
            if epoch > self.legs[-1].epoch and not in_epoch:
                raise InvalidInputError(f"a step of {leg.ranks * leg.batch_rows:,} rows: an epoch has {self.rows:,}")

    def _stretch(self, leg: Leg, end: int | None, done: int, in_epoch: int) -> Stretch:
        """Return the steps of a leg up to the next one, or up to the end of the epoch."""
        size = leg.ranks * leg.batch_rows
        whole = leg.consumed + (self.rows - leg.consumed) // size * size
        return Stretch(
            epoch=leg.epoch,
            start=leg.consumed,
            end=(whole if leg.drop_last else self.rows) if end is None else end,
            ranks=leg.ranks,
            batch_rows=leg.batch_rows,
            step=done,
            step_in_epoch=in_epoch,
        )

    def until(self, epoch: int, consumed: int) -> Iterator[Stretch]:
        """Yield the steps up to a position."""
        for stretch in self.stretches():
            if (stretch.epoch, stretch.start) >= (epoch, consumed):
                return
            yield replace(stretch, end=min(stretch.end, consumed)) if stretch.epoch == epoch else stretch

    def find(self, step: int, epoch: int | None = None) -> Stretch:
        """Return one step by its number, from 0, over all epochs or in one.

        Raises:
            InvalidInputError: If the epoch has no such step.
        """
        for stretch in self.stretches():
            if epoch is None and step < stretch.step + stretch.steps:
                return stretch.only(step - stretch.step)
            if epoch is not None and stretch.epoch > epoch:
                break
            if stretch.epoch == epoch and step < stretch.step_in_epoch + stretch.steps:
                return stretch.only(step - stretch.step_in_epoch)
        raise InvalidInputError(f"step {step:,}: epoch {epoch} has no such step")

    def last(self, epoch: int, consumed: int) -> Stretch | None:
        """Return the last step before a position; None at the beginning."""
        found = None
        for found in self.until(epoch, consumed):  # noqa: B007 - the last one is wanted
            pass
        return found.only(found.steps - 1) if found else None


def read_legs(state: Mapping[str, Any]) -> tuple[Leg, ...]:
    """Return the legs of a loader's position; none if it is from before positions had them.

    Raises:
        InvalidInputError: If they cannot be read.
    """
    try:
        legs = tuple(Leg(**leg) for leg in state.get("legs", ()))
    except TypeError as error:
        raise InvalidInputError(f"the position: legs that cannot be read ({error})") from error
    wrong = [leg for leg in legs if not _is_written(leg)]
    wrong += [leg for before, leg in pairwise(legs) if (leg.epoch, leg.consumed) <= (before.epoch, before.consumed)]
    if wrong:
        raise InvalidInputError(f"the position: no loader writes the leg {wrong[0]}")
    return legs


def _is_written(leg: Leg) -> bool:
    """Return whether a leg has numbers as a loader writes them."""
    values = [getattr(leg, name) for name in _LEAST]
    are_whole = all(isinstance(value, Integral) and not isinstance(value, bool) for value in values)
    return isinstance(leg.drop_last, bool) and are_whole and all(map(ge, values, _LEAST.values()))


def continued(legs: Sequence[Leg], leg: Leg) -> tuple[Leg, ...]:
    """Return legs with one more at the end, if it makes its steps otherwise than the last one."""
    before = [found for found in legs if (found.epoch, found.consumed) < (leg.epoch, leg.consumed)]
    return (*before, leg) if not before or before[-1].differs(leg) else tuple(before)


def as_json(legs: Sequence[Leg]) -> list[dict[str, Any]]:
    """Return legs as plain values."""
    return [asdict(leg) for leg in legs]
