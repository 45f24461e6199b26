"""The arguments that commands share and that no model declares."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from configs.flags import SET_HELP
from pipelines.cli.options import as_typed
from pipelines.console.console import exit_on_error
from schemas.places import is_remote
from schemas.printing import printable


def run_folder(value: str) -> str:
    """Return the folder of a finished run: the one that was typed, or the current version of a store.

    The command itself looks for a run at a URL.
    """
    place = known_folder(value)
    with exit_on_error():
        from transforms.records.versions import find_run

        return find_run(place)


def begun_folder(value: str) -> str:
    """Return the folder of a run or a store as it was typed, if there is one; `STORE/current` of a URL is followed."""
    place = known_folder(value, advice="nothing has run there yet")
    with exit_on_error():
        from transforms.records.versions import follow_current

        return follow_current(place)


def known_folder(value: str, *, advice: str = "it takes the folder of a finished run, or its URL") -> str:
    """Return a folder as it was typed, if there is one; that of a URL is looked at by the command."""
    if not is_remote(value) and not Path(value).is_dir():
        raise typer.BadParameter(f"{printable(value)}: no such folder; {advice}")
    return value


RunFolder = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        parser=run_folder,
        help="A finished run (the OUT of `cppmill run`), or a store (its current version); may be a URL.",
    ),
]

Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="TOML file with the tables [run], [ingest], [scan], [build], [tokenize]; flags override it.",
    ),
]

SetValues = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="TABLE.KEY=VALUE", parser=as_typed, help=SET_HELP),
]

SignedBy = Annotated[
    Path | None,
    typer.Option(
        "--signed-by",
        metavar="FILE",
        help="File of allowed signers, as for ssh-keygen; one of them must have signed the receipt.",
    ),
]

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors and warnings.")]

Json = Annotated[bool, typer.Option("--json", help="One JSON object per line on standard output, for programs.")]

OneJson = Annotated[bool, typer.Option("--json", help="One JSON object on standard output, for programs.")]

Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Also show the logs of libraries.")]

FullTables = Annotated[
    bool, typer.Option("--verbose", "-v", help="Print the tables in full, and show the logs of libraries.")
]


def names(text: str | None) -> list[str]:
    """Return the names in an argument with commas between them."""
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def local_tokenizer(value: str) -> Path:
    """Return the path of a tokenizer; one at a URL is copied to this machine for as long as the command runs."""
    if not is_remote(value):
        return Path(value)
    with exit_on_error():
        from pipelines.tokenizers.places import local_tokenizer

        return local_tokenizer(value)


Tokenizer = Annotated[
    Path,
    typer.Option(
        "--tokenizer",
        metavar="DIR",
        parser=local_tokenizer,
        help="Tokenizer directory, such as OUT/tokenizer; may be a URL (gs://, s3://).",
    ),
]
