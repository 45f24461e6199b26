"""Job servers for Flink and Spark, built by Maven, their contents checked against a written list.

A job server is one jar, made of a hundred and more: Beam's runner, the engine, and what these need. The jar itself
differs from build to build because it contains times; its contents must not. `NAME_jars.sha256`, beside this file, has
the SHA-256 of each. Maven compares what it fetches with the repository's checksums; this list shows that the repository
has not changed.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from deploy.local.commands import run
from schemas.digests import sha256_file
from schemas.errors import IntegrityError

_HERE = Path(__file__).parent
_INCLUDED = re.compile(r"Including (\S+) in the shaded jar")


def build_job_server(name: str, folder: Path, repository: Path) -> None:
    """Make `folder/job-server.jar` from `NAME_job_server.pom.xml`.

    Args:
        name: `flink` or `spark`.
        folder: An empty folder; Maven's log stays in it.
        repository: Where Maven keeps what it fetches.

    Raises:
        ConfigError: If Maven is missing or fails.
        IntegrityError: If a jar that went in is not the one of the list.
    """
    work = folder / "build"
    work.mkdir()
    shutil.copyfile(_HERE / f"{name}_job_server.pom.xml", work / "pom.xml")
    log = folder / "maven.log"
    command = ["mvn", "--batch-mode", "--strict-checksums", f"-Dmaven.repo.local={repository}", "package"]
    run(command, cwd=work, log=log, hint="a JDK and Maven are needed; on Debian or Ubuntu: apt-get install maven")
    check_jars(name, included_jars(log.read_text(), repository))
    shutil.move(work / f"target/{name}-job-server-1.jar", folder / "job-server.jar")
    shutil.rmtree(work)


def included_jars(log: str, repository: Path) -> dict[str, Path]:
    """Return the jars that went into a shaded one: coordinates and files, in the order of Maven's log.

    Example:
        >>> log = "[INFO] Including org.slf4j:slf4j-api:jar:1.7.30 in the shaded jar."
        >>> included_jars(log, Path("/m2"))
        {'org.slf4j:slf4j-api:jar:1.7.30': PosixPath('/m2/org/slf4j/slf4j-api/1.7.30/slf4j-api-1.7.30.jar')}
    """
    return {coordinates: _jar_path(coordinates, repository) for coordinates in _INCLUDED.findall(log)}


def _jar_path(coordinates: str, repository: Path) -> Path:
    group, artifact, kind, *classifier, version = coordinates.split(":")
    file = "-".join((artifact, version, *classifier))
    return repository / group.replace(".", os.sep) / artifact / version / f"{file}.{kind}"


def check_jars(name: str, jars: dict[str, Path]) -> None:
    """Compare jars with the written list.

    Raises:
        IntegrityError: Naming the first jar that is missing, additional or different.
    """
    where = _HERE / f"{name}_jars.sha256"
    lines = (line.split("  ") for line in where.read_text().splitlines())
    listed = {coordinates: digest for digest, coordinates in lines}
    found = {coordinates: sha256_file(path) for coordinates, path in jars.items()}
    for coordinates in sorted({*listed, *found}):
        if listed.get(coordinates) != found.get(coordinates):
            raise IntegrityError(
                f"{where}: {coordinates} has {listed.get(coordinates)}, and {found.get(coordinates)} was fetched; "
                "the repository that Maven uses is not the one that the list was made from: look into it before use"
            )


def format_jars(jars: dict[str, Path]) -> str:
    """Return the list that `check_jars` reads, for a new version of a job server."""
    return "".join(f"{sha256_file(path)}  {coordinates}\n" for coordinates, path in sorted(jars.items()))
