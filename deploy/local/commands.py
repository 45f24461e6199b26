"""Running a tool of someone else to its end: its output in a log, a failure is reported with its last lines."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from schemas.errors import ConfigError

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
