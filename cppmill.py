"""The start of the programs `cppmill` and `cppmill-worker`, and of `python -m cppmill`.

The packages of cppmill have common names, and a folder or file of the same name that Python finds first hides one of
them. This module, whose name is its own, checks that before it imports any of them.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

PACKAGES = ("configs", "pipelines", "schemas", "tokenizer_build", "transforms")

_USAGE_ERROR = 2


def main() -> None:
    """Run the command line."""
    check_packages()
    from pipelines.cli.app import main as run

    run()


def worker() -> None:
    """Run a worker process."""
    check_packages()
    from pipelines.engines.worker import main as run

    run()


def check_packages() -> None:
    """End the program with one line if another file would be imported in place of a package of cppmill.

    Raises:
        SystemExit: With exit code 2.
    """
    for name in PACKAGES:
        ours = Path(__file__).resolve().parent / name / "__init__.py"
        spec = find_spec(name)
        found = Path(spec.origin).resolve() if spec is not None and spec.origin else None
        if found != ours:
            sys.stderr.write(f"error: {_describe(name, found, ours)}\n")
            raise SystemExit(_USAGE_ERROR)


def _describe(name: str, found: Path | None, ours: Path) -> str:
    """Return which file is in the way, and what to do about it."""
    if found is None:
        return f"{ours}: the package {name} of cppmill cannot be imported; install cppmill again"
    folder = (found.parent if found.name == "__init__.py" else found).parent
    return (
        f"{found}: Python imports this as {name!r} in place of the package of cppmill in {ours.parent}; rename it, "
        f"start from a folder other than {folder}, or take that folder out of PYTHONPATH"
    )


if __name__ == "__main__":
    main()
