"""Commands that make training data from a run. They turn arguments into calls of `pipelines.exports`, imported late."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from configs.tables import SEQUENCE_FLAGS, SHARD_FLAGS
from pipelines.cli import arguments as args
from pipelines.cli.groups import Group
from pipelines.cli.options import BeamCommand, described, with_flags
from pipelines.console.console import Output, command_session
from schemas.places import is_remote

commands = typer.Typer()


def _folder_here(value: str) -> Path:
    """Return a folder of this machine."""
    if is_remote(value):
        raise typer.BadParameter(f"{value}: training programs read a folder of their machine; copy it there first")
    return Path(value)


@described(commands, under=Group.LOOK)
def lengths(
    run: args.RunFolder,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE", help="Also draw a plot: FILE.svg, .png or .pdf; needs cppmill[plots]."),
    ] = None,
    as_json: args.Json = False,
) -> None:
    """Print how long a run's documents are, in tokens.

    Also prints for each sequence length from 512 to 131,072: the share of documents and tokens that is kept if longer
    documents are dropped or cut, and the share of positions in padded sequences that are tokens.

    Example:
      cppmill lengths llvm --plot lengths.svg
    """
    with command_session(Output(as_json=as_json), advice="nothing was changed"):
        from pipelines.exports.lengths import plot_lengths, print_lengths, read_lengths
        from pipelines.pages.figures import check_plot

        if plot is not None:
            check_plot(plot)
        found = read_lengths(run)
        print_lengths(found, as_json=as_json)
        if plot is not None:
            plot_lengths(found, plot)


@described(commands, under=Group.EXPORT, cls=BeamCommand)
@with_flags(SEQUENCE_FLAGS)
def sequences(
    run: args.RunFolder,
    flags: dict[str, object],
    mixture: Annotated[
        Path | None, typer.Option("--mixture", metavar="FILE", help="TOML file of weights by project.")
    ] = None,
    quiet: args.Quiet = False,
    as_json: args.Json = False,
    verbose: args.Verbose = False,
) -> None:
    """Make sequences of one length from a run, packed or padded.

    Sequences have document ids, boundaries, and a loss mask that never trains across documents. Every document of the
    run is either in sequences or counted with the reason why not. The files are read back and compared before they are
    published. A second call does only what is missing.

    Examples:
      cppmill sequences llvm --out llvm-8k --length 8192
      cppmill sequences llvm --out llvm-fim --length 4096 --fim 0.5 --mixture weights.toml
      cppmill sequences llvm --out llvm-repositories --length 131072 --repositories
    """
    with command_session(Output(quiet=quiet, as_json=as_json, verbose=verbose)) as reporter:
        from pipelines.exports import sequences

        sequences.run(sequences.load_config(run, flags=flags, mixture=mixture), reporter)


@described(commands, under=Group.EXPORT, cls=BeamCommand)
@with_flags(SHARD_FLAGS)
def shards(
    run: args.RunFolder,
    flags: dict[str, object],
    quiet: args.Quiet = False,
    as_json: args.Json = False,
    verbose: args.Verbose = False,
) -> None:
    """Write files for training programs: .bin or Megatron pairs.

    Reads the token shards of a finished run. The hash of the project or document decides whether it is in train or
    val, and this never changes. The folder has a manifest that `cppmill verify` checks. A second call does only what is
    missing.

    Examples:
      cppmill shards llvm --out llvm-bin --validation-fraction 0.05
      cppmill shards llvm --out llvm-megatron --format megatron --split-by document
    """
    with command_session(Output(quiet=quiet, as_json=as_json, verbose=verbose)) as reporter:
        from configs.exports import load_export_config
        from pipelines.exports import shards
        from schemas.export_options import ShardOptions

        shards.run(load_export_config(ShardOptions, run=run, values=flags, flags=SHARD_FLAGS), reporter)


@described(commands, under=Group.EXPORT)
def byte_tables(
    tokenizer: Annotated[
        Path,
        typer.Option(
            "--tokenizer",
            metavar="DIR",
            parser=args.local_tokenizer,
            help="Tokenizer directory, SentencePiece model or tokenizer.json, or its URL.",
        ),
    ],
    file: Annotated[Path, typer.Option("--out", metavar="FILE.npz", help="File to write.")],
    check: Annotated[
        str | None,
        typer.Option(
            "--check",
            metavar="RUN",
            parser=args.run_folder,
            help="A finished run with this tokenizer: compare the bytes of every document with the tables.",
        ),
    ] = None,
) -> None:
    """Write the bytes of each token, for bits per byte.

    With them, a loss per token becomes bits per byte. The file has base_bytes, has_leading_space and is_boundary, as
    `cppmill_core.byte_tables` reads them, and the tokenizer's digest. If --check finds a document with another number
    of bytes, nothing is written and the exit code is 1.

    Examples:
      cppmill byte-tables --tokenizer llvm/tokenizer --out llvm.npz --check llvm
      cppmill byte-tables --tokenizer published.model --out published.npz
    """
    with command_session(Output(), advice="nothing was changed"):
        from pipelines.exports.byte_tables import write_byte_tables

        for line in write_byte_tables(tokenizer, file, run=check):
            typer.echo(line)


@described(commands, under=Group.EXPORT)
def flags(
    tokenizer: Annotated[
        Path,
        typer.Option(
            "--tokenizer",
            metavar="DIR",
            parser=_folder_here,
            help="Tokenizer directory on this machine.",
        ),
    ],
    project: Annotated[str, typer.Option("--for", metavar="NAME", help="megatron, nanogpt or transformers.")],
    divisible_by: Annotated[
        int, typer.Option("--divisible-by", metavar="N", help="Pad each rank's embedding to a multiple of N rows.")
    ] = 128,
    tensor_parallel: Annotated[
        int, typer.Option("--tensor-parallel", metavar="N", help="Number of ranks that share an embedding.")
    ] = 1,
    dtype: Annotated[
        str, typer.Option("--dtype", metavar="NAME", help="Type of the model: bfloat16, float16 or float32.")
    ] = "bfloat16",
    as_json: args.Json = False,
) -> None:
    """Print the flags that set a tokenizer in a training command.

    The flags give its path, its vocabulary size, the padded size, and types, as the training program names them. They
    go to the output stream, so that you can insert them into a command. Notes go to the error stream.

    Examples:
      cppmill flags --for megatron --tokenizer llvm/tokenizer --tensor-parallel 8
      torchrun pretrain_gpt.py $(cppmill flags --for megatron --tokenizer llvm/tokenizer) ...
    """
    with command_session(Output(as_json=as_json), advice="nothing was changed"):
        from pipelines.exports.flags import describe, describe_notes, make_flags

        found = make_flags(project, tokenizer, divisible_by=divisible_by, tensor_parallel=tensor_parallel, dtype=dtype)
        if as_json:
            typer.echo(json.dumps(describe(*found)))
            return
        typer.echo(" ".join(found[1].arguments))
        for note in describe_notes(*found):
            typer.echo(f"# {note}", err=True)


@described(commands, under=Group.LOOK)
def trace(
    data: Annotated[
        str,
        typer.Option(
            "--data",
            metavar="RUN|SEQUENCES",
            parser=args.run_folder,
            help="What the training read: a finished run, or an export of sequences; may be a URL.",
        ),
    ],
    checkpoint: Annotated[
        Path | None,
        typer.Argument(
            metavar="[CHECKPOINT]",
            exists=True,
            help="A checkpoint with the position of the loader: stamped, JSON, or saved by torch.",
        ),
    ] = None,
    run: Annotated[
        str | None,
        typer.Option(
            "--run", metavar="RUN", parser=args.run_folder, help="For sequences: the run that they were made from."
        ),
    ] = None,
    until: Annotated[
        bool, typer.Option("--until", help="Everything up to the checkpoint, not only the last step.")
    ] = False,
    step: Annotated[
        int | None,
        typer.Option(
            "--step", metavar="N", min=0, help="This step, counted from 0 over all epochs, or within --epoch."
        ),
    ] = None,
    epoch: Annotated[
        int | None, typer.Option("--epoch", metavar="N", min=0, help="The epoch of --step, from 0.")
    ] = None,
    rank: Annotated[int | None, typer.Option("--rank", metavar="R", help="Only what this rank read.")] = None,
    ranks: Annotated[
        int | None,
        typer.Option("--ranks", metavar="N", min=1, help="Without a checkpoint: number of ranks.  [default: 1]"),
    ] = None,
    batch_rows: Annotated[
        int | None,
        typer.Option(
            "--batch-rows", metavar="N", min=1, help="Without a checkpoint: rows per step and rank.  [default: 1]"
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", metavar="N", help="Without a checkpoint: seed of the loader.  [default: 0]")
    ] = None,
    streams: Annotated[
        int | None,
        typer.Option(
            "--streams", metavar="N", min=1, help="Without a checkpoint: streams of the loader.  [default: 16]"
        ),
    ] = None,
    in_order: Annotated[
        bool, typer.Option("--no-shuffle", help="Without a checkpoint: the loader did not shuffle.")
    ] = False,
    drop_last: Annotated[
        bool, typer.Option("--drop-last", help="Without a checkpoint: the loader left out incomplete steps.")
    ] = False,
    as_json: args.Json = False,
) -> None:
    """Name the documents that a training consumed.

    Prints their bytes, licences and place in the run. Names those of the last step before a checkpoint, of any other
    step, or of all steps up to the checkpoint. The order of the loader is computed again, so training need not log
    anything. If the dataset is not the one of the checkpoint, the command refuses.

    Examples:
      cppmill trace checkpoint.pt --data llvm
      cppmill trace checkpoint.pt --data llvm-8k --run llvm --until --json
      cppmill trace --data llvm --step 1000 --rank 3 --ranks 8 --batch-rows 16 --seed 1
    """
    with command_session(Output(as_json=as_json), advice="nothing was changed"):
        from pipelines.exports import trace as program
        from pipelines.exports.traced_rows import TracedRows

        rows = TracedRows(data, run)
        given = program.GivenOrder(ranks, batch_rows, seed, streams, in_order, drop_last)
        order = program.find_order(checkpoint, given, rows, data=data)
        found = program.trace(rows, order, step=step, epoch=epoch, until=until, rank=rank)
        for line in program.trace_lines(rows, order, found, as_json=as_json, every=not until):
            typer.echo(line)
