"""Commands that write one file refuse a folder in its place, before they read anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

COMMANDS = {
    "byte-tables": ("--tokenizer", "{tokenizer}", "--out"),
    "vocab mask": ("--tokenizer", "{tokenizer}", "--freeze", "*", "--out"),
    "vocab working-set": ("{run}", "--projects", "*", "--out"),
    "vocab map": ("{tokenizer}", "{tokenizer}", "--out"),
    "lengths": ("{run}", "--plot"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_folder_in_place_of_the_file_is_refused(command: str, run: Any, cppmill: Any, tmp_path: Path) -> None:
    folder = tmp_path / {"vocab map": "file.parquet", "lengths": "file.svg"}.get(command, "file")
    folder.mkdir()
    words = [word.format(run=run.out, tokenizer=run.out / "tokenizer") for word in COMMANDS[command]]
    done = cppmill(*command.split(), *words, folder, check=False)
    assert done.returncode == 2
    assert f"{words[-1]} {folder}: it is a folder; name a file in it" in " ".join(done.stderr.split())
    assert not done.stdout
    assert not list(folder.iterdir())
