"""The reference pages of the site, generated when it is built: commands from `--help`, options from their models."""

from __future__ import annotations

from collections.abc import Iterator

import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from typer.core import TyperGroup
from typer.testing import CliRunner

from configs.flags import first_paragraph
from configs.problems import describe_allowed, show
from configs.tables import FLAGS, KEYS, TABLES
from pipelines.cli.app import app


def commands_page() -> str:
    """Return the page of all commands in Markdown, each with its `--help`."""
    parts = ["# Commands\n\nThis page lists every command with its `--help`.\n"]
    for name in command_names():
        done = CliRunner().invoke(app, [*name.split(), "--help"], prog_name="cppmill", env={"COLUMNS": "110"})
        parts.append(f"## cppmill {name}\n\n```text\n{done.output.strip()}\n```\n")
    return "\n".join(parts)


def command_names() -> list[str]:
    """Return the names of all commands; commands of a group have the group's name before theirs.

    Example:
        >>> "vocab diff" in command_names()
        True
    """
    group = typer.main.get_command(app)
    return sorted(_names(group)) if isinstance(group, TyperGroup) else []


def _names(group: TyperGroup) -> Iterator[str]:
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from (f"{name} {inner}" for inner in _names(command))
        else:
            yield name


def options_page() -> str:
    """Return the page of all options of a run in Markdown: a table per TOML table, a row per key."""
    parts = [
        "# Options\n\nThis page lists every key of a run file with its default, its flag and what it takes. "
        "`--set TABLE.KEY=VALUE` sets any of them.\n"
    ]
    flags = {(flag.table, flag.key): name for name, flag in FLAGS.items()}
    for table, model in TABLES.items():
        parts.append(f"## [{table}]\n\n| key | default | flag | takes | |\n|---|---|---|---|---|")
        for key, field in model.model_fields.items():
            if key in KEYS[table]:
                cells = (f"`{key}`", _default(field), flags.get((table, key), ""), describe_allowed(model, key))
                parts.append(
                    "| " + " | ".join([*(cell.replace("|", r"\|") for cell in cells), _help(model, key)]) + " |"
                )
        parts[-1] += "\n"
    return "\n".join(parts)


def _default(field: FieldInfo) -> str:
    if field.default is None or field.is_required():
        return ""
    text = show(field.default)
    return f"`{text}`"


def _help(model: type[BaseModel], key: str) -> str:
    return first_paragraph(model, key).replace("|", r"\|")
