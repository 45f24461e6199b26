"""The command `adopt`: it turns arguments into a call of `pipelines.tokenizers.adopt`, which is imported late."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pipelines.cli.help import described
from pipelines.console.console import Output, command_session

commands = typer.Typer()


@described(commands)
def adopt(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="SOURCE", help="A SentencePiece .model, a tokenizer.json, or a folder with one of them."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The tokenizer directory to make.")],
    bos: Annotated[
        str | None, typer.Option("--bos", metavar="NAME", help="The control token that begins documents.")
    ] = None,
    eos: Annotated[
        str | None, typer.Option("--eos", metavar="NAME", help="The control token that ends documents.")
    ] = None,
) -> None:
    """Make a tokenizer directory of another program's tokenizer.

    Its files are copied as they are, and a manifest says what its ids are. Any SentencePiece model and byte-level BPE
    that gives all text back as it was; what would lose text is refused by name. BOS and EOS are those that the source
    names; --bos and --eos take others of its control tokens.

    Examples:
      cppmill adopt gemma/tokenizer.model --out gemma-tokenizer
      cppmill adopt starcoder --out starcoder-tokenizer --bos '<|endoftext|>'
      cppmill run ~/src --out out --tokenizer gemma-tokenizer
    """
    with command_session(Output(), advice="nothing was written"):
        from pipelines.tokenizers.adopt import adopt_tokenizer

        for line in adopt_tokenizer(source, out, bos=bos, eos=eos):
            typer.echo(line)
