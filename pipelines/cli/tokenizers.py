"""Commands for tokenizers: arguments to calls of `pipelines.tokenizers`, which is imported late."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from configs.tables import TRIAL_FLAGS
from pipelines.cli import arguments as args
from pipelines.cli.groups import Group
from pipelines.cli.options import as_typed, described, with_flags
from pipelines.console.console import Output, command_session, exit_on_error
from schemas.options import MAX_JSON_INTEGER, HfTemplate

commands = typer.Typer()


@described(commands, under=Group.VOCABULARY)
def show(
    tokenizer: args.Tokenizer,
    file: Annotated[str, typer.Argument(metavar="[FILE|-]", help="File of any bytes; - is the standard input.")] = "-",
    ids: Annotated[bool, typer.Option("--ids", help="Print the id after each token.")] = False,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", dir_okay=False, help="Write an HTML page instead.")
    ] = None,
) -> None:
    """Print a source file with its tokens in colour.

    The colour of a token shows its band (a range of ids with one purpose). Names that are always a token of their own
    (atomic tokens) are bold. Without colours, a bar ends each token. The page
    opens from disk, and shows details of the token under the pointer.

    Examples:
      cppmill show --tokenizer llvm/tokenizer a.cpp
      cppmill show --tokenizer llvm/tokenizer a.cpp --html a.html
    """
    with exit_on_error():
        from pipelines.tokenizers.codec import read_input
        from pipelines.tokenizers.show import page_of_tokens, print_tokens

        data = read_input(file)
        if html is None:
            print_tokens(data, tokenizer, ids=ids)
        else:
            title = Path(file).name if file != "-" else "standard input"
            typer.echo(page_of_tokens(data, tokenizer, html, title=title))


@described(commands, under=Group.VOCABULARY)
def explain(
    tokenizer: args.Tokenizer,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The text.")],
    as_json: args.Json = False,
) -> None:
    """Print which merges made each token of a text.

    Prints the merges in the order in which they were applied. Each has its rank and where it was learned: from the
    fixed tokens (seed), from the words of the corpus, or from its lines (superwords).

    Example:
      cppmill explain --tokenizer llvm/tokenizer 'std::vector<int> v;'
    """
    with exit_on_error(Output(as_json=as_json, one_document=True)):
        from pipelines.tokenizers.show import explain_text

        for line in explain_text(text.encode("utf-8", "surrogateescape"), tokenizer, as_json=as_json):
            sys.stdout.write(line + "\n")


@described(commands, under=Group.VOCABULARY)
def adopt(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="SOURCE",
            help="A SentencePiece .model, a tokenizer.json, a folder with one of them, or the short name of a "
            "published tokenizer, such as qwen2.5; with --hf-template, a tokenizer directory.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The tokenizer directory to make.")],
    bos: Annotated[
        str | None, typer.Option("--bos", metavar="NAME", help="The control token that begins documents.")
    ] = None,
    eos: Annotated[
        str | None, typer.Option("--eos", metavar="NAME", help="The control token that ends documents.")
    ] = None,
    template: Annotated[
        HfTemplate | None,
        typer.Option("--hf-template", help="What tokenizers and transformers put around a text."),
    ] = None,
    allow_lossy: Annotated[
        bool,
        typer.Option(
            "--allow-lossy",
            help="Accept a SentencePiece model that loses text, and keep the normaliser NFC; runs count what is lost.",
        ),
    ] = False,
) -> None:
    """Make a tokenizer directory from another tokenizer.

    Takes a tokenizer of another program, or one of ours to give it another template.

    Copies the files unchanged, and writes a manifest that describes the ids. Accepts any SentencePiece model and
    byte-level BPE that can reproduce all text. Other tokenizers are refused with the reason, except SentencePiece
    models with --allow-lossy. The normaliser NFC is left out, except with --allow-lossy. BOS and EOS are those that the
    source names; --bos and --eos choose other control tokens. With --hf-template, it copies a tokenizer directory and
    changes only the template; all ids stay.

    Examples:
      cppmill adopt gemma/tokenizer.model --out gemma-tokenizer
      cppmill adopt qwen2.5 --out qwen-tokenizer
      cppmill adopt qwen2.5 --out qwen-nfc-tokenizer --allow-lossy
      cppmill adopt fineweb_1024_bpe.model --out fineweb-tokenizer --allow-lossy
      cppmill adopt starcoder --out starcoder-tokenizer --bos '<|endoftext|>'
      cppmill run ~/src --out out --tokenizer gemma-tokenizer
      cppmill adopt llvm/tokenizer --out llvm-prompts --hf-template bos
    """
    with command_session(Output(), advice="nothing was written"):
        from pipelines.tokenizers.adopt import adopt_tokenizer

        for line in adopt_tokenizer(source, out, bos=bos, eos=eos, template=template, allow_lossy=allow_lossy):
            typer.echo(line)


SOURCES = "the folder or URL of a run, or sources as for `run`; may be repeated."

On = Annotated[
    list[str],
    typer.Option("--on", metavar="SOURCE", parser=as_typed, help=f"Text to measure on: {SOURCES}"),
]

Share = Annotated[
    float,
    typer.Option(
        "--sample", metavar="FRACTION", min=0, max=1, help="Take this share of the documents, chosen by path."
    ),
]

ThreadNumber = Annotated[
    int | None,
    typer.Option(
        "--threads",
        metavar="N",
        min=1,
        max=MAX_JSON_INTEGER,
        help="Threads for encoding.  [default: the CPUs it may use]",
    ),
]


Tokenizers = Annotated[
    list[str],
    typer.Argument(
        metavar="TOKENIZER",
        parser=as_typed,
        help="Tokenizer directory, folder with a tokenizer.json, SentencePiece .model, or .tiktoken ranks (.gz); "
        "may be a URL. NAME=PATH gives it a name in the tables.",
    ),
]

Pattern = Annotated[
    str | None,
    typer.Option(
        "--pattern",
        metavar="NAME|REGEX",
        help="Pattern for .tiktoken ranks: the name of a published vocabulary, such as cl100k_base, or a regular "
        "expression.  [default: from the name of the file]",
    ),
]

Device = Literal["cpu", "cuda"]


@described(commands, under=Group.VOCABULARY)
def compare(
    tokenizers: Tokenizers,
    on: On,
    pattern: Pattern = None,
    corpus_bytes: Annotated[
        str, typer.Option("--corpus-bytes", metavar="SIZE", help="Estimate the time to encode a corpus of this size.")
    ] = "1TB",
    sample: Share = 1.0,
    threads: ThreadNumber = None,
    as_json: args.Json = False,
    verbose: args.FullTables = False,
) -> None:
    """Compare tokenizers on the same text.

    Prints bytes per token by project, the share of each band, documents that do not decode to the same bytes, speed and
    the time that a corpus would take, tokens per identifier, unused tokens, token lengths, and the longest tokens. Each
    tokenizer runs in the library that it is made for. With --verbose every project has a row.

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


