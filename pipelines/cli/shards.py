"""The command `cppmill shards`."""

from __future__ import annotations

from typing import Annotated

import typer

from pipelines.cli import arguments as args
from pipelines.cli.help import described
from pipelines.console.console import Output, command_session

commands = typer.Typer()


@described(commands, cls=args.BeamCommand)
def shards(
    context: typer.Context,
    run: args.FinishedRun,
    out: args.ExportFolder,
    format_: Annotated[
        str | None, typer.Option("--format", metavar="NAME", help="bin or megatron.  [default: bin]")
    ] = None,
    split_by: Annotated[
        str | None,
        typer.Option(
            "--split-by", metavar="WHAT", help="What stays in one split: project or document.  [default: project]"
        ),
    ] = None,
    validation_fraction: Annotated[
        str | None,
        typer.Option("--validation-fraction", metavar="F", help="Share of them, by hash of the name.  [default: 0.01]"),
    ] = None,
    bos: Annotated[
        str | None,
        typer.Option(
            "--bos",
            metavar="POLICY",
            help="document: BOS before each document and nothing behind it; dataset: as in the run; none: text alone.  "
            "[default: document; dataset with --format megatron]",
        ),
    ] = None,
    shard_tokens: Annotated[
        str | None,
        typer.Option(
            "--shard-tokens",
            metavar="N",
            help="Tokens of a file.  [default: 100,000,000; 1,000,000,000 with --format megatron]",
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="Files begin with it: NAME_train_000000.bin  [default: cpp]"),
    ] = None,
    threads: args.Threads = None,
    engine: args.Engine = None,
    quiet: args.Quiet = False,
    as_json: args.Json = False,
    verbose: args.Verbose = False,
) -> None:
    """Write the files that training programs read: .bin shards or Megatron pairs.

    From the token shards of a finished run, split into train and val by the hash of the project or document, for ever.
    The folder has a manifest that `cppmill verify` proves again. A second call does only what is missing.

    Examples:
      cppmill shards llvm --out llvm-bin --validation-fraction 0.05
      cppmill shards llvm --out llvm-megatron --format megatron --split-by document
    """
    flags: dict[str, object] = {
        "--out": out,
        "--format": format_,
        "--split-by": split_by,
        "--validation-fraction": validation_fraction,
        "--bos": bos,
        "--shard-tokens": shard_tokens,
        "--name": name,
        "--threads": threads,
        "--engine": engine,
        "--": args.beam_options(context),
    }
    with command_session(Output(quiet=quiet, as_json=as_json, verbose=verbose)) as reporter:
        from configs.exports import load_export_config
        from pipelines.exports import shards
        from schemas.export_options import ShardOptions

        shards.run(load_export_config(ShardOptions, run=run, flags=flags, option_flags=shards.OPTION_FLAGS), reporter)
