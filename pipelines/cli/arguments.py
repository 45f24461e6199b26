"""The arguments that the commands share, and how `-- BEAM OPTIONS` get past the parser.

Values are taken as they were typed: `configs.runs` converts and checks them, so that all problems are told at once
and in the same words as those of a TOML file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from pipelines.console.console import exit_on_error
from schemas.places import is_remote

BEAM_OPTIONS = "cppmill.beam_options"


class BeamCommand(TyperCommand):
    """A command that keeps what follows `--` for Beam."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - typer's private context class
        """Take what follows `--` out of the arguments and into the context."""
        if "--" in args:
            split = args.index("--")
            ctx.meta[BEAM_OPTIONS] = args[split + 1 :]
            args = args[:split]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:  # noqa: ANN401
        """Return the pieces of the usage line, Beam's options last."""
        return [*super().collect_usage_pieces(ctx), "[-- BEAM OPTIONS]"]


def as_typed(value: str) -> str:
    """Return the text of an argument as it is: a file name need not be UTF-8."""
    return value


def run_folder(value: str) -> str:
    """Return the folder of a run as it was typed, if there is one; a URL is looked at by the command.

    `URL/current` of a store of versions is followed: on an object store the pointer is an object that names the folder.
    """
    if is_remote(value):
        return _follow_current(value)
    if not Path(value).is_dir():
        raise typer.BadParameter(f"{value}: no such folder; it takes the folder of a finished run, or its URL")
    return value


def _follow_current(url: str) -> str:
    """Return what `STORE/current` names, a URL as it is if it is no such pointer."""
    store, _, name = url.rstrip("/").rpartition("/")
    if name != "current":
        return url
    with exit_on_error():
        from transforms.records.versions import Versions

        versions = Versions(store)
        current = versions.current
        return url if current is None else versions.out(current).root


def beam_options(context: typer.Context) -> list[str]:
    """Return what followed `--`."""
    options: list[str] = context.meta.get(BEAM_OPTIONS, [])
    return options


Sources = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="SOURCE",
        parser=as_typed,
        help="What to read: folders, globs, tar (.gz .xz .zst), zip, Parquet and JSONL (.gz .zst) files, local or any "
        "fsspec path (s3://…). Read by run, ingest and plan.",
    ),
]

RunFolder = Annotated[
    str,
    typer.Argument(
        metavar="OUT", parser=run_folder, help="The folder of a finished run; s3://BUCKET/PREFIX works too."
    ),
]

FinishedRun = Annotated[
    str,
    typer.Argument(metavar="RUN", parser=run_folder, help="A finished run; s3://BUCKET/PREFIX works too."),
]

ExportFolder = Annotated[
    str, typer.Option("--out", metavar="DIR", parser=as_typed, help="Folder of its own, or s3://BUCKET/PREFIX.")
]

Out = Annotated[
    str | None,
    typer.Option(
        "--out",
        metavar="DIR",
        parser=as_typed,
        help="Output folder, or s3://BUCKET/PREFIX, new or of an earlier run, which is then taken up.",
    ),
]

Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="TOML file with the tables [run], [ingest], [scan], [build], [tokenize]; flags win over it.",
    ),
]

Profile = Annotated[
    str | None,
    typer.Option(
        "--profile",
        metavar="NAME",
        help="Set of defaults: hybrid-64k, hybrid-64k-superwords, sentencepiece-32k or demo.  [default: hybrid-64k]",
    ),
]

VocabSize = Annotated[
    str | None,
    typer.Option(
        "--vocab-size",
        metavar="N",
        help="Number of ids of the tokenizer.  [default: the profile's; 65,536 in hybrid-64k]",
    ),
]

TokenizerFolder = Annotated[
    str | None,
    typer.Option(
        "--tokenizer",
        metavar="DIR",
        help="Tokenize with this tokenizer directory (with its manifest.json), local or s3://…; build none.",
    ),
]

Threads = Annotated[
    str | None,
    typer.Option(
        "--threads",
        metavar="N",
        help="Number of threads of a process.  [default: the CPUs that it may use; 1 in workers of flink and spark]",
    ),
]

MemoryBytes = Annotated[
    str | None,
    typer.Option(
        "--memory-bytes",
        metavar="N",
        help="Memory for the tables of a scan; more goes to temporary files.  [default: 2,147,483,648 (2 GiB)]",
    ),
]

UnitBytes = Annotated[
    str | None,
    typer.Option(
        "--unit-bytes",
        metavar="N",
        help="Target size of a unit of work and of a shard, in bytes of source: smaller ones lose less when a run "
        "dies and need less memory.  [default: the profile's; 67,108,864 (64 MiB) in hybrid-64k]",
    ),
]

Limit = Annotated[
    str | None,
    typer.Option("--limit", metavar="N", help="Take at most N documents of each source and archive.  [default: all]"),
]

Sample = Annotated[
    str | None,
    typer.Option(
        "--sample", metavar="FRACTION", help="Take this share of the documents, chosen by path.  [default: 1.0, all]"
    ),
]

NearDuplicateSimilarity = Annotated[
    str | None,
    typer.Option(
        "--near-duplicate-similarity",
        metavar="FRACTION",
        help="Keep one of documents that have at least this share of their code in common, 0.8 say.  [default: off]",
    ),
]

MaxDeadFraction = Annotated[
    str | None,
    typer.Option(
        "--max-dead-fraction",
        metavar="F",
        help="End with exit code 3 if more than this share of the documents is unreadable or damaged.  [default: 0.01]",
    ),
]

Engine = Annotated[
    str | None,
    typer.Option(
        "--engine",
        metavar="NAME",
        help="Where the stages run: local, flink, spark, prism or dataflow.  [default: local]",
    ),
]

Rehash = Annotated[
    bool,
    typer.Option("--rehash", help="Read and hash every input again, even if its size and time are unchanged."),
]

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]

Json = Annotated[bool, typer.Option("--json", help="One JSON object a line on standard output, for programs.")]

Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Show the logs of the libraries too.")]

Tokenizer = Annotated[Path, typer.Option("--tokenizer", metavar="DIR", help="Tokenizer directory, as OUT/tokenizer.")]
