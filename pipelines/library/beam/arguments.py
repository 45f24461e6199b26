"""Checks of the arguments of transforms, while the pipeline is made: a worker says it late, and without a name."""

from __future__ import annotations

from schemas.errors import ConfigError

MAX_THREADS = 1024
MAX_NUMBER = (1 << 63) - 1


def check_number(name: str, value: object, *, least: int = 1, most: int = MAX_NUMBER) -> int:
    """Return a whole number.

    Raises:
        ConfigError: If it is something else, or out of range.
    """
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ConfigError(f"{name} = {value!r}: not allowed; it takes a whole number from {least} to {most:,}")
    return value


def check_threads(value: object) -> int:
    """Return a number of threads.

    Raises:
        ConfigError: If it is none.
    """
    return check_number("threads", value, most=MAX_THREADS)
