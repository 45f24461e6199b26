"""How the command of a benchmark begins and ends: a temporary folder, rows in a file, a table, an exit code."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import typer

from benches.lib.harness import Comparison, show, write_rows
from pipelines.console.console import Output, command_session
from pipelines.console.progress import Reporter
from schemas.errors import ExitCode

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Row = TypeVar("Row", bound="DataclassInstance")


@contextmanager
def bench_session(*, advice: str = "nothing was kept") -> Iterator[tuple[Reporter, Path]]:
    """Run the body of a command, with where progress goes and a temporary folder (TMPDIR says where).

    Args:
        advice: What to tell a user who stops it.
    """
    with (
        command_session(Output(), advice=advice) as reporter,
        tempfile.TemporaryDirectory(prefix="cppmill-bench-") as work,
    ):
        yield reporter, Path(work)


def conclude(heading: str, comparisons: list[Comparison], json_file: Path | None = None) -> None:
    """Write the rows to a file, if there is one, and print the table.

    Raises:
        typer.Exit: With exit code 1 if a result differs.
    """
    if json_file is not None:
        write_rows(json_file, comparisons)
    show(heading, comparisons)
    if any(comparison.different for comparison in comparisons):
        raise typer.Exit(ExitCode.FAILED_CHECK)


def keep_rows(rows: Iterable[Row], json_file: Path | None) -> list[Row]:
    """Return all rows, each appended to a file as JSON, if there is one, so that it is kept if a later one fails."""
    kept = []
    for row in rows:
        kept.append(row)
        if json_file is not None:
            with json_file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(row)) + "\n")
    return kept
