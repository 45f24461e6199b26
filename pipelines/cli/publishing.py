"""Commands that sign and publish finished runs: arguments to calls of programs, imported late."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pipelines.cli import arguments as args
from pipelines.cli.groups import Group
from pipelines.cli.options import described
from pipelines.console.console import Output, command_session
from schemas.options import REENCODED

commands = typer.Typer()


@described(commands, under=Group.PUBLISH)
def sign(
    run: args.RunFolder,
    key: Annotated[
        Path,
        typer.Option(
            "--key", metavar="FILE", help="SSH private key, or a public key if the agent has the private key."
        ),
    ],
) -> None:
    """Sign the receipt of a run with an SSH key, offline.

    Writes RUN/receipt.json.sig with ssh-keygen, in the namespace `cppmill`. The receipt names every file of the run, so
    the signature covers all of them. `cppmill verify RUN --signed-by FILE` checks it, and so does `ssh-keygen -Y
    verify`. If the run does not verify, it is not signed.

    Example:
      cppmill sign llvm --key ~/.ssh/id_ed25519
    """
    with command_session(Output(), advice="nothing was changed"):
        from transforms.records.receipts import unchanged_receipt
        from transforms.records.signatures import sign as sign_receipt
        from transforms.storage.folder import OutputFolder

        out = OutputFolder(run)
        with unchanged_receipt(out) as check_unchanged:
            _check_verified(run, None)
            typer.echo(sign_receipt(out, key, check_unchanged))


@described(commands, under=Group.PUBLISH)
def push(
    name: Annotated[
        str, typer.Argument(metavar="ORG/NAME", help="The dataset repository; created if it does not exist.")
    ],
    run: args.RunFolder,
    private: Annotated[bool, typer.Option("--private", help="Make a new repository private.")] = False,
    revision: Annotated[
        str, typer.Option("--revision", metavar="BRANCH", help="The branch; created if it does not exist.")
    ] = "main",
    signed_by: args.SignedBy = None,
    creator: Annotated[
        str | None, typer.Option("--creator", metavar="NAME", help="Creator of the dataset, for the card.")
    ] = None,
    date: Annotated[str | None, typer.Option("--date", metavar="YYYY-MM-DD", help="Date of publication.")] = None,
) -> None:
    """Publish a finished run on the Hugging Face Hub.

    Publishes its shards, tokenizer, receipt and signature, with a dataset card, a Croissant file and a statement. If
    the run does not verify, nothing is published. Files that are there with the same digest are not sent again, so the
    same command continues a push that was killed. The token is HF_TOKEN in the environment; HF_ENDPOINT sets another
    Hub.

    Examples:
      HF_TOKEN=hf_... cppmill push acme/llvm-tokens llvm --private
      cppmill push acme/llvm-tokens llvm --revision v2 --signed-by allowed_signers
    """
    with command_session(Output(), advice="the same command sends what is missing"):
        from pipelines.publish.hub import Repository, endpoint, push
        from transforms.records.croissant import Publication

        url = f"{endpoint()}/datasets/{name}"
        publication = Publication(name=name.rpartition("/")[2], url=url, creator=creator, date=date)
        repository = Repository(name=name, revision=revision, private=private)
        for line in push(run, repository, publication, verify=lambda: _check_verified(run, signed_by)):
            typer.echo(line)


def _check_verified(run: str, signed_by: Path | None) -> None:
    """Verify a run, and end with exit code 1 if anything is wrong."""
    from pipelines.cli.tables import Answer, print_differences
    from pipelines.versions import verify

    found = verify.verify(run, signed_by=signed_by)
    print_differences(found, Answer(out=run, record="receipt", reencoded=REENCODED), as_json=False)


@described(commands, under=Group.PUBLISH)
def lineage(
    run: args.RunFolder,
    file: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write the events, one JSON object per line.")
    ] = None,
    url: Annotated[
        str | None,
        typer.Option(
            "--send", metavar="URL", help="Send the events to a server, such as Marquez, with OpenLineage's client."
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="Name of the dataset.  [default: the name of RUN or its store]"),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(
            "--time", metavar="TIME", help="When the run ended, if it has no event log: 2026-11-30T12:00:00Z."
        ),
    ] = None,
) -> None:
    """Write or send a run's receipt as OpenLineage events.

    The events are the start and the end of the run. Corpus, documents, tokens and tokenizer are datasets, with digests,
    columns and sizes. Needs cppmill[lineage]. If the server needs a key, set OPENLINEAGE_API_KEY in the environment.

    Examples:
      cppmill lineage llvm --out llvm-lineage.jsonl
      cppmill lineage llvm --send http://localhost:5000
    """
    with command_session(Output(), advice="nothing was changed"):
        from pipelines.publish.open_lineage import send_events, write_events
        from pipelines.publish.provenance import default_name
        from schemas.errors import ConfigError

        if (file is None) == (url is None):
            raise ConfigError("give one of --out FILE and --send URL")
        called = name or default_name(run)
        lines = (
            write_events(run, file, name=called, time=time)
            if file
            else send_events(run, url or "", name=called, time=time)
        )
        for line in lines:
            typer.echo(line)
