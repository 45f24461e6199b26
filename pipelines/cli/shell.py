"""Commands that help to begin: a file of options to edit, and what completes commands and options in a shell."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

import typer

from pipelines.cli.groups import ASKED, PROGRAM, Group
from pipelines.cli.options import described
from pipelines.console.console import exit_on_error

commands = typer.Typer()


@described(commands, under=Group.RUN)
def init(
    file: Annotated[Path, typer.Argument(metavar="[FILE]", help="File to write.", dir_okay=False)] = Path("run.toml"),
) -> None:
    """Write a file of options for `run --config`, to edit.

    The file lists every option of a run as a comment, with what it does and its default. Remove the `#` of those that
    you change. An existing file is not overwritten.

    Examples:
      cppmill init
      cppmill init llvm.toml
    """
    with exit_on_error():
        from configs.example import write_run_file

        write_run_file(file)
        typer.echo(f"{file}: every option of a run as a comment; edit it, then: cppmill run --config {file}")


@described(commands, under=Group.SHELL)
def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], typer.Argument(metavar="bash|zsh|fish", help="The shell.")],
) -> None:
    """Print a script that completes commands in a shell.

    It also completes options and their values. Use it for one session, or put it into a file that the shell reads when
    it starts.

    Examples:
      source <(cppmill completion bash)
      cppmill completion bash >> ~/.bashrc
      cppmill completion zsh > ~/.zfunc/_cppmill
      cppmill completion fish > ~/.config/fish/completions/cppmill.fish
    """
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    typer.echo(get_completion_script(prog_name=PROGRAM, complete_var=ASKED, shell=shell))


def answer_shell() -> None:
    """Let the parser answer if a shell asks for completions; loads nothing if none does."""
    if ASKED in os.environ:
        from typer.completion import completion_init  # type: ignore[attr-defined]

        completion_init()
