"""The command that shows a finished run on a page: it turns arguments into a call of `pipelines.report.program`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pipelines.cli import arguments as args
from pipelines.cli.help import described
from pipelines.console.console import Output, command_session

commands = typer.Typer()


@described(commands)
def report(
    out: args.RunFolder,
    page: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="The HTML file to write, outside of OUT.  [default: OUT's name and -report.html, in this folder]",
        ),
    ] = None,
    compare: Annotated[
        Path | None,
        typer.Option("--compare", metavar="FILE", help="Show other tokenizers too: what `compare --json` printed."),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option("--threads", metavar="N", min=1, help="Shards read at once.  [default: the CPUs it may use]"),
    ] = None,
    verbose: args.Verbose = False,
) -> None:
    """Show a finished run on one HTML page.

    What went in and came out, the vocabulary and what is used of it, compression by project, lengths, decisions with
    their reasons, the receipt. From the run's files alone; the page opens from disk and fetches nothing.

    Examples:
      cppmill report llvm
      cppmill report s3://bucket/llvm --out llvm.html --compare peers.jsonl
    """
    with command_session(Output(verbose=verbose), advice="nothing was changed"):
        from configs.execution import usable_threads
        from pipelines.report.program import default_page, write_report

        typer.echo(write_report(out, page or default_page(out), compare=compare, threads=threads or usable_threads()))
