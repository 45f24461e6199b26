"""The command that a schedule calls; the program is imported late."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from configs.flags import SET
from configs.tables import STORE_FLAGS
from pipelines.cli import arguments as args
from pipelines.cli.help import EXIT_CODES, help_text
from pipelines.cli.options import BeamCommand, with_flags
from pipelines.console.console import Output, command_session
from schemas.errors import ExitCode

if TYPE_CHECKING:
    from pipelines.versions.retokenize import Retokenization

commands = typer.Typer()

RETOKENIZE_CODES = f"{EXIT_CODES} 10 nothing to do, 11 another run is at work in the store."


@with_flags(STORE_FLAGS)
def retokenize(
    flags: dict[str, object],
    config: args.Config = None,
    set_values: args.SetValues = None,
    keep: Annotated[
        int, typer.Option("--keep", metavar="N", min=1, help="Keep so many versions, the current one included.")
    ] = 3,
    quiet: args.Quiet = False,
    as_json: args.Json = False,
    verbose: args.Verbose = False,
) -> None:
    """Make a new version of a dataset of what changed.

    Only changed units of the sources run, with the tokenizer of the previous version, so that no id moves; the rest is
    shared with it. STORE/current always names the newest complete version, and moves when the new one is proved.
    Options that are not given are those of the previous version. The first version builds a tokenizer, of --profile and
    --vocab-size, or takes --tokenizer.

    Exit code 0: there is a new version. 10: there was nothing to do. 11: another run is at work in the store.

    Examples:
      cppmill retokenize ~/src --store /data/cpp
      cppmill retokenize ~/src --store s3://bucket/cpp --tokenizer release/tokenizer --keep 5 --json
    """
    output = Output(quiet=quiet, as_json=as_json, verbose=verbose)
    with command_session(output) as reporter:
        from pipelines.versions.retokenize import Request, retokenize

        _print_outcome(retokenize(Request(file=config, flags={**flags, SET: set_values}, keep=keep), reporter), output)


commands.command("retokenize", help=help_text(retokenize), epilog=RETOKENIZE_CODES, cls=BeamCommand)(retokenize)


def _print_outcome(outcome: Retokenization, output: Output) -> None:
    """Print what changed: one JSON object, or a table.

    Raises:
        SystemExit: With exit code 10 if there was nothing to do.
    """
    from pipelines.versions.changes import describe_changes

    if output.as_json:
        typer.echo(json.dumps({"event": "retokenized", **outcome.to_json()}))
    elif not output.quiet:
        typer.echo(f"{outcome.summary}: {outcome.place}")
        for line in describe_changes(outcome.changes) if outcome.changes else ():
            typer.echo(line)
        if outcome.removed:
            typer.echo(f"removed    {', '.join(outcome.removed)}")
    if outcome.changes is None:
        raise SystemExit(int(ExitCode.NOTHING_TO_DO))