@described(commands, under=Group.VOCABULARY)
def cursors(
    tokenizers: Annotated[
        list[str],
        typer.Argument(
            metavar="TOKENIZER",
            parser=as_typed,
            help="Tokenizer directory, or its URL. NAME=PATH gives it a name in the table.",
        ),
    ],
    on: On,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Decides where the cursors are.")] = 0,
    sample: Share = 1.0,
    threads: ThreadNumber = None,
    as_json: args.Json = False,
) -> None:
    """Measure how often an editor's cursor is between two tokens.

    Each document gets three cursors: anywhere, inside an identifier after one of its parts, and at the end of a line.
    For each kind, the table shows how often the complete text has a token border there; how often both sides, encoded
    separately, have the ids of the complete text; how many of the prompt's last ids differ; and how many last ids and
    bytes Tokenizer.stable_prefix drops.

    Example:
      cppmill cursors plain=a/tokenizer superwords=b/tokenizer --on held-out/ --sample 0.1
    """
    with command_session(Output(as_json=as_json), advice="nothing was changed"):
        from configs.execution import usable_threads
        from pipelines.tokenizers import cursors as program

        found = program.cursors(tokenizers, on, seed=seed, sample=sample, threads=threads or usable_threads())
        for line in program.cursor_lines(found, as_json=as_json):
            typer.echo(line)


