"""The commands below `cppmill vocab`: arguments to calls of `pipelines.tokenizers.vocab`, imported late."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from configs.vocabulary import VOCABULARY
from pipelines.cli import arguments as args
from pipelines.cli.options import EXIT_CODES, described
from pipelines.console.console import Output, command_session
from schemas.errors import ExitCode

MATCHES = ("ident", "prefix", "dollar", "sql_string")
"""How a scan counts names (`tokenizer_build.vocabulary.Match`, which is not imported for help)."""

vocab = typer.Typer(
    name="vocab",
    help="Maintain the vocabulary files and their pinned ids.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    rich_markup_mode=None,
)

VocabularyFolder = Annotated[
    Path | None,
    typer.Option("--vocab", metavar="DIR", help="Vocabulary folder.  [default: configs/vocab of this installation]"),
]


Pattern = Annotated[str, typer.Option("--pattern", metavar="NAME", help="Pre-token pattern.")]

OwnVocabulary = Annotated[
    Path, typer.Argument(metavar="DIR", file_okay=False, help="Folder of a vocabulary of your own.")
]


@described(vocab)
def init(directory: OwnVocabulary) -> None:
    """Begin a vocabulary of your own.

    A folder that inherits the vocabulary of this installation, as a copy in DIR/inherited, and adds to it: own.toml for
    tokens, categories, morphemes and cuts, and an ids.lock of its own. `run --vocab DIR` builds with it.

    Example:
      cppmill vocab init acme-vocabulary
    """
    with command_session(Output(), advice="remove what was written, and repeat the command"):
        from pipelines.tokenizers import vocab

        inherited = vocab.init(VOCABULARY, directory)
        typer.echo(f"{directory}: {inherited:,} tokens inherited; add your own with `cppmill vocab add {directory}`")


@described(vocab)
def add(
    directory: OwnVocabulary,
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="Names to add.")] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--from", metavar="FILE", dir_okay=False, exists=True, help="Add the names in a file, one a line."
        ),
    ] = None,
    category: Annotated[
        str, typer.Option("--category", metavar="NAME", help="Category in the counts and the decisions.")
    ] = "own",
    match: Annotated[
        str,
        typer.Option(
            "--match",
            metavar="|".join(MATCHES),
            help="How a scan counts them: ident, whole identifiers; prefix, also identifiers that begin with them; "
            "dollar; sql_string, words of string literals.",
        ),
    ] = "ident",
    api_prefixes: Annotated[
        str, typer.Option("--api-prefixes", metavar="A,B", help="Beginnings that make a name distinctive, as acme_.")
    ] = "",
    keep: Annotated[bool, typer.Option("--keep", help="A scan never cuts them, however rare.")] = False,
    band: Annotated[
        str,
        typer.Option("--band", metavar="NAME", help="Band of the ids: domain, where names are atomic, or library."),
    ] = "domain",
    pattern: Pattern = "cpp-words-1",
) -> None:
    """Give names free ids in a vocabulary of your own.

    Names that it has already stay as they are. Nothing is written if a name breaks a rule: the pattern cuts it into
    words, say. The message names what would do.

    Examples:
      cppmill vocab add acme-vocabulary --category acme --keep --from names.txt
      cppmill vocab add acme-vocabulary Acme acme_ --category acme_prefixes --match prefix --keep
    """
    with command_session(Output(), advice="nothing was changed"):
        from pipelines.tokenizers import vocab

        given = [*(names or []), *(vocab.read_names(file) if file else [])]
        added = vocab.add(
            directory,
            given,
            category=category,
            match=match,
            api_prefixes=[prefix.strip() for prefix in api_prefixes.split(",") if prefix.strip()],
            keep=keep,
            band=band,
            pattern=pattern,
        )
        ids = f": ids {min(added):,} to {max(added):,}" if added else ""
        typer.echo(f"{directory}: {len(added):,} of {len(set(given)):,} names added{ids}")


@described(vocab)
def release(
    version: Annotated[str, typer.Argument(metavar="VERSION", help="Name of the release, not used before.")],
    tokenizer: args.Tokenizer,
    directory: VocabularyFolder = None,
) -> None:
    """Pin the fixed ids of a tokenizer for life.

    They are appended to ids.lock, which nothing else writes.

    Example:
      cppmill vocab release 1.0 --tokenizer llvm/tokenizer
    """
    with command_session(Output(), advice="repeat the command to finish the release"):
        from pipelines.tokenizers import vocab

        locked = vocab.release(directory or VOCABULARY, tokenizer, version)
        typer.echo(f"{version}: {locked:,} ids newly locked")


@described(vocab)
def lint(
    directory: VocabularyFolder = None,
    pattern: Pattern = "cpp-words-1",
) -> None:
    """Report what is wrong with the vocabulary files.

    Duplicates, tokens that cannot be reached, seeds that would break an atomic token, wrong bands, holes, moved ids.
    Exit code 1 if anything is an error.

    Example:
      cppmill vocab lint
    """
    with command_session(Output(), advice="nothing was changed"):
        from pipelines.tokenizers import vocab

        findings = vocab.lint(directory or VOCABULARY, pattern)
        for finding in findings:
            typer.echo(f"{finding.severity}: {finding.rule}: {finding.message}")
        counts = Counter(str(finding.severity) for finding in findings)
        typer.echo(", ".join(f"{count:,} {severity}s" for severity, count in counts.items()) or "nothing to say")
        if counts["error"]:
            raise SystemExit(int(ExitCode.FAILED_CHECK))


@described(vocab)
def diff(
    old: Annotated[
        Path, typer.Argument(metavar="OLD", parser=args.local_tokenizer, help="Tokenizer directory, or its URL.")
    ],
    new: Annotated[
        Path,
        typer.Argument(metavar="NEW", parser=args.local_tokenizer, help="Tokenizer directory to compare with it."),
    ],
    documents: Annotated[
        str | None,
        typer.Option(
            "--documents",
            metavar="DIR",
            help="A run's folder or URL: measure the compression of its documents, by project.",
        ),
    ] = None,
    id_map: Annotated[
        list[Path] | None,
        typer.Option(
            "--id-map", metavar="FILE", help="Write the map of ids: FILE.parquet or FILE.npy; may be given twice."
        ),
    ] = None,
    verbose: args.Verbose = False,
) -> None:
    """Compare the tokens and ids of two tokenizers.

    Tokens added, removed, moved and kept; with --verbose each is listed. Exit code 1 if a fixed id moved. The map
    is for embedding surgery; docs/how-to/models/changing-the-tokenizer.md has an example.

    Example:
      cppmill vocab diff old/tokenizer new/tokenizer --documents new --id-map ids.parquet
    """
    with command_session(Output(verbose=verbose), advice="nothing was changed"):
        from pipelines.tokenizers import vocab

        lines, broken = vocab.diff(old, new, documents=documents, id_maps=id_map or (), every_token=verbose)
        for line in lines:
            typer.echo(line)
        for line in broken:
            typer.echo(f"error: {line}", err=True)
        if broken:
            raise SystemExit(int(ExitCode.FAILED_CHECK))


@described(vocab)
def working_set(
    out: args.RunFolder,
    file: Annotated[Path, typer.Option("--out", metavar="FILE", help="File to write, JSON.")],
    projects: Annotated[
        list[str] | None,
        typer.Option("--projects", metavar="GLOB", help="Names of the projects; may be given again.  [default: *]"),
    ] = None,
    coverage: Annotated[
        float, typer.Option("--coverage", metavar="FRACTION", help="Share of the projects' tokens to cover.")
    ] = 0.99,
) -> None:
    """Write the fewest ids that cover a share of some projects' tokens.

    A sorted allow-list with a receipt, for routing: `cppmill_core.working_set` makes the mask for a model's logits. It
    makes nothing faster. Control tokens and the 256 bytes are always in it.

    Example:
      cppmill vocab working-set out --projects 'cu*' --projects torch --coverage 0.99 --out cuda.json
    """
    with command_session(Output(), advice="nothing was changed"):
        from pipelines.exports.working_set import write_working_set

        typer.echo(write_working_set(out, file, globs=projects or ["*"], coverage=coverage))
