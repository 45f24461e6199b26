"""Programs that the distribution packages, installed by its own package manager where they are not on PATH."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from deploy.local.commands import run
from schemas.errors import ConfigError

PACKAGES = ("chromium",)
"""Debian packages, each with a program of its name: the browser that the tests of pages open them in."""


def install_package(name: str, *, log_folder: Path, say: Callable[[str], None] = print) -> None:
    """Install a Debian package, unless its program is on PATH.

    Args:
        name: One of `PACKAGES`.
        log_folder: Gets the log of apt-get.
        say: Told what is done, a line each.

    Raises:
        ConfigError: If it cannot be installed here: with what to install.
    """
    if shutil.which(name) is None:
        hint = f"install {name} as this system does it; on Debian or Ubuntu: apt-get install {name}"
        if os.geteuid() != 0:
            raise ConfigError(f"{name}: not on PATH, and only root may install it; {hint}")
        say(f"Installing the package {name}")
        environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        for command in (["update"], ["install", "--yes", "--no-install-recommends", name]):
            log = log_folder / f"{name}-{command[0]}.log"
            run(["apt-get", *command], cwd=log_folder, log=log, hint=hint, environment=environment)
    say(f"{name}: {shutil.which(name)}")
