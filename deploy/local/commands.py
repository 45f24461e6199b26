"""Running another program to its end: its output goes to a log, and a failure is reported with the last lines.

Programs that are not on PATH are installed this way, by the distribution's package manager.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from schemas.errors import ConfigError

PACKAGES = ("chromium",)
"""Debian packages, each with a program of its name: the browser that the tests of pages open them in."""

_SHOWN_LINES = 20


def run(
    command: Sequence[str | Path],
    *,
    cwd: Path,
    log: Path,
    hint: str,
    environment: Mapping[str, str] | None = None,
) -> None:
    """Run a command to its end.

    Args:
        command: The program and its arguments.
        cwd: Its working directory.
        log: Gets both of its streams.
        hint: What to do where the program is missing.
        environment: The whole environment; this process's own if it is not given.

    Raises:
        ConfigError: If the program is missing, or fails: with the end of its log.
    """
    with log.open("wb") as output:
        try:
            done = subprocess.run(
                command, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False
            )
        except FileNotFoundError as error:
            raise ConfigError(f"{command[0]}: not found; {hint}") from error
    if done.returncode:
        said = "\n".join(log.read_text(errors="replace").splitlines()[-_SHOWN_LINES:])
        words = " ".join(str(word) for word in command)
        raise ConfigError(f"{words}: exit code {done.returncode}, in {cwd}; its last words:\n{said}")


def install_package(name: str, *, log_folder: Path, say: Callable[[str], None] = print) -> None:
    """Install a Debian package, unless its program is on PATH.

    Args:
        name: One of `PACKAGES`.
        log_folder: Gets the log of apt-get.
        say: Called with a line for each step.

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
