"""The packages of the image, fetched by pip into the cache: the build mounts them and asks no index.

The hashes of the lock are checked here, and again by the pip of the image.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
from pathlib import Path

from deploy.local.commands import run
from deploy.local.fetch import make_whole

_PYTHON = "3.11"
# Of PyPI's names for older C libraries, as many as the packages of the lock use: pip takes each only by its name.
_PLATFORMS = ("2_28", "2_27", "2_26", "2_24", "2_17", "2014", "2_12", "2010", "2_5", "1")
_FROM_SOURCE = "google-apitools"
"""The one package of the lock without a wheel of its version; pure Python."""


def fetch_wheels(requirements: Path, cache: Path) -> Path:
    """Return the folder with every package of a lock; other folders of the cache are deleted when it is new.

    Args:
        requirements: The lock.
        cache: Where the folder is made.

    Raises:
        ConfigError: If pip fails: with the end of its log.
    """
    folder = cache / f"wheels-{hashlib.sha256(requirements.read_bytes()).hexdigest()[:12]}"
    if not folder.exists():
        make_whole(folder, lambda partial: _download(requirements.absolute(), partial))
        for other in cache.glob("wheels-*"):
            if other != folder:
                shutil.rmtree(other)
    return folder


def _download(requirements: Path, folder: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "--require-hashes", "--no-deps", "--no-build-isolation"]
    command += ["--only-binary", ":all:", "--no-binary", _FROM_SOURCE, "--python-version", _PYTHON]
    for name in _PLATFORMS:
        command += ["--platform", f"manylinux{'_' if '_' in name else ''}{name}_x86_64"]
    command += ["--dest", str(folder), "--requirement", str(requirements)]
    run(command, cwd=folder, log=folder / "pip.log", hint="run `make setup`")
