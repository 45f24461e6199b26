"""The commands for training scripts: they turn arguments into calls of programs, which are imported late."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from pipelines.cli import arguments as args
from pipelines.cli.help import described
from pipelines.console.console import Output, command_session

commands = typer.Typer()


@described(commands)
def byte_tables(
    tokenizer: Annotated[
        Path,
        typer.Option("--tokenizer", metavar="DIR", help="Tokenizer directory, SentencePiece model or tokenizer.json."),
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
    """Write the bytes of each token, to compute bits per byte from a loss per token.

    base_bytes, has_leading_space and is_boundary, as `cppmill_core.byte_tables` reads them, with the tokenizer's
    digest. Exit code 1 if --check finds a document whose bytes they do not give; nothing is written then.

    Examples:
      cppmill byte-tables --tokenizer llvm/tokenizer --out llvm.npz --check llvm
      cppmill byte-tables --tokenizer published.model --out published.npz
    """
    with command_session(Output(), advice="nothing was changed"):
        from pipelines.exports.byte_tables import write_byte_tables

        for line in write_byte_tables(tokenizer, file, run=check):
            typer.echo(line)


@described(commands)
def flags(
    tokenizer: args.Tokenizer,
    project: Annotated[str, typer.Option("--for", metavar="NAME", help="megatron, nanogpt or transformers.")],
    divisible_by: Annotated[
        int, typer.Option("--divisible-by", metavar="N", help="Pad the rows of a rank's embedding to a multiple of N.")
    ] = 128,
    tensor_parallel: Annotated[
        int, typer.Option("--tensor-parallel", metavar="N", help="Ranks over which an embedding is cut.")
    ] = 1,
    dtype: Annotated[
        str, typer.Option("--dtype", metavar="NAME", help="Of the model: bfloat16, float16 or float32.")
    ] = "bfloat16",
    as_json: args.Json = False,
) -> None:
    """Print the flags that pin a tokenizer in a training command.

    Its path, its vocabulary size, the padded size, and types, by the names of the project's own parser. Flags go to the
    output stream, so that a command can take them; what no flag can say goes to the error stream.

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
