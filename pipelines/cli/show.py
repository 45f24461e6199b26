"""The commands `show` and `explain`: arguments to calls of `pipelines.tokenizers.show`, which is imported late."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from pipelines.cli import arguments as args
from pipelines.cli.help import described
from pipelines.console.console import exit_on_error

commands = typer.Typer()


@described(commands)
def show(
    tokenizer: args.Tokenizer,
    file: Annotated[str, typer.Argument(metavar="[FILE|-]", help="File of any bytes; - is the standard input.")] = "-",
    ids: Annotated[bool, typer.Option("--ids", help="Print its id after each token.")] = False,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", dir_okay=False, help="Write a page instead.")
    ] = None,
) -> None:
    """Print a source file with its tokens in colour.

    Each token is shaded by its band, atomic ones are bold; without colours a bar ends each token. The page opens from
    disk, and shows details of the token under the pointer.

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


@described(commands)
def explain(
    tokenizer: args.Tokenizer,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The text.")],
    as_json: args.Json = False,
) -> None:
    """Print which merges made each token of a text.

    In the order in which they were applied, each with its rank and where it was learned: over the fixed tokens
    (seed), in the words of the corpus, or in its lines (superwords).

    Example:
      cppmill explain --tokenizer llvm/tokenizer 'std::vector<int> v;'
    """
    with exit_on_error():
        from pipelines.tokenizers.show import explain_text

        for line in explain_text(text.encode("utf-8", "surrogateescape"), tokenizer, as_json=as_json):
            sys.stdout.write(line + "\n")
