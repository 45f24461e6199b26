"""Commands that take documents out of datasets, and prove it: arguments to calls of programs, imported late."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from pipelines.cli import arguments as args
from pipelines.cli.groups import Group
from pipelines.cli.options import described
from pipelines.cli.runs import RETOKENIZE_CODES, print_outcome
from pipelines.console.console import Output, command_session
from schemas.errors import ConfigError, ExitCode

commands = typer.Typer()


@described(commands, under=Group.PUBLISH, exit_codes=RETOKENIZE_CODES)
def withdraw(
    target: Annotated[
        str,
        typer.Argument(
            metavar="STORE|FILE.json", help="The store of `retokenize`, or a list file for `run --withdrawn`."
        ),
    ],
    doc_ids: Annotated[
        str | None,
        typer.Option(
            "--doc-ids", metavar="FILE", help="File with a doc_id (SHA-256) per line; - is the standard input."
        ),
    ] = None,
    paths: Annotated[
        str | None,
        typer.Option(
            "--paths",
            metavar="FILE",
            help="File with a path per line, as in documents; a path that ends in / is a folder.",
        ),
    ] = None,
    projects: Annotated[str | None, typer.Option("--projects", metavar="A,B", help="Whole projects.")] = None,
    licenses: Annotated[
        str | None,
        typer.Option("--licenses", metavar="A,B", help="Documents that the source says are under these licences."),
    ] = None,
    copies: Annotated[
        bool, typer.Option("--copies", help="Also withdraw all documents of the current version with the same content.")
    ] = False,
    sources: Annotated[
        list[str] | None,
        typer.Option(
            "--source", metavar="SOURCE", help="Make the next version now, from this source; may be repeated."
        ),
    ] = None,
    config: args.Config = None,
    keep: Annotated[
        int,
        typer.Option(
            "--keep", metavar="N", min=1, help="Keep this many versions; older ones still contain the documents."
        ),
    ] = 3,
    quiet: args.Quiet = False,
    as_json: args.Json = False,
    verbose: args.Verbose = False,
) -> None:
    """Take documents out of a store of versions, for good.

    Adds their hashes to STORE/withdrawn.json. With --source, the command also makes the next version, like
    `retokenize`; otherwise the next `retokenize` does. From then on the documents are `filtered[withdrawn]`. Ids do not
    move, and only units with these documents are redone. The command names the versions that still contain them;
    --keep 1 deletes these. For a single run, FILE.json is a list for `run --withdrawn`.

    Examples:
      cppmill withdraw /data/cpp --paths gone.txt --source ~/src --keep 1
      cppmill withdraw withdrawn.json --projects acme,zlib
    """
    output = Output(quiet=quiet, as_json=as_json, verbose=verbose)
    with command_session(output) as reporter:
        from pipelines.versions import withdraw as program

        asked = program.make_withdrawals(
            doc_ids=program.read_values(doc_ids) if doc_ids else (),
            paths=program.read_paths(paths) if paths else (),
            projects=args.names(projects),
            licenses=args.names(licenses),
        )
        if program.is_list(target):
            if sources or copies:
                raise ConfigError(f"{target}: --source and --copies need a store, not the file of a list")
            lines = list(program.extend_list(Path(target), asked))
        else:
            asked, lines = program.record(target, asked, copies=copies)
        for line in lines:
            reporter.note(line)
        if not sources:
            return
        from pipelines.versions.retokenize import Request, retokenize

        flags = {"SOURCE": sources, "--store": target}
        print_outcome(retokenize(Request(file=config, flags=flags, keep=keep, withdrawals=asked), reporter), output)


@described(commands, under=Group.PUBLISH, name="prove-absent")
def prove_absent(
    run: args.RunFolder,
    doc_id: Annotated[str, typer.Argument(metavar="DOC_ID", help="SHA-256 of the document's bytes.")],
) -> None:
    """Print the proof that a document is not in a dataset.

    The proof is JSON, which checks/check_exclusion.py checks without cppmill. For this you need only the root of the
    hash tree over all documents, which is in the receipt of every run with a list of withdrawn documents. If the
    document is in the dataset, the command proves that instead, and the exit code is 1. For the source of a document
    that was redacted or converted there is no proof, and the exit code is 1 too.

    Example:
      cppmill prove-absent llvm e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 > proof.json
    """
    with command_session(Output(), advice="nothing was changed"):
        from transforms.records.exclusion import find_made, prove
        from transforms.records.receipts import read_receipt
        from transforms.storage.folder import OutputFolder

        out = OutputFolder(run)
        receipt = read_receipt(out)
        proof = prove(out, receipt, doc_id)
        made = [] if proof["is_in"] else find_made(out, receipt, doc_id)
        if made:
            documents = f"{len(made):,} in the dataset were made from it, redacted or converted: {', '.join(made[:3])}"
            typer.echo(f"{doc_id} is no document of {run}, but {documents}", err=True)
            raise SystemExit(int(ExitCode.FAILED_CHECK))
        typer.echo(json.dumps(proof))
        if proof["is_in"]:
            typer.echo(f"{doc_id} is in the dataset of {run}", err=True)
            raise SystemExit(int(ExitCode.FAILED_CHECK))


@described(commands, under=Group.PUBLISH)
def affected(
    store: Annotated[str, typer.Argument(metavar="STORE", help="The store of `retokenize`, with withdrawn documents.")],
    places: Annotated[
        list[str] | None, typer.Argument(metavar="[EXPORT|CHECKPOINT]...", help="Exports, and stamped checkpoints.")
    ] = None,
    as_json: args.Json = False,
) -> None:
    """List what still contains withdrawn documents.

    Lists the versions of the store, including those that were deleted after the withdrawal. Finds exports by the
    receipt that they were made from. For checkpoints, it reads the position of the loader, like `trace`, and finds the
    withdrawn documents that the training consumed up to there.

    Example:
      cppmill affected /data/cpp exports/llvm-8k checkpoints/*.pt
    """
    with command_session(Output(as_json=as_json), advice="nothing was changed"):
        from pipelines.exports.affected import print_affected

        print_affected(store, places or [], as_json=as_json)
