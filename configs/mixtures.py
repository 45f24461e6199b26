"""The file of mixture weights: `default`, and a table `[projects]` of weights by name or glob."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from configs.problems import show
from schemas.digests import parse_toml
from schemas.errors import ConfigError
from schemas.export_options import MAX_WEIGHT
from schemas.files import read_regular

Weights = tuple[tuple[str, float], ...]
_KEYS = ("default", "projects")


def read_mixture(file: Path) -> tuple[float, Weights]:
    """Return the default weight of a file, and the weights by project, in its order.

    Raises:
        ConfigError: With one line for every problem.
    """
    try:
        values = parse_toml(read_regular(file).decode())
    except (OSError, ValueError) as error:
        raise ConfigError(f"--mixture {file}: {error}") from error
    projects = values.get("projects", {})
    problems = [f"{file}: {name}: unknown key (known: default, [projects])" for name in values if name not in _KEYS]
    if not isinstance(projects, dict):
        raise ConfigError(f"{file}: projects = {show(projects)}: not allowed; [projects] is a table")
    named = {"default": values.get("default", 1.0), **{f"projects.{name}": value for name, value in projects.items()}}
    problems += [
        f"{file}: {name} = {show(value)}: not allowed; it takes a number from 0 to {MAX_WEIGHT}"
        for name, value in named.items()
        if not _is_weight(value)
    ]
    if problems:
        raise ConfigError("\n".join(problems))
    return float(named["default"]), tuple((name, float(value)) for name, value in projects.items())


def _is_weight(value: Any) -> bool:  # noqa: ANN401 - any TOML value
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= MAX_WEIGHT