@described(commands, under=Group.VOCABULARY)
def sweep(
    run: args.RunFolder,
    sizes: Annotated[str, typer.Option("--sizes", metavar="N,N", help="Numbers of ids.")],
    on: On,
    models: Annotated[
        str, typer.Option("--models", metavar="WIDTHxLAYERS,", help="Shapes of transformers, to estimate their cost.")
    ] = "768x12,2048x24,4096x32",
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Also draw a plot: .svg, .png or .pdf.")
    ] = None,
    sample: Share = 1.0,
    threads: ThreadNumber = None,
    quiet: args.Quiet = False,
    as_json: args.Json = False,
    verbose: args.Verbose = False,
) -> None:
    """Estimate what other vocabulary sizes would gain and cost.

    Builds a tokenizer of each size from the counts of RUN, in a temporary folder, and encodes a text, which should be
    held out. Prints bytes per token, and for models of several shapes the parameters of the embedding and the
    operations that training on this text takes.

    Example:
      cppmill sweep llvm --sizes 16384,32768,65536 --on held-out/
    """
    with command_session(
        Output(quiet=quiet, as_json=as_json, verbose=verbose), advice="nothing was changed"
    ) as reporter:
        from configs.execution import usable_threads
        from pipelines.pages.figures import check_plot
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


@described(commands, under=Group.VOCABULARY)
@with_flags(TRIAL_FLAGS)
def trial(
    tokenizers: Tokenizers,
    flags: dict[str, object],
    on: Annotated[
        list[str],
        typer.Option("--on", metavar="SOURCE", parser=as_typed, help=f"Text to train on: {SOURCES}"),
    ],
    held_out: Annotated[
        list[str],
        typer.Option(
            "--held-out", metavar="SOURCE", parser=as_typed, help="Text to measure on, in the same form as --on."
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Folder of the trial. A trial that was stopped there resumes.")
    ],
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget",
            metavar="TIME",
            help="How long the trial may take on this machine, such as 20m. More time means more training.",
        ),
    ] = None,
    flops: Annotated[
        float | None,
        typer.Option(
            "--flops", metavar="N", min=1, help="Instead of --budget: operations per training, to repeat a trial."
        ),
    ] = None,
    pattern: Pattern = None,
    device: Annotated[
        Device | None, typer.Option("--device", help="Device for training.  [default: a GPU if there is one]")
    ] = None,
    threads: ThreadNumber = None,
    quiet: args.Quiet = False,
    as_json: args.Json = False,
    verbose: args.Verbose = False,
) -> None:
    """Train a small model with each tokenizer, and compare them.

    Compares bits per byte of held-out text. Every training uses the same documents and the same number of
    floating-point operations, including the matrix of the logits. DIR then contains trial.json, a receipt, and
    trial.svg with curves over bytes and over operations. Needs cppmill[trial].

    Examples:
      cppmill trial plain=a/tokenizer superwords=b/tokenizer --on a --held-out held-out/ --budget 20m --out trial
      cppmill trial plain=a/tokenizer superwords=b/tokenizer --on a --held-out held-out/ --flops 1e14 --out again
    """
    with command_session(Output(quiet=quiet, as_json=as_json, verbose=verbose)) as reporter:
        from configs.execution import usable_threads
        from configs.flags import read_options
        from pipelines.trial import program
        from pipelines.trial.budget import parse_time
        from schemas.study_options import TrialOptions

        request = program.TrialRequest(
            tokenizers=tokenizers,
            text=on,
            held_out=held_out,
            out=out,
            options=read_options(TrialOptions, flags, TRIAL_FLAGS),
            budget_seconds=None if budget is None else parse_time(budget, argument="--budget"),
            flops=flops,
            pattern=pattern,
            threads=threads or usable_threads(),
            device=device,
        )
        for line in program.trial_lines(program.run_trial(request, reporter), as_json=as_json):
            typer.echo(line)
