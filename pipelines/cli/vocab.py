"""The commands below `cppmill vocab`: arguments to calls of `pipelines.tokenizers.vocab`, imported late."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from configs import VOCABULARY
from pipelines.cli import arguments as args
from pipelines.cli.options import EXIT_CODES, described
from pipelines.console.console import Output, command_session
from schemas.errors import ExitCode

MATCHES = ("ident", "prefix", "qualified", "dollar", "sql_string", "string")
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
            "qualified, whole names with :: between them; dollar; sql_string, words in capitals of string literals; "
            "string, any words of them, with dots too.",
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

    Names that it has already keep their ids; with --keep a scan no longer cuts them either. Nothing is written if a
    name breaks a rule: the pattern cuts it into words, say. The message names what would do.

    Examples:
      cppmill vocab add acme-vocabulary --category acme --keep --from names.txt
      cppmill vocab add acme-vocabulary Acme acme_ --category acme_prefixes --match prefix --keep
      cppmill vocab add acme-vocabulary acme::Pool --match qualified --pattern cpp-words-2 --keep
    """
    with command_session(Output(), advice="nothing was changed"):
        from pipelines.tokenizers import vocab

        given = [*(names or []), *(vocab.read_names(file) if file else [])]
        done = vocab.add(
            directory,
            given,
            category=category,
            match=match,
            api_prefixes=args.names(api_prefixes),
            keep=keep,
            band=band,
            pattern=pattern,
        )
        typer.echo(done)


@described(vocab)
def propose(
    run: args.RunFolder,
    directory: Annotated[
        Path | None,
        typer.Option(
            "--vocab", metavar="DIR", exists=True, help="Vocabulary they are for.  [default: the one of the run]"
        ),
    ] = None,
    names: Annotated[int, typer.Option("--names", metavar="N", min=0, help="Most names to propose.")] = 100,
    morphemes: Annotated[int, typer.Option("--morphemes", metavar="N", min=0, help="Most morphemes to propose.")] = 9,
) -> None:
    """Propose names and morphemes for a vocabulary of your own.

    Prints TOML for its folder: what takes most tokens in the run's text, with a free id each, and its hits, documents,
    projects and the bytes that it saves. What a build would cut is left out.

    Examples:
      cppmill vocab propose out --vocab acme-vocabulary > acme-vocabulary/proposed.toml
      cppmill vocab propose out --names 20 --morphemes 0
    """
    with command_session(Output(), advice="nothing was changed"):
        from pipelines.tokenizers.propose import propose_for_run

        typer.echo(propose_for_run(run, vocab=directory, names=names, morphemes=morphemes), nl=False)


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


@described(vocab, name="map")
def map_ids(
    old: Annotated[
        Path,
        typer.Argument(metavar="OLD", parser=args.local_tokenizer, help="Tokenizer that a model was trained with."),
    ],
    new: Annotated[
        Path, typer.Argument(metavar="NEW", parser=args.local_tokenizer, help="Tokenizer that it is to have.")
    ],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Map to write, .parquet.")],
    embeddings: Annotated[
        Path | None, typer.Option("--embeddings", metavar="FILE", help="The model's rows by old id, .npy.")
    ] = None,
    init: Annotated[Path | None, typer.Option("--init", metavar="FILE", help="Rows to write by new id, .npy.")] = None,
) -> None:
    """Map the ids of a tokenizer to those of another, of any kind, and make embeddings to begin with.

    A new token is mapped to the old tokens that spell it, and its row is their mean. OLD and NEW are tokenizer
    directories, or what `adopt` takes.

    Example:
      cppmill vocab map qwen/tokenizer.json out/tokenizer --out ids.parquet --embeddings qwen.npy --init new.npy
    """
    with command_session(Output(), advice="repeat the command"):
        from pipelines.tokenizers.id_maps import map_ids as run_map

        for line in run_map(old, new, out, embeddings=embeddings, init=init):
            typer.echo(line)


