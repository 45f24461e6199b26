"""A Python for aarch64 on a machine of another kind: Debian's, run by QEMU, for the tests of the aarch64 wheel.

QEMU and mmdebstrap are programs of this system. Debian's packages are checked by its signatures and unpacked into the
cache; none of their scripts run, so nothing here needs root, and this system is left alone. Children that it starts are
not emulated: what is tested must run in one process.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import filelock

from deploy.local.commands import run
from schemas.errors import ConfigError

SUITE = "bookworm"
"""The release of Debian, 12: its Python is the oldest that the wheels are for, its glibc newer than theirs."""

PACKAGES = ("python3.11", "libstdc++6")
"""What is unpacked, with what these depend on: the wheels of other projects need the C++ library too."""

_QEMU = ("qemu-aarch64-static", "qemu-aarch64")
_HINT = "on Debian or Ubuntu: apt-get install qemu-user-static mmdebstrap debian-archive-keyring"


def python_home() -> Path:
    """Return where the Python for aarch64 is or will be: below `cppmill` in the user's cache folder."""
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "cppmill" / f"aarch64-{SUITE}-{PACKAGES[0]}"


def fetch_python(*, say: Callable[[str], None] = print) -> Path:
    """Fetch what is missing of the Python for aarch64, and return its folder.

    Args:
        say: Told what is done, a line each.

    Raises:
        ConfigError: If QEMU or mmdebstrap is missing, with what to install; if mmdebstrap fails, with its last words.
    """
    _qemu()
    home = python_home()
    home.parent.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(home.with_name(f".{home.name}.lock")):
        if not home.exists():
            say(f"Fetching Debian's {' and '.join(PACKAGES)} for aarch64 (about 30 MB)")
            partial = home.with_name(f".{home.name}.partial")
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir()
            _unpack(partial)
            partial.rename(home)
    return home


def python_command(*arguments: str | Path) -> list[str]:
    """Return the command that runs the fetched Python with arguments.

    Raises:
        ConfigError: If QEMU is missing, with what to install.

    Example:
        >>> python_command("-c", "pass")  # doctest: +SKIP
        ['/usr/bin/qemu-aarch64-static', '-L', '/root/.cache/cppmill/...', '.../python3.11', '-c', 'pass']
    """
    home = python_home()
    return [_qemu(), "-L", str(home), str(home / "usr/bin" / PACKAGES[0]), *map(str, arguments)]


def _qemu() -> str:
    found = next(filter(None, map(shutil.which, _QEMU)), None)
    if found is None:
        raise ConfigError(f"{_QEMU[0]}: not on PATH, and the aarch64 wheel is tested with it; {_HINT}")
    return found


def _unpack(folder: Path) -> None:
    """Unpack the packages; by way of an archive, as a folder would need root."""
    archive = folder / "root.tar"
    options = ("--variant=extract", "--architectures=arm64", f"--include={','.join(PACKAGES)}")
    run(["mmdebstrap", *options, SUITE, archive], cwd=folder, log=folder / "mmdebstrap.log", hint=_HINT)
    # Devices are not needed, and only root can make them.
    unpacking: list[str | Path] = ["tar", "--extract", "--no-same-owner", "--exclude=./dev/*", "--file", archive]
    run(unpacking, cwd=folder, log=folder / "tar.log", hint="install tar")
    archive.unlink()
