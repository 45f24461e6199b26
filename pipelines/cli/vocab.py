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

    Makes a folder with a copy of the vocabulary of this installation (DIR/inherited), own.toml for your tokens,
    categories, morphemes and cuts, and a separate ids.lock. `run --vocab DIR` builds with it.

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
            "--from", metavar="FILE", dir_okay=False, exists=True, help="Add the names in a file, one per line."
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
            help="How a scan counts the names: ident, as whole identifiers; prefix, also as prefixes of identifiers; "
            "qualified, as whole names with ::; dollar, as $name; sql_string, as words in capitals in string literals; "
            "string, as any words in string literals, also with dots.",
        ),
    ] = "ident",
    api_prefixes: Annotated[
        str, typer.Option("--api-prefixes", metavar="A,B", help="Prefixes that make a name distinctive, such as acme_.")
    ] = "",
    keep: Annotated[bool, typer.Option("--keep", help="A scan never cuts the names, however rare they are.")] = False,
    band: Annotated[
        str,
        typer.Option(
            "--band",
            metavar="NAME",
            help="Band of the ids: domain, where a name is always a token of its own, or library.",
        ),
    ] = "domain",
    pattern: Pattern = "cpp-words-1",
) -> None:
    """Give names free ids in a vocabulary of your own.

    Names that the vocabulary already has keep their ids; with --keep a scan no longer cuts them. If a name breaks a
    rule (for example, the pattern cuts it into words), nothing is written, and the message says what to do instead.

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
            "--vocab", metavar="DIR", exists=True, help="Vocabulary that they are for.  [default: the one of the run]"
        ),
    ] = None,
    names: Annotated[int, typer.Option("--names", metavar="N", min=0, help="Most names to propose.")] = 100,
    morphemes: Annotated[int, typer.Option("--morphemes", metavar="N", min=0, help="Most morphemes to propose.")] = 9,
) -> None:
    """Propose names and morphemes for a vocabulary of your own.

    Prints TOML for the vocabulary's folder: the names and morphemes that take the most tokens in the run's text. Each
    has a free id, hits, documents, projects and the bytes that it would save. Names that a build would cut are left
    out.

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
    """Pin the fixed ids of a tokenizer for good.

    Appends them to ids.lock, which no other command writes.

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

    Finds duplicates, tokens that no text can produce, seeds that would break an atomic token, wrong bands, holes, and
    moved ids. Exit code 1 if anything is an error.

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
            "--id-map", metavar="FILE", help="Write the map of ids: FILE.parquet or FILE.npy; may be repeated."
        ),
    ] = None,
    verbose: args.FullTables = False,
) -> None:
    """Compare the tokens and ids of two tokenizers.

    Counts the tokens that were added, removed, moved and kept; --verbose lists each. Exit code 1 if a fixed id moved.
    With the map, a model can keep the embedding rows of its old tokens; docs/how-to/models/changing-the-tokenizer.md
    has an example.

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
        Path, typer.Argument(metavar="NEW", parser=args.local_tokenizer, help="Tokenizer that the model will use.")
    ],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Map to write, .parquet.")],
    embeddings: Annotated[
        Path | None, typer.Option("--embeddings", metavar="FILE", help="The model's rows by old id, .npy.")
    ] = None,
    init: Annotated[Path | None, typer.Option("--init", metavar="FILE", help="Rows to write by new id, .npy.")] = None,
) -> None:
    """Map the ids of two tokenizers, and make initial embeddings.

    A new token is mapped to the old tokens that spell it, and its row is their mean. OLD and NEW are tokenizer
    directories, or what `adopt` accepts.

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
        typer.Option(
            "--projects", metavar="GLOB", help="Only documents of these projects; may be repeated.  [default: *]"
        ),
    ] = None,
    platforms: Annotated[
        list[str] | None,
        typer.Option(
            "--platforms", metavar="CATEGORY=LABEL", help="Only documents with these platforms; globs; may be repeated."
        ),
    ] = None,
    namespaces: Annotated[
        list[str] | None,
        typer.Option(
            "--namespaces", metavar="GLOB", help="Only documents with these namespaces in code; may be repeated."
        ),
    ] = None,
    bands: Annotated[
        list[str] | None,
        typer.Option("--bands", metavar="GLOB", help="Add all ids of these bands or categories; may be repeated."),
    ] = None,
    coverage: Annotated[
        float, typer.Option("--coverage", metavar="FRACTION", help="Share of the documents' tokens to cover.")
    ] = 0.99,
) -> None:
    """Write the smallest set of ids that covers some documents.

    It covers a share of their tokens (--coverage). FILE has the ids, sorted, and records what they were made from.
    `cppmill_core.working_set` makes a mask for a model's logits from it, so that the model writes only these ids. The
    mask makes nothing faster. Control tokens and the 256 bytes are always in the set. A document must match all of
    --projects, --platforms and --namespaces. If you repeat one of them, the document must match one of the values.

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
        typer.Option(
            "--bias", metavar="BAND=NUMBER", help="Add this number to the logits of a band or category (a glob)."
        ),
    ] = None,
    freeze: Annotated[
        list[str] | None,
        typer.Option("--freeze", metavar="BAND", help="Freeze the rows of a band or category (a glob)."),
    ] = None,
    allow: Annotated[
        list[Path] | None,
        typer.Option("--allow", metavar="FILE", help="Allow the ids of this working set; may be repeated."),
    ] = None,
    outside: Annotated[
        float | None,
        typer.Option("--outside", metavar="NUMBER", help="Bias of all other ids.  [default: -inf, which forbids them]"),
    ] = None,
) -> None:
    """Write a mask: biases of ids, and embedding rows to freeze.

    A model adds the bias of each id to its logit. The frozen rows do not learn.

    A bias of -inf forbids an id; any other number makes it more or less likely. Options may be repeated.
    `cppmill_core.masks.torch_masks` applies a mask in torch; `cppmill vocab prove-mask` proves that it was applied.

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
            "--base",
            metavar="CHECKPOINT",
            exists=True,
            help="Checkpoint that the training began with, for frozen rows.",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="The receipt to write.")] = None,
    check: Annotated[
        Path | None, typer.Option("--check", metavar="FILE", exists=True, help="The receipt to check.")
    ] = None,
) -> None:
    """Prove that a checkpoint was made with a mask.

    With --check, check such a proof.

    The checkpoint must contain the bias, and its frozen rows must equal those of --base, byte for byte. The receipt has
    the digests of tokenizer, mask and checkpoint. Exit code 1 if the proof fails.

    Examples:
      cppmill vocab prove-mask tuned --mask cpu.json --tokenizer out/tokenizer --base model --out receipt.json
      cppmill vocab prove-mask tuned --mask cpu.json --tokenizer out/tokenizer --check receipt.json
    """
    with command_session(Output(), advice="nothing was changed"):
        from pipelines.exports.masks import prove_mask

        typer.echo(prove_mask(checkpoint, mask_file, tokenizer, base=base, out=out, check=check))
