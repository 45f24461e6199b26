"""`cppmill lengths` and `cppmill sequences`: they turn arguments into calls of programs, which are imported late."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from configs.tables import SEQUENCE_FLAGS
from pipelines.cli import arguments as args
from pipelines.cli.help import described
from pipelines.cli.options import BeamCommand, with_flags
from pipelines.console.console import Output, command_session

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
    """Print how long a run's documents are, in tokens.

    Also prints, for each sequence length from 512 to 131,072, which share of documents and tokens is kept if longer
    documents are dropped or cut, and which share of padded sequences would be tokens.

    Example:
      cppmill lengths llvm --plot lengths.svg
    """
    with command_session(Output(as_json=as_json), advice="nothing was changed"):
        from pipelines.exports.lengths import check_plot, plot_lengths, print_lengths, read_lengths

        if plot is not None:
            check_plot(plot)
        found = read_lengths(out)
        print_lengths(found, as_json=as_json)
        if plot is not None:
            plot_lengths(found, plot)


@described(commands, cls=BeamCommand)
@with_flags(SEQUENCE_FLAGS)
def sequences(
    run: args.FinishedRun,
    flags: dict[str, object],
    mixture: Annotated[
        Path | None, typer.Option("--mixture", metavar="FILE", help="TOML file of weights by project.")
    ] = None,
    quiet: args.Quiet = False,
    as_json: args.Json = False,
    verbose: args.Verbose = False,
) -> None:
    """Make sequences of one length from a run, packed or padded.

    With document ids, boundaries and a loss mask that never trains across documents. Every document of the run is in
    sequences, or counted with the reason. The written files are read back and compared before they count; a second
    call does only what is missing.

    Examples:
      cppmill sequences llvm --out llvm-8k --length 8192
      cppmill sequences llvm --out llvm-fim --length 4096 --fim 0.5 --mixture weights.toml
      cppmill sequences llvm --out llvm-repositories --length 131072 --repositories
    """
    with command_session(Output(quiet=quiet, as_json=as_json, verbose=verbose)) as reporter:
        from pipelines.exports import sequences

        sequences.run(sequences.load_config(run, flags=flags, mixture=mixture), reporter)
