"""The commands that compare tokenizers: they turn arguments into calls of programs, which are imported late."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pipelines.cli import arguments as args
from pipelines.cli.help import described
from pipelines.cli.options import as_typed
from pipelines.console.console import Output, command_session

commands = typer.Typer()

On = Annotated[
    list[str],
    typer.Option(
        "--on",
        metavar="SOURCE",
        parser=as_typed,
        help="Text to measure on: the folder of a run, or sources as `run` takes them; may be given again.",
    ),
]

Share = Annotated[
    float, typer.Option("--sample", metavar="FRACTION", min=0, max=1, help="Take this share, chosen by path.")
]

ThreadNumber = Annotated[
    int | None,
    typer.Option("--threads", metavar="N", min=1, help="Threads that encode.  [default: the CPUs that it may use]"),
]


@described(commands)
def compare(
    tokenizers: Annotated[
        list[str],
        typer.Argument(
            metavar="TOKENIZER",
            parser=as_typed,
            help="Tokenizer directory, folder with a tokenizer.json, SentencePiece .model, or .tiktoken ranks (.gz); "
            "NAME=PATH names it in the tables.",
        ),
    ],
    on: On,
    pattern: Annotated[
        str | None,
        typer.Option(
            "--pattern",
            metavar="NAME|REGEX",
            help="Pattern of ranks: of a published vocabulary, such as cl100k_base, or a regular expression.  "
            "[default: by the name of the file]",
        ),
    ] = None,
    corpus_bytes: Annotated[
        str, typer.Option("--corpus-bytes", metavar="SIZE", help="Size of the corpus whose encoding time is estimated.")
    ] = "1TB",
    sample: Share = 1.0,
    threads: ThreadNumber = None,
    as_json: args.Json = False,
    verbose: args.Verbose = False,
) -> None:
    """Compare tokenizers on the same text.

    Bytes per token by project, the share of each band, documents that do not decode to themselves, speed and the time
    that a corpus would take, tokens per identifier, unused tokens, token lengths, longest tokens. Each tokenizer is run
    by the library that it is made for. With --verbose every project has a row.

    Examples:
      cppmill compare llvm/tokenizer codellama/ o200k_base.tiktoken.gz --on held-out/
      cppmill compare old=a/tokenizer new=b/tokenizer --on llvm --sample 0.1 --json
    """
    with command_session(Output(as_json=as_json, verbose=verbose), advice="nothing was changed"):
        from configs.execution import usable_threads
        from pipelines.tokenizers import compare as program

        num_bytes = program.parse_size(corpus_bytes)
        found = program.compare(tokenizers, on, pattern=pattern, sample=sample, threads=threads or usable_threads())
        lines = program.comparison_lines(found, corpus_bytes=num_bytes, as_json=as_json, every_project=verbose)
        for line in lines:
            typer.echo(line)


@described(commands)
def sweep(
    run: args.RunFolder,
    sizes: Annotated[str, typer.Option("--sizes", metavar="N,N", help="Numbers of ids.")],
    on: On,
    models: Annotated[
        str, typer.Option("--models", metavar="WIDTHxLAYERS,", help="Transformers whose cost is estimated.")
    ] = "768x12,2048x24,4096x32",
    plot: Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="Draw it: .svg, .png or .pdf.")] = None,
    sample: Share = 1.0,
    threads: ThreadNumber = None,
    quiet: args.Quiet = False,
    as_json: args.Json = False,
    verbose: args.Verbose = False,
) -> None:
    """Estimate what vocabularies of several sizes would give, and cost.

    Builds one of each size from the counts of OUT, in a temporary folder, and encodes a text that should be held out:
    bytes per token, and for models of some shapes the parameters of the embedding and the work to train on that text.

    Example:
      cppmill sweep llvm --sizes 16384,32768,65536 --on held-out/
    """
    with command_session(
        Output(quiet=quiet, as_json=as_json, verbose=verbose), advice="nothing was changed"
    ) as reporter:
        from configs.execution import usable_threads
        from pipelines.exports.lengths import check_plot
        from pipelines.tokenizers import sweep as program
        from tokenizer_build.compare.costs import parse_models

        shapes = parse_models(models, argument="--models")
        if plot is not None:
            check_plot(plot)
        found = program.sweep(
            run, program.parse_sizes(sizes), on, sample=sample, threads=threads or usable_threads(), reporter=reporter
        )
        for line in program.sweep_lines(found, shapes, as_json=as_json):
            typer.echo(line)
        if plot is not None:
            program.plot_sweep(found, shapes, plot)
