"""The command `status`; the program is imported late."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from pipelines.cli import arguments as args
from pipelines.cli.help import described
from pipelines.console.console import exit_on_error
from schemas.errors import ExitCode
from schemas.places import is_remote

commands = typer.Typer()


def _begun_folder(value: str) -> str:
    """Return the folder of a run as it was typed, if something has begun there."""
    if not is_remote(value) and not Path(value).is_dir():
        raise typer.BadParameter(f"{value}: no such folder; nothing has run there yet")
    return args.run_folder(value)


@described(commands)
def status(
    out: Annotated[
        str,
        typer.Argument(
            metavar="OUT",
            parser=_begun_folder,
            help="The folder of a run, of an export, or of versions; s3://BUCKET/PREFIX works too.",
        ),
    ],
    events: Annotated[int, typer.Option("--events", metavar="N", min=0, help="Print the last N events.")] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, for programs.")] = False,
) -> None:
    """Print how far the run in OUT is, or how the last one ended.

    From another process or machine, while it runs and afterwards: stages, units, rate, time left, who holds the lock.
    For a store of `retokenize`: the version that is being made, otherwise the current one. Exit code 0 if it runs or
    ended well, 1 if it failed, was stopped or died.

    Examples:
      cppmill status llvm
      watch cppmill status llvm
    """
    with exit_on_error():
        from pipelines.console.status import RunStatus, read_any_status
        from pipelines.console.status_lines import describe_status, describe_store

        found = read_any_status(out, events=events)
        lines = describe_status(found) if isinstance(found, RunStatus) else describe_store(found)
        for line in [json.dumps(found.to_json())] if as_json else lines:
            typer.echo(line)
        if not found.is_well:
            raise SystemExit(int(ExitCode.FAILED_CHECK))
