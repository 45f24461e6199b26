"""The command `provenance`: it turns arguments into a call of `pipelines.publish.provenance`, imported late."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pipelines.cli import arguments as args
from pipelines.cli.help import described
from pipelines.console.console import Output, command_session

commands = typer.Typer()


@described(commands)
def provenance(
    out: args.RunFolder,
    folder: Annotated[
        Path, typer.Option("--out", metavar="DIR", file_okay=False, help="Folder to write, outside of the run's.")
    ],
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="What the dataset is called.  [default: OUT's own name]"),
    ] = None,
    url: Annotated[str | None, typer.Option("--url", metavar="URL", help="Where it will be published.")] = None,
    creator: Annotated[str | None, typer.Option("--creator", metavar="NAME", help="Who made it.")] = None,
    date: Annotated[str | None, typer.Option("--date", metavar="YYYY-MM-DD", help="Its day of publication.")] = None,
    builder: Annotated[
        str | None,
        typer.Option("--builder", metavar="URI", help="Who carried out the run.  [default: urn:cppmill:builder]"),
    ] = None,
) -> None:
    """Write a run's receipt as in-toto statement, Croissant file and dataset card.

    From the receipt, the tokenizer's manifest and the licences of the documents, with links to the shards, so that
    `datasets.load_dataset(DIR)` reads them. The same arguments give the same bytes; nothing is signed or sent.

    Example:
      cppmill provenance llvm --out llvm-card --name llvm-tokens --date 2026-11-30
    """
    with command_session(Output(), advice="repeat the command to write all of it"):
        from pipelines.publish.provenance import default_name, write_provenance
        from transforms.records.croissant import Publication
        from transforms.records.in_toto import BUILDER

        publication = Publication(name=name or default_name(out), url=url, creator=creator, date=date)
        for line in write_provenance(out, folder, publication, builder=builder or BUILDER):
            typer.echo(line)
