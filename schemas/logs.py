"""The one logger of cppmill: every message of ours goes to `cppmill` or below it, none to the root.

A program that uses cppmill as a library chooses what it sees by `logging.getLogger("cppmill")`.
"""

from __future__ import annotations

import logging

LOGGER = "cppmill"


def module_logger(module: str) -> logging.Logger:
    """Return the logger of a module of ours, below `cppmill`.

    Args:
        module: Its `__name__`.

    Example:
        >>> module_logger("transforms.storage.lock").name
        'cppmill.transforms.storage.lock'
    """
    return logging.getLogger(f"{LOGGER}.{module}")
