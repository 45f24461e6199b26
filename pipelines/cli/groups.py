"""The groups of commands in `cppmill --help`: each command names its own where it is declared."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from typer.core import TyperGroup


class Group(StrEnum):
    """The headings of `cppmill --help`, in their order."""

    RUN = "Run"
    LOOK = "Look"
    EXPORT = "Export"
    VOCABULARY = "Vocabulary"
    PUBLISH = "Publish"
    SHELL = "Shell"


class GroupedCommands(TyperGroup):
    """Commands that help lists under the headings of their groups, in each in the order of their declaration."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - typer's private classes
        """Write the commands, each with the first line of its help."""
        width = max(map(len, self.commands))  # the second columns of all groups are in one line
        for group in Group:
            rows = [
                (f"{name:{width}}", command.get_short_help_str(formatter.width - 6 - width))
                for name, command in self.commands.items()
                if getattr(command, "rich_help_panel", None) == group
            ]
            if rows:
                with formatter.section(group):
                    formatter.write_dl(rows)
