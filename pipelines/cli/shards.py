"""The command `cppmill shards`."""

from __future__ import annotations

import typer

from configs.tables import SHARD_FLAGS
from pipelines.cli import arguments as args
from pipelines.cli.help import described
from pipelines.cli.options import BeamCommand, with_flags
from pipelines.console.console import Output, command_session

commands = typer.Typer()


@described(commands, cls=BeamCommand)
@with_flags(SHARD_FLAGS)
def shards(
    run: args.FinishedRun,
    flags: dict[str, object],
    quiet: args.Quiet = False,
    as_json: args.Json = False,
    verbose: args.Verbose = False,
) -> None:
    """Write the files that training programs read: .bin shards or Megatron pairs.

    From the token shards of a finished run, split into train and val by the hash of the project or document, for good.
    The folder has a manifest that `cppmill verify` proves again. A second call does only what is missing.

    Examples:
      cppmill shards llvm --out llvm-bin --validation-fraction 0.05
      cppmill shards llvm --out llvm-megatron --format megatron --split-by document
    """
    with command_session(Output(quiet=quiet, as_json=as_json, verbose=verbose)) as reporter:
        from configs.exports import load_export_config
        from pipelines.exports import shards
        from schemas.export_options import ShardOptions

        shards.run(load_export_config(ShardOptions, run=run, values=flags, flags=SHARD_FLAGS), reporter)
