"""Commands about finished runs and their versions: arguments to calls of programs, which are imported late."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from configs.flags import SET, read_options
from configs.tables import DRIFT_FLAGS, STORE_FLAGS
from pipelines.cli import arguments as args
from pipelines.cli.groups import Group
from pipelines.cli.options import EXIT_CODES, BeamCommand, described, with_flags
from pipelines.console.console import Output, command_session, exit_on_error
from pipelines.console.reporters import JsonReporter
from schemas.errors import ConfigError, ExitCode
from schemas.logs import module_logger
from schemas.study_options import DriftOptions

if TYPE_CHECKING:
    from pipelines.versions.retokenize import Retokenization

logger = module_logger(__name__)

commands = typer.Typer()

RETOKENIZE_CODES = (
    f"{EXIT_CODES} 10 nothing to do, 11 another run is at work in the store, 12 there is a new version, and its drift "
    "exceeds a threshold."
)
CHANGES_CODES = f"{EXIT_CODES} 12 with --drift, the drift of the current version exceeds a threshold."


@described(commands, under=Group.LOOK)
def report(
    run: Annotated[
        str,
        typer.Argument(
            metavar="RUN|STORE",
            parser=args.begun_folder,
            help="A finished run, or a store of versions; may be a URL (gs://, s3://).",
        ),
    ],
    page: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="The HTML file to write, outside RUN.  [default: NAME-report.html in this folder, NAME from RUN]",
        ),
    ] = None,
    compare: Annotated[
        Path | None,
        typer.Option("--compare", metavar="FILE", help="Also show other tokenizers: the output of `compare --json`."),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option("--threads", metavar="N", min=1, help="Shards to read at once.  [default: the CPUs it may use]"),
    ] = None,
    left_out: Annotated[
        bool, typer.Option("--left-out", help="Show instead what each filter dropped: how much, from where, examples.")
    ] = False,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="RUN",
            parser=args.run_folder,
            help="With --left-out: show what only one of the two runs drops.",
        ),
    ] = None,
    shard: Annotated[
        str | None,
        typer.Option("--shard", metavar="FILE", help="Show instead rows of a Parquet file in RUN, with ids as tokens."),
    ] = None,
    first: Annotated[
        int | None, typer.Option("--first", metavar="N", min=0, help="With --shard: the first row.  [default: 0]")
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option("--rows", metavar="N", min=1, max=1000, help="With --shard: how many rows.  [default: 50]"),
    ] = None,
    verbose: args.Verbose = False,
) -> None:
    """Show a run, or the versions of a store, on one HTML page.

    For a run, the page shows what went in and came out, the vocabulary and how much of it is used, compression by
    project, lengths, decisions with their reasons, and the receipt. For a store of `retokenize`, it shows documents,
    tokens, compression, ledger, tokenizer and projects from version to version. With --left-out it shows the documents
    that filters dropped, by reason. With --shard it shows rows of a file. The page opens from disk and fetches nothing.

    Examples:
      cppmill report llvm
      cppmill report llvm-strict --left-out --against llvm
      cppmill report llvm --shard counts/terms.parquet --rows 200
      cppmill report s3://bucket/llvm --out llvm.html --compare others.jsonl
      cppmill report /data/cpp --out weekly.html
    """
    with command_session(Output(verbose=verbose), advice="nothing was changed"):
        from configs.execution import usable_threads
        from pipelines.report import program

        if (left_out and shard) or (against and not left_out) or (compare and (left_out or shard)):
            raise ConfigError("--left-out, --shard, --compare: give one of them; --against goes with --left-out")
        if shard is None and (first, rows) != (None, None):
            raise ConfigError("--first, --rows: give --shard too")
        if left_out:
            line = program.write_left_out(run, page or program.default_page(run, "left-out"), against=against)
        elif shard:
            page = page or program.default_page(run, "rows")
            line = program.write_rows(run, page, shard=shard, first=first or 0, rows=rows or program.SHOWN_ROWS)
        else:
            page = page or program.default_page(run)
            line = program.write_report(run, page, compare=compare, threads=threads or usable_threads())
        typer.echo(line)


@described(commands, under=Group.RUN, cls=BeamCommand, exit_codes=RETOKENIZE_CODES)
@with_flags(STORE_FLAGS | DRIFT_FLAGS)
def retokenize(
    flags: dict[str, object],
    config: args.Config = None,
    set_values: args.SetValues = None,
    keep: Annotated[
        int, typer.Option("--keep", metavar="N", min=1, help="Keep this many versions, including the current one.")
    ] = 3,
    quiet: args.Quiet = False,
    as_json: args.Json = False,
    verbose: args.Verbose = False,
) -> None:
    """Make a new version of a dataset from what has changed.

    Runs only changed units of the sources, with the tokenizer of the previous version, so that no id moves. Unchanged
    files are shared with the previous version. STORE/current always names the newest complete version; it moves only
    after the new one is validated. Options that you do not give come from the previous version. The first version
    builds a tokenizer with --profile, --vocab-size and --vocab, or uses --tokenizer. Later, --rebuild-tokenizer builds
    another one, and learned ids move.

    Exit code 0: there is a new version. 10: there was nothing to do. 11: another run is at work in the store. 12: there
    is a new version, and its drift exceeds a threshold (--alert-compression and others; none by default).

    Examples:
      cppmill retokenize ~/src --store /data/cpp
      cppmill retokenize ~/src --store s3://bucket/cpp --tokenizer release/tokenizer --keep 5 --json
    """
    output = Output(quiet=quiet, as_json=as_json, verbose=verbose)
    with command_session(output) as reporter:
        from pipelines.versions.retokenize import Request, retokenize

        drift = read_options(DriftOptions, {name: flags.pop(name) for name in DRIFT_FLAGS}, DRIFT_FLAGS)
        request = Request(file=config, flags={**flags, SET: set_values}, keep=keep, drift=drift)
        print_outcome(retokenize(request, reporter), output)


def print_outcome(outcome: Retokenization, output: Output) -> None:
    """Print what changed: JSON objects, or tables; alerts of drift go to the error stream even if it is quiet.

    Raises:
        SystemExit: With exit code 10 if there was nothing to do, 12 if there is an alert.
    """
    from pipelines.versions.changes import describe_changes
    from pipelines.versions.drift import describe_drift

    if outcome.alerts:
        logger.warning("%s", outcome.summary)
    if output.as_json:
        if outcome.alerts:
            JsonReporter().drifted(outcome.version, outcome.alerts)
        typer.echo(json.dumps({"event": "retokenized", **outcome.to_json()}))
    elif not output.quiet:
        typer.echo(f"{outcome.summary}: {outcome.place}")
        for line in describe_changes(outcome.changes) if outcome.changes else ():
            typer.echo(line)
        for line in describe_drift(outcome.drift) if outcome.drift else ():
            typer.echo(line)
        if outcome.removed:
            typer.echo(f"removed    {', '.join(outcome.removed)}")
    if outcome.changes is None:
        raise SystemExit(int(ExitCode.NOTHING_TO_DO))
    if outcome.alerts:
        raise SystemExit(int(ExitCode.DRIFTED))


@described(commands, under=Group.LOOK, exit_codes=CHANGES_CODES)
def changes(
    store: Annotated[
        str,
        typer.Argument(
            metavar="STORE",
            parser=args.begun_folder,
            help="The store of `retokenize`; may be a URL (gs://, s3://).",
        ),
    ],
    trend: Annotated[
        bool, typer.Option("--trend", help="Show the newest 200 versions, not only the last one.")
    ] = False,
    drift: Annotated[
        bool,
        typer.Option("--drift", help="Show instead the drift of the last version: compression, ids, API families."),
    ] = False,
    as_json: args.Json = False,
) -> None:
    """Print what the current version of a store changed.

    Without options: documents, tokens, shards and ids, as `retokenize` printed them. With --trend, for each version:
    totals, bytes per token, ledger, tokenizer, added and removed projects; then the projects whose compression changed
    most. With --drift: the new text compared with the previous version, and the alerts of the run that made it.
    Versions that were removed are shown too. Reads only small records in the store, no token shards.

    Examples:
      cppmill changes /data/cpp
      cppmill changes s3://bucket/cpp --trend --json
      cppmill changes /data/cpp --drift || mail-someone
    """
    with command_session(Output(as_json=as_json), advice="nothing was changed"):
        from pipelines.versions.changes import print_changes
        from pipelines.versions.drift import print_drift
        from pipelines.versions.trend import print_trend
        from transforms.records.record import reads_record

        if trend and drift:
            raise ConfigError("--trend and --drift exclude each other")
        with reads_record(store, kind="record of a store"):
            if not drift:
                (print_trend if trend else print_changes)(store, as_json=as_json)
            elif print_drift(store, as_json=as_json):
                raise SystemExit(int(ExitCode.DRIFTED))


@described(commands, under=Group.LOOK)
def status(
    out: Annotated[
        str,
        typer.Argument(
            metavar="OUT|STORE",
            parser=args.begun_folder,
            help="The output of a run, an export or `retokenize`; may be a URL (gs://, s3://).",
        ),
    ],
    events: Annotated[int, typer.Option("--events", metavar="N", min=0, help="Print the last N events.")] = 5,
    serve: Annotated[
        bool,
        typer.Option("--serve", help="Show it in a browser on this machine until Ctrl-C; the page refreshes itself."),
    ] = False,
    port: Annotated[
        int | None,
        typer.Option("--port", metavar="N", min=1, max=65535, help="Port of --serve.  [default: a free one]"),
    ] = None,
    as_json: args.OneJson = False,
) -> None:
    """Print how far the run in OUT is, or how the last one ended.

    Works from another process or machine, during the run and afterwards. Prints stages, units, rate, time left, and who
    holds the lock. For a store of `retokenize`, it shows the version that is being made, or else the current one. Exit
    code 0 if it is running or ended well, 1 if it failed, was stopped or crashed. With --serve, a page on the loopback
    address shows it.

    Examples:
      cppmill status llvm
      watch cppmill status llvm
      cppmill status llvm --serve
    """
    with exit_on_error(Output(as_json=as_json, one_document=True)):
        from pipelines.console.status import RunStatus, read_any_status
        from pipelines.console.status_lines import describe_status, describe_store

        if (port is not None and not serve) or (serve and as_json):
            raise ConfigError("--serve and --json exclude each other" if serve else f"--port {port}: give --serve too")
        found = read_any_status(out, events=events)
        if serve:
            _serve_status(out, port or 0)
        lines = describe_status(found) if isinstance(found, RunStatus) else describe_store(found)
        for line in [json.dumps(found.to_json())] if as_json else lines:
            typer.echo(line)
        if not found.is_well:
            raise SystemExit(int(ExitCode.FAILED_CHECK))


def _serve_status(out: str, port: int) -> None:
    """Serve the page of a run until Ctrl-C."""
    from pipelines.report.live import StatusServer

    with StatusServer(out, port=port) as server:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        server.serve_forever()


@described(commands, under=Group.PUBLISH)
def provenance(
    run: args.RunFolder,
    folder: Annotated[
        Path, typer.Option("--out", metavar="DIR", file_okay=False, help="Folder to write, outside RUN.")
    ],
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="Name of the dataset.  [default: the name of RUN or its store]"),
    ] = None,
    url: Annotated[str | None, typer.Option("--url", metavar="URL", help="Where it will be published.")] = None,
    creator: Annotated[str | None, typer.Option("--creator", metavar="NAME", help="Creator of the dataset.")] = None,
    date: Annotated[str | None, typer.Option("--date", metavar="YYYY-MM-DD", help="Date of publication.")] = None,
    builder: Annotated[
        str | None,
        typer.Option("--builder", metavar="URI", help="Who carried out the run.  [default: urn:cppmill:builder]"),
    ] = None,
) -> None:
    """Write a receipt as in-toto, Croissant and a dataset card.

    Uses the receipt, the tokenizer's manifest and the licences of the documents. DIR also has links to the shards, so
    that `datasets.load_dataset(DIR)` can read them. The same arguments give the same bytes. Nothing is signed or sent.

    Example:
      cppmill provenance llvm --out llvm-card --name llvm-tokens --date 2026-11-30
    """
    with command_session(Output(), advice="repeat the command to write all of it"):
        from pipelines.publish.provenance import default_name, write_provenance
        from transforms.records.croissant import Publication
        from transforms.records.in_toto import BUILDER

        publication = Publication(name=name or default_name(run), url=url, creator=creator, date=date)
        for line in write_provenance(run, folder, publication, builder=builder or BUILDER):
            typer.echo(line)
