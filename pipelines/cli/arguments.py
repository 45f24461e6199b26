"""The arguments that commands share and that no model declares."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from configs.flags import SET_HELP
from pipelines.cli.options import as_typed
from pipelines.console.console import exit_on_error
from schemas.places import is_remote


def run_folder(value: str) -> str:
    """Return the folder of a run as it was typed, if there is one; the command itself looks at a URL.

    `URL/current` of a store of versions is followed: on an object store the pointer is an object that names the folder.
    """
    if is_remote(value):
        return _follow_current(value)
    if not Path(value).is_dir():
        raise typer.BadParameter(f"{value}: no such folder; it takes the folder of a finished run, or its URL")
    return value


def _follow_current(url: str) -> str:
    """Return what `STORE/current` names, a URL as it is if it is no such pointer."""
    store, _, name = url.rstrip("/").rpartition("/")
    if name != "current":
        return url
    with exit_on_error():
        from transforms.records.versions import Versions

        versions = Versions(store)
        current = versions.current
        return url if current is None else versions.out(current).root


RunFolder = Annotated[
    str,
    typer.Argument(
        metavar="OUT", parser=run_folder, help="The folder of a finished run; s3://BUCKET/PREFIX works too."
    ),
]

FinishedRun = Annotated[
    str,
    typer.Argument(metavar="RUN", parser=run_folder, help="A finished run; s3://BUCKET/PREFIX works too."),
]

Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="TOML file with the tables [run], [ingest], [scan], [build], [tokenize]; flags win over it.",
    ),
]

SetValues = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="TABLE.KEY=VALUE", parser=as_typed, help=SET_HELP),
]

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]

Json = Annotated[bool, typer.Option("--json", help="One JSON object per line on standard output, for programs.")]

Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Show the logs of the libraries too.")]

Tokenizer = Annotated[Path, typer.Option("--tokenizer", metavar="DIR", help="Tokenizer directory, as OUT/tokenizer.")]
