"""The command line: it turns arguments into a run configuration and calls the programs.

Nothing is decided here. Programs are imported when their command runs, so that help and `encode` start fast: importing
Beam takes seconds.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module, metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from configs.flags import SET
from configs.tables import FLAGS, PEER_FLAGS
from pipelines.cli import arguments as args
from pipelines.cli import exports, publishing, runs, shell, takedown, tokenizers, vocab
from pipelines.cli.groups import PROGRAM, Group, GroupedCommands, ending_streams, narrowed
from pipelines.cli.options import EXIT_CODES, BeamCommand, as_help, described, with_flags
from pipelines.console.console import Output, command_session, exit_on_error
from schemas.declarations import ARGUMENTS
from schemas.options import REENCODED

if TYPE_CHECKING:
    from configs.runs import RunConfig
    from pipelines.console.progress import Reporter

app = typer.Typer(
    name="cppmill",
    cls=GroupedCommands,
    help="Make a tokenizer, a tokenized dataset and a receipt from C++ sources.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
_GROUPS = (shell, tokenizers, exports, runs, takedown, publishing)
for _group in (module.commands for module in _GROUPS):
    app.add_typer(_group)
app.add_typer(vocab.vocab, rich_help_panel=Group.VOCABULARY)

Program = Callable[["RunConfig", "Reporter", Output], None]


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"cppmill {_installed('cppmill')} (cppmill-core {_installed('cppmill-core')})")
        raise typer.Exit


def _installed(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "not installed"


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the versions and exit.")
    ] = False,
) -> None:
    """Make a tokenizer, a tokenized dataset and a receipt from C++ sources."""


_STAGES = {
    "run": """Make tokenizer, dataset and receipt from sources.

Runs all stages: ingest, scan, build, tokenize, validate. Finished units are kept: a second run does only what
changed, and the same command resumes a run that was stopped or killed. A finished tokenizer in OUT is also kept, so
that no id moves; --rebuild-tokenizer builds another.

Examples:
  cppmill run ~/src/llvm-project --out llvm
  cppmill run 'archives/*.tar.gz' --out corpus --sample 0.01
  cppmill run --config run.toml --threads 8
  cppmill run ~/src/abseil --out abseil --tokenizer llvm/tokenizer
  cppmill run ~/src/acme --out acme --vocab acme-vocabulary
  cppmill run ~/src --out all -- --direct_running_mode=multi_processing
""",
    "ingest": """Read the sources into OUT/documents.

Filters, drops duplicates, detects platforms, and lists every input file in the ledger. The first stage of
`run`, with the same arguments.

Example:
  cppmill ingest ~/src/llvm-project --out llvm
""",
    "scan": """Count the words and names of OUT/documents into OUT/counts.

Counts words, candidate terms, morphemes, namespaces and style, as a C++ lexer sees them. If a tokenizer that was
built in OUT is kept, its counts are kept too. The second stage of `run`, with the same arguments; SOURCE is not read.

Example:
  cppmill scan --out llvm
""",
    "build": """Build OUT/tokenizer from OUT/counts.

The counts decide which fixed tokens of the vocabulary files stay; BPE learns the rest. Prints what the scan found
and what became of the candidates, which is also in OUT/tokenizer/findings.md. A finished tokenizer in OUT is kept;
--rebuild-tokenizer builds another. The third stage of `run`, with the same arguments; SOURCE is not read.

Example:
  cppmill build --out llvm --vocab-size 32768 --rebuild-tokenizer
""",
    "tokenize": """Encode OUT/documents with OUT/tokenizer into OUT/tokens.

The fourth stage of `run`, with the same arguments; SOURCE is not read.

Example:
  cppmill tokenize --out llvm
""",
    "validate": """Check OUT/tokens and write OUT/receipt.json.

Reads the written shards back and checks that every document decodes to its bytes and every id is in range. The last
stage of `run`, with the same arguments; SOURCE is not read.

Example:
  cppmill validate --out llvm
