"""The lock: everything pinned and hashed, nothing from a named place, all that the metadata asks for."""

from __future__ import annotations

import importlib.metadata
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


@pytest.fixture(scope="module")
def lock(repository: Path) -> str:
    return (repository / "requirements.lock").read_text()


@pytest.fixture(scope="module")
def locked(lock: str) -> dict[str, list[Requirement]]:
    """Requirements of the lock, by name: one for each marker."""
    result: dict[str, list[Requirement]] = {}
    for line in lock.replace("\\\n", " ").splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            requirement = Requirement(line.split("--hash")[0].strip())
            result.setdefault(canonicalize_name(requirement.name), []).append(requirement)
    return result


@pytest.fixture(scope="module")
def wanted(repository: Path) -> list[Requirement]:
    """What pyproject.toml asks for, dependency groups included, but the native core that is built here."""
    document = tomllib.loads((repository / "pyproject.toml").read_text())
    texts = [*document["project"]["dependencies"], *group(document["dependency-groups"], "dev")]
    return [Requirement(text) for text in texts if not text.startswith("cppmill-core")]


def group(groups: dict[str, Any], name: str) -> Iterator[str]:
    for entry in groups[name]:
        if isinstance(entry, dict):
            yield from group(groups, entry["include-group"])
        else:
            yield entry


def test_every_requirement_is_pinned_and_hashed(lock: str) -> None:
    lines = [
        line for line in lock.replace("\\\n", " ").splitlines() if line.strip() and not line.lstrip().startswith("#")
    ]
    assert len(lines) > 50
    pinned = re.compile(r"[a-z0-9-]+==[^ ]+( ; [^-]+)?( +--hash=sha256:[0-9a-f]{64})+")
    assert [line for line in lines if not pinned.fullmatch(re.sub(r" +", " ", line).strip())] == []


def test_no_place_is_named(lock: str) -> None:
    assert re.findall(r".*(?:://|@|--index|--extra-index|--find-links|--trusted-host).*", lock) == []


def test_it_satisfies_what_the_metadata_asks_for(
    wanted: list[Requirement], locked: dict[str, list[Requirement]]
) -> None:
    versions = {name: [next(iter(pin.specifier)).version for pin in pins] for name, pins in locked.items()}
    unmet = [
        str(requirement)
        for requirement in wanted
        if not any(
            version in requirement.specifier for version in versions.get(canonicalize_name(requirement.name), ())
        )
    ]
    assert unmet == []


def test_the_environment_is_the_lock(locked: dict[str, list[Requirement]]) -> None:
    here = [pin for pins in locked.values() for pin in pins if pin.marker is None or pin.marker.evaluate()]
    differing = [
        f"{pin}, installed {importlib.metadata.version(pin.name)}"
        for pin in here
        if importlib.metadata.version(pin.name) not in pin.specifier
    ]
    assert differing == []
