"""The budget of a trial: a time as it is typed, and the same work for every cell that it comes to."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from schemas.errors import ConfigError

_UNITS = {"s": 1, "m": 60, "h": 3600}
_TIME = re.compile(r"(\d+(?:\.\d+)?)([smh])")


class Speed(NamedTuple):
    """How fast a cell is on this machine.

    Attributes:
        flops_per_second: Operations of training per second.
        measuring_seconds: Time to measure the model at all points; not training, but it takes a part of the budget.
    """

    flops_per_second: float
    measuring_seconds: float


def parse_time(text: str, *, argument: str) -> float:
    """Return the seconds of a time as it was typed.

    Raises:
        ConfigError: If it is not a time.

    Example:
        >>> parse_time("20m", argument="--budget"), parse_time("1.5h", argument="--budget")
        (1200.0, 5400.0)
    """
    found = _TIME.fullmatch(text)
    seconds = float(found[1]) * _UNITS[found[2]] if found else 0.0
    if not seconds:
        raise ConfigError(f"{argument} {text}: not a time; it takes a number with s, m or h, as 20m")
    return seconds


def share_budget(seconds: float, speeds: Sequence[Speed], *, seeds: int) -> float:
    """Return the FLOPs of training of each cell, the same for all, with which a trial takes so long.

    Args:
        seconds: For all cells together.
        speeds: Of each tokenizer.
        seeds: Cells per tokenizer.

    Raises:
        ConfigError: If measuring alone takes longer.

    Example:
        >>> share_budget(60.0, [Speed(2.0, 2.0), Speed(4.0, 1.0)], seeds=2)
        36.0
    """
    spent = sum(speed.measuring_seconds for speed in speeds)
    left = seconds / seeds - spent
    if left <= 0:
        raise ConfigError(
            f"--budget: measuring alone takes about {seeds * spent:,.0f} s here; give more time, or fewer "
            "--held-out-bytes"
        )
    return left / sum(1 / speed.flops_per_second for speed in speeds)
