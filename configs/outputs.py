"""Checks of the files that commands write beside a run, made before anything is read."""

from __future__ import annotations

import os
from pathlib import Path

from schemas.digests import parse_json
from schemas.errors import ConfigError
from schemas.places import is_remote

_RECORDS = ("receipt.json", "manifest.json")
_FORMATS = ("cppmill-receipt-", "cppmill-trial-", "cppmill-export-", "cppmill-tokenizer-")
"""The records that list all files beside them, of a run, a trial, an export or a tokenizer, and their formats."""


def check_parent(path: Path, *, option: str) -> None:
    """Check that the folder of a file exists, and that no record lists its files; of a link, that of what it names.

    Args:
        path: The file, or a folder that is made there.
        option: The option that named it, for the message.

    Raises:
        ConfigError: If it does not exist, or is in a run, an export, a tokenizer or a store.
    """
    folder = Path(os.path.realpath(path)).parent if path.is_symlink() else path.parent
    if not folder.is_dir():
        raise ConfigError(f"{option} {path}: there is no folder {folder}; make it, or name another")
    check_unlisted(path, option=option)


def check_unlisted(path: Path | str, *, option: str) -> None:
    """Check that a file or folder is in none whose record lists all files, and in no store of versions.

    Args:
        path: The file or folder; of a URL nothing is asked.
        option: The option that named it, for the message.

    Raises:
        ConfigError: Naming the record or the store.
    """
    for parent in () if is_remote(str(path)) else Path(os.path.realpath(path)).parents:
        record = next(filter(_is_record, (parent / name for name in _RECORDS)), None)
        if record is not None:
            raise ConfigError(f"{option} {path}: {record} lists every file there; name another folder")
        if (parent / "current").is_symlink() and (parent / "versions").is_dir():
            raise ConfigError(f"{option} {path}: {parent} is a store of versions; name another folder")


def check_file(path: Path, *, option: str) -> None:
    """Check that a file can be written at a path: its folder exists, and it is no folder itself.

    Args:
        path: The file.
        option: The option that named it, for the message.

    Raises:
        ConfigError: If it cannot.
    """
    check_parent(path, option=option)
    if path.is_dir():
        raise ConfigError(f"{option} {path}: it is a folder; name a file in it")


def check_outside(path: Path, run: str, *, option: str) -> None:
    """Check that a file or folder is not in the folder of a run, because the run's receipt names every file there.

    Args:
        path: The file or folder.
        run: The run's folder, or its URL.
        option: The option that named the file, for the message.

    Raises:
        ConfigError: If it is in the run's folder.
    """
    if not is_remote(run) and path.resolve().is_relative_to(Path(run).resolve()):
        raise ConfigError(
            f"{option} {path}: in the run's own folder, whose receipt names every file; name another folder"
        )


def _is_record(path: Path) -> bool:
    try:
        record = parse_json(path.read_bytes()) if path.is_file() else None
    except (OSError, ValueError):
        return False
    return isinstance(record, dict) and str(record.get("format")).startswith(_FORMATS)