@described(vocab)
def working_set(
    run: args.RunFolder,
    file: Annotated[Path, typer.Option("--out", metavar="FILE", help="File to write, JSON.")],
    projects: Annotated[
        list[str] | None,
        typer.Option("--projects", metavar="GLOB", help="Names of the projects; may be given again.  [default: *]"),
    ] = None,
    platforms: Annotated[
        list[str] | None,
        typer.Option("--platforms", metavar="CATEGORY=LABEL", help="Only documents for such platforms, globs."),
    ] = None,
    namespaces: Annotated[
        list[str] | None,
        typer.Option("--namespaces", metavar="GLOB", help="Only documents in whose code such a namespace occurs."),
    ] = None,
    bands: Annotated[
        list[str] | None,
        typer.Option("--bands", metavar="GLOB", help="Bands or categories of tokens that are in it as a whole."),
    ] = None,
    coverage: Annotated[
        float, typer.Option("--coverage", metavar="FRACTION", help="Share of the documents' tokens to cover.")
    ] = 0.99,
) -> None:
    """Write the fewest ids that cover a share of some documents' tokens.

    A sorted allow-list with a receipt, for routing: `cppmill_core.working_set` makes the mask for a model's logits. It
    makes nothing faster. Control tokens and the 256 bytes are always in it. Documents must meet each of --projects,
    --platforms and --namespaces; each may be given again, and then one of its values is enough.

    Examples:
      cppmill vocab working-set out --projects 'cu*' --projects torch --coverage 0.99 --out cuda.json
      cppmill vocab working-set out --platforms 'gpu=cuda' --namespaces thrust --bands 'cuda_*' --out cuda.json
    """
    with command_session(Output(), advice="nothing was changed"):
        from pipelines.exports.working_set import DocumentGlobs, write_working_set

        globs = DocumentGlobs(projects=projects or (), platforms=platforms or (), namespaces=namespaces or ())
        typer.echo(write_working_set(run, file, globs=globs, coverage=coverage, bands=bands or ()))


@described(vocab)
def mask(
    tokenizer: args.Tokenizer,
    file: Annotated[Path, typer.Option("--out", metavar="FILE", help="File to write, JSON.")],
    bias: Annotated[
        list[str] | None,
        typer.Option("--bias", metavar="BAND=NUMBER", help="Add this to the logits of a band or category, a glob."),
    ] = None,
    freeze: Annotated[
        list[str] | None,
        typer.Option("--freeze", metavar="BAND", help="Bands or categories whose rows do not learn, a glob."),
    ] = None,
    allow: Annotated[
        list[Path] | None,
        typer.Option("--allow", metavar="FILE", help="Working set: only its ids, or another's."),
    ] = None,
    outside: Annotated[
        float | None,
        typer.Option("--outside", metavar="NUMBER", help="Bias of all other ids.  [default: -inf, which forbids them]"),
    ] = None,
) -> None:
    """Write a mask: a bias of each id for a model's logits, and the rows of its embedding that do not learn.

    Hard with -inf, soft with other numbers. Options may be given again. `cppmill_core.masks.torch_masks` applies a mask
    in torch; `cppmill vocab prove-mask` proves that it was.

    Examples:
      cppmill vocab mask --tokenizer out/tokenizer --freeze 'cuda_*' --out cpu.json
      cppmill vocab mask --tokenizer out/tokenizer --allow cuda.json --outside -4 --bias learned=-0.5 --out soft.json
    """
    with command_session(Output(), advice="nothing was changed"):
        from pipelines.exports.masks import write_mask

        typer.echo(
            write_mask(tokenizer, file, biases=bias or (), freeze=freeze or (), allow=allow or (), outside=outside)
        )


@described(vocab)
def prove_mask(
    checkpoint: Annotated[
        Path, typer.Argument(metavar="CHECKPOINT", exists=True, help="A safetensors file, or a folder of them.")
    ],
    mask_file: Annotated[Path, typer.Option("--mask", metavar="FILE", exists=True, help="The mask.")],
    tokenizer: args.Tokenizer,
    base: Annotated[
        Path | None,
        typer.Option(
            "--base", metavar="CHECKPOINT", exists=True, help="What the training began with, for frozen rows."
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="The receipt to write.")] = None,
    check: Annotated[
        Path | None, typer.Option("--check", metavar="FILE", exists=True, help="The receipt to check.")
    ] = None,
) -> None:
    """Prove that a checkpoint was made with a mask, or check the receipt of that.

    The bias must be in the checkpoint, and frozen rows must be those of --base, byte for byte. The receipt has the
    digests of tokenizer, mask and checkpoint. Exit code 1 if it is not so.

    Examples:
      cppmill vocab prove-mask tuned --mask cpu.json --tokenizer out/tokenizer --base model --out receipt.json
      cppmill vocab prove-mask tuned --mask cpu.json --tokenizer out/tokenizer --check receipt.json
    """
    with command_session(Output(), advice="nothing was changed"):
        from pipelines.exports.masks import prove_mask

        typer.echo(prove_mask(checkpoint, mask_file, tokenizer, base=base, out=out, check=check))