""",
}
"""The help of the commands that carry out stages, by name: each runs `pipelines.stages.NAME`."""


def _register(name: str, text: str, program: Program) -> None:
    """Make a command, with all options of a run, of a program."""

    @with_flags(FLAGS | PEER_FLAGS if name == "run" else FLAGS)
    def command(
        flags: dict[str, object],
        config: args.Config = None,
        set_values: args.SetValues = None,
        quiet: args.Quiet = False,
        as_json: args.Json = False,
        verbose: args.Verbose = False,
    ) -> None:
        output = Output(quiet=quiet, as_json=as_json, verbose=verbose)
        with command_session(output) as reporter:
            from configs.execution import Peer
            from configs.runs import load_run_config

            given, needs_sources = {**flags, SET: set_values}, name in ("run", "ingest", "plan")
            peer = given.pop("--peer", None)
            loaded = load_run_config(file=config, flags=given, needs_sources=needs_sources)
            program(loaded.model_copy(update={"peer": Peer.parse(str(peer))}) if peer else loaded, reporter, output)

    app.command(name, help=as_help(text), epilog=EXIT_CODES, cls=BeamCommand, rich_help_panel=Group.RUN)(command)


def _run_stage(name: str, config: RunConfig, reporter: Reporter, output: Output) -> None:
    import_module(f"pipelines.stages.{name}").run(config, reporter)


def _plan(config: RunConfig, reporter: Reporter, output: Output) -> None:
    """Print which units a run would do or skip, and why.

    Takes the arguments of `run` and writes nothing. With --json it prints one line per unit: {"stage", "unit",
    "action": "run" or "skip", "reason"}.

    Example:
      cppmill plan ~/src/llvm-project --out llvm
    """
    from pipelines.cli.tables import print_plan
    from pipelines.stages import run

    print_plan(run.plan(config), as_json=output.as_json, every_unit=output.verbose)


for _name, _text in _STAGES.items():
    _register(_name, _text, partial(_run_stage, _name))
_register("plan", inspect.getdoc(_plan) or "", _plan)


@described(app, under=Group.LOOK)
def verify(
    run: Annotated[
        str,
        typer.Argument(
            metavar="RUN|EXPORT|TRIAL|STORE",
            parser=args.run_folder,
            help="A finished run, an export, a trial, or a store (its current version); may be a URL (gs://, s3://).",
        ),
    ],
    reencode: Annotated[
        float,
        typer.Option(
            "--reencode",
            metavar="FRACTION",
            min=0,
            max=1,
            help="Share of the documents to encode again, or of an export's files to make again; 1 for all.",
        ),
    ] = REENCODED,
    made_from: Annotated[
        str | None,
        typer.Option(
            "--run",
            metavar="RUN",
            parser=args.run_folder,
            help="For an export: the run that it was made from, to make some files again and compare them.",
        ),
    ] = None,
    published: Annotated[
        bool, typer.Option("--published", help="RUN is a download of a pushed run: check the files that it has.")
    ] = False,
    signed_by: args.SignedBy = None,
    as_json: args.OneJson = False,
    verbose: args.Verbose = False,
) -> None:
    """Check a run, a trial or an export against its record.

    The record is the receipt, or the manifest of an export. Works offline, from the files alone. Exit code 0 if all
    matches, otherwise 1 with the first differences; --json prints all of them. --published checks a download: every
    file that it has and all rows of its shards; it also says
    which files of the run are missing.

    Examples:
      cppmill verify llvm
      cppmill verify llvm --reencode 1
      cppmill verify llvm --signed-by ~/.ssh/allowed_signers
      cppmill verify llvm-8k --run llvm
      cppmill verify downloaded --published
      cppmill verify /data/cpp --json
    """
    output = Output(as_json=as_json, one_document=True, verbose=verbose)
    with command_session(output, advice="nothing was changed") as reporter:
        from pipelines.cli.tables import Answer, print_differences
        from pipelines.versions import verify

        found = verify.verify(run, reencode, reporter, signed_by=signed_by, run=made_from, published=published)
        absent = verify.count_absent(run) if published else None
        answer = Answer(out=run, record=verify.record(run), reencoded=reencode, run=made_from, absent=absent)
        print_differences(found, answer, as_json=as_json)


@described(app, under=Group.RUN)
@with_flags({ARGUMENTS: FLAGS[ARGUMENTS]})
def equivalence(
    flags: dict[str, list[str] | None],
    engines: Annotated[
        str | None,
        typer.Option(
            "--engines", metavar="NAMES", help="Any of local, processes, flink, prism, spark.  [default: all]"
        ),
    ] = None,
    flink_master: Annotated[
        str | None,
        typer.Option("--flink-master", metavar="HOST:PORT", help="Flink cluster.  [default: an embedded one]"),
    ] = None,
    spark_master: Annotated[
        str | None, typer.Option("--spark-master", metavar="URL", help="Spark cluster.  [default: an embedded one]")
    ] = None,
    spark_page: Annotated[
        str | None,
        typer.Option("--spark-master-page", metavar="URL", help="Web page of the Spark master, if not on port 8080."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Keep the runs here.  [default: a temporary folder]")
    ] = None,
    quiet: args.Quiet = False,
    as_json: args.Json = False,
    verbose: args.Verbose = False,
) -> None:
    """Make the same run on every engine, and compare the digests.

    By default, the sources are the C++ headers of installed packages. Counts, tokenizer, dataset and receipt must be
    the same everywhere; otherwise the exit code is 1. An unavailable engine is skipped, or an error if you named it.

    Examples:
      cppmill equivalence
      cppmill equivalence --engines local,flink --flink-master 127.0.0.1:8081
    """
    output = Output(quiet=quiet, as_json=as_json, verbose=verbose)
    with command_session(output, advice="run it again") as reporter:
        from pipelines.cli.tables import print_outcomes
        from pipelines.stages import equivalence

        ways = equivalence.choose_ways(
            equivalence.all_ways(flink_master=flink_master, spark_master=spark_master, spark_page=spark_page), engines
        )
        with equivalence.folder_of_runs(out) as folder:
            outcomes = list(
                equivalence.compare_ways(
                    ways,
                    flags[ARGUMENTS] or equivalence.default_sources(),
                    folder,
                    reporter,
                    required=engines is not None,
                )
            )
        print_outcomes(outcomes, as_json=as_json)
        equivalence.check_equal(outcomes)


@described(app, under=Group.VOCABULARY)
def encode(
    tokenizer: args.Tokenizer,
    file: Annotated[str, typer.Argument(metavar="[FILE|-]", help="File of any bytes; - is the standard input.")] = "-",
) -> None:
    """Print the ids of a file as one JSON array.

    Control tokens in the text are ordinary text. No BOS or EOS is added.

    Example:
      echo 'int main() {}' | cppmill encode --tokenizer llvm/tokenizer
    """
    with exit_on_error():
        from pipelines.tokenizers.codec import encode_file

        encode_file(tokenizer, file)


@described(app, under=Group.VOCABULARY)
def decode(
    tokenizer: args.Tokenizer,
    file: Annotated[str, typer.Argument(metavar="[FILE|-]", help="JSON array of ids; - is the standard input.")] = "-",
    skip_control: Annotated[
        bool, typer.Option("--skip-control", help="Leave out control and reserved ids, which are otherwise an error.")
    ] = False,
) -> None:
    """Write the bytes that a JSON array of ids encodes.

    Example:
      cppmill encode --tokenizer llvm/tokenizer a.cpp | cppmill decode --tokenizer llvm/tokenizer
    """
    with exit_on_error():
        from pipelines.tokenizers.codec import decode_file

        decode_file(tokenizer, file, skip_control=skip_control)


def main() -> None:
    """Run the command line."""
    shell.answer_shell()
    with ending_streams():
        narrowed(app, sys.argv[1:])(prog_name=PROGRAM)
