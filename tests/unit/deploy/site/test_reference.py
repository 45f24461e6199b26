"""The generated reference: every command and every key of a run file, as the program has them."""

from __future__ import annotations

import re

import pytest

from configs.tables import FLAGS, KEYS
from deploy.site.reference import command_names, commands_page, options_page


@pytest.fixture(scope="module")
def commands() -> str:
    return commands_page()


def test_every_command_has_its_help(commands: str) -> None:
    names = command_names()
    assert {"run", "verify", "vocab diff", "retokenize", "sequences"} <= set(names)
    assert re.findall(r"^## cppmill (.+)$", commands, re.M) == names
    assert len(re.findall(r"^Usage: cppmill ", commands, re.M)) == len(names)


def test_every_flag_of_a_run_is_in_its_help(commands: str) -> None:
    text = commands.split("## cppmill run\n")[1].split("\n## ")[0]
    flags = [name for flag in FLAGS for name in flag.split("/") if name.startswith("--") and name != "--"]
    assert len(flags) > 30
    assert [name for name in flags if name not in text] == []


def test_every_key_of_a_run_file_has_a_row_with_its_flag() -> None:
    sections = dict(re.findall(r"^## \[(\w+)\]\n([\s\S]*?)(?=^## |\Z)", options_page(), re.M))
    assert {name: set(re.findall(r"^\| `(\w+)` \|", text, re.M)) for name, text in sections.items()} == KEYS
    assert "| `memory_bytes` | `2147483648` | --memory-bytes |" in sections["run"]
