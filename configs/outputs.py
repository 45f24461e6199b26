"""Checks of the files that commands write beside a run, made before anything is read."""

from __future__ import annotations

import os
from pathlib import Path

from schemas.errors import ConfigError
from schemas.places import is_remote


def check_parent(path: Path, *, option: str) -> None:
    """Check that the folder of a file exists; of a link that leads nowhere, that of the file that it names.

    Args:
        path: The file, or a folder that is made there.
        option: The option that named it, for the message.

    Raises:
        ConfigError: If it does not exist.
    """
    folder = Path(os.path.realpath(path)).parent if path.is_symlink() else path.parent
    if not folder.is_dir():
        raise ConfigError(f"{option} {path}: there is no folder {folder}; make it, or name another")


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
