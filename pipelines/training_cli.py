"""The commands for training scripts: they turn arguments into calls of programs, which are imported late."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pipelines import arguments as args
from pipelines.console import Output, command_session
from pipelines.described import described

commands = typer.Typer()


@described(commands)
def byte_tables(
    tokenizer: Annotated[
        Path, typer.Option("--tokenizer", metavar="DIR", help="Tokenizer directory, or a SentencePiece .model file.")
    ],
    file: Annotated[Path, typer.Option("--out", metavar="FILE.npz", help="File to write.")],
    check: Annotated[
        str | None,
        typer.Option(
            "--check",
            metavar="OUT",
            parser=args.run_folder,
            help="A finished run with this tokenizer: compare the bytes of every document with the tables' count.",
        ),
    ] = None,
) -> None:
    """Write the bytes of each token, to tell bits per byte from a loss per token.

    base_bytes, has_leading_space and is_boundary, as `cppmill_core.byte_tables` reads them, with the tokenizer's
    digest. Exit code 1 if --check finds a document of which they do not give the bytes; then nothing is written.

    Examples:
      cppmill byte-tables --tokenizer llvm/tokenizer --out llvm.npz --check llvm
      cppmill byte-tables --tokenizer published.model --out published.npz
    """
    with command_session(Output(), advice="nothing was changed"):
        from pipelines.byte_tables import write_byte_tables

        for line in write_byte_tables(tokenizer, file, run=check):
            typer.echo(line)
