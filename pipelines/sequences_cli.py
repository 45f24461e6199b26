"""`cppmill lengths` and `cppmill sequences`: they turn arguments into calls of programs, which are imported late."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pipelines import arguments as args
from pipelines.console import Output, command_session
from pipelines.described import described

commands = typer.Typer()


@described(commands)
def lengths(
    out: args.RunFolder,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE", help="Draw it too: FILE.svg, .png or .pdf; needs cppmill[plots]."),
    ] = None,
    as_json: args.Json = False,
) -> None:
    """Tell how long a run's documents are, in tokens.

    And what of documents and tokens is kept at each sequence length from 512 to 131,072, if longer documents are
    dropped and if they are cut, and how much of padded sequences would be tokens.

    Example:
      cppmill lengths llvm --plot lengths.svg
    """
    with command_session(Output(as_json=as_json), advice="nothing was changed"):
        from pipelines.lengths import check_plot, plot_lengths, print_lengths, read_lengths

        if plot is not None:
            check_plot(plot)
        found = read_lengths(out)
        print_lengths(found, as_json=as_json)
        if plot is not None:
            plot_lengths(found, plot)
