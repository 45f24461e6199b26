"""Tokenizers given by URL: a private copy, which goes with this process."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from schemas.errors import ConfigError
from schemas.places import is_remote
from transforms.records.versions import follow_current
from transforms.storage.scratch import scratch_folder
from transforms.storage.urls import open_url, store_errors


def local_tokenizer(place: str, *, argument: str = "--tokenizer") -> Path:
    """Return the path of a tokenizer: of the directory or file itself, or of a copy of what a URL names.

    Args:
        place: A tokenizer directory, or the file of one, as a path or a URL; `STORE/current/tokenizer` is followed.
        argument: The argument that named it, for messages.

    Raises:
        ConfigError: If there is nothing at the URL.
        StoreError: If the store fails, or refuses the credentials.
    """
    if not is_remote(place):
        return Path(place)
    url = follow_current(place).rstrip("/")
    with store_errors(url):
        system, path = open_url(url)
        files = [item["name"] for item in _listed(system, path) if item["type"] == "file"]
        if not files:
            raise ConfigError(f"{argument} {place}: no such tokenizer; it takes a directory with a manifest.json")
        folder = Path(tempfile.mkdtemp(dir=scratch_folder())) / path.rpartition("/")[2]
        if files == [path]:
            system.get_file(path, os.fspath(folder))
            return folder
        folder.mkdir()
        for file in files:
            system.get_file(file, os.fspath(folder / file.rpartition("/")[2]))
    return folder


def _listed(system: object, path: str) -> list[dict[str, str]]:
    try:
        found: list[dict[str, str]] = system.ls(path, detail=True)  # type: ignore[attr-defined]  # fsspec
    except FileNotFoundError:
        return []
    return found
