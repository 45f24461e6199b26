"""The versions of the code and of the dependencies that decide the bytes of a run or an export."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import version

import cppmill_core

_DEPENDENCIES = ("pyarrow", "numpy", "apache-beam", "tokenizers")
_version = cache(version)
"""The version of a package that is installed; finding it reads all of the package's metadata."""


def code_versions() -> dict[str, str]:
    """Return the versions that are installed; those of plug-ins are the run's."""
    return {
        "cppmill": _version("cppmill"),
        "cppmill-core": cppmill_core.__version__,
        **{name: _version(name) for name in _DEPENDENCIES},
    }


def names_versions(code: Mapping[str, object]) -> bool:
    """Return whether each value of a record's table of versions is a text that may be one."""
    return all(isinstance(number, str) and number for number in code.values())


def is_installed(code: Mapping[str, str]) -> bool:
    """Return whether what a record says of versions is what is installed; it may say more, of plug-ins."""
    return all(code.get(name) == number for name, number in code_versions().items())
