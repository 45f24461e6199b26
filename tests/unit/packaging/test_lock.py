"""The locks: everything pinned and hashed, no place named, complete, and parts of one resolution."""

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

RESOLUTION = "requirements.lock"
PURPOSES = {
    "run": (),
    "test": ("test", "bench", "release", "docs"),
    "lint": ("lint",),
    "docs": ("docs",),
    "bench": ("bench",),
    "release": ("release",),
}
"""The dependency groups of each lock below `requirements/`; all have the project's own dependencies too."""
LOCKS = [RESOLUTION, *(f"requirements/{purpose}.lock" for purpose in PURPOSES)]


FETCHED = {name: f"deploy/local/{name}_requirements.lock" for name in ("torch", "streaming", "megatron")}
"""Locks of what `make engines` fetches, by the group of each."""


@pytest.fixture(params=[*LOCKS, "requirements/uv.lock", *FETCHED.values()])
def lock(request: pytest.FixtureRequest, repository: Path) -> str:
    return (repository / request.param).read_text()


def requirements_of(text: str) -> Iterator[str]:
    for line in text.replace("\\\n", " ").splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            yield line


def read_lock(path: Path) -> dict[str, list[Requirement]]:
    """Return the requirements of a lock by name, one for each marker."""
    result: dict[str, list[Requirement]] = {}
    for line in requirements_of(path.read_text()):
        requirement = Requirement(line.split("--hash")[0].strip())
        result.setdefault(canonicalize_name(requirement.name), []).append(requirement)
    return result


def wanted(repository: Path, *groups: str) -> list[Requirement]:
    """Return what pyproject.toml asks for, with these groups, but not the native core, which is built here."""
    document = tomllib.loads((repository / "pyproject.toml").read_text())
    texts = list(document["project"]["dependencies"])
    for name in groups:
        texts += group(document["dependency-groups"], name)
    return [Requirement(text) for text in texts if not text.startswith("cppmill-core")]


def group(groups: dict[str, Any], name: str) -> Iterator[str]:
    for entry in groups[name]:
        if isinstance(entry, dict):
            yield from group(groups, entry["include-group"])
        else:
            yield entry


def test_every_requirement_is_pinned_and_hashed(lock: str) -> None:
    lines = list(requirements_of(lock))
    assert lines
    pinned = re.compile(r"[a-z0-9-]+==[^ ]+( ; [^-]+)?( +--hash=sha256:[0-9a-f]{64})+")
    assert [line for line in lines if not pinned.fullmatch(re.sub(r" +", " ", line).strip())] == []


def test_no_place_is_named(lock: str) -> None:
    assert re.findall(r".*(?:://|@|--index|--extra-index|--find-links|--trusted-host).*", lock) == []


@pytest.mark.parametrize(("name", "groups"), [(RESOLUTION, ("dev",)), *zip(LOCKS[1:], PURPOSES.values(), strict=True)])
def test_the_lock_satisfies_the_metadata(name: str, groups: tuple[str, ...], repository: Path) -> None:
    locked = read_lock(repository / name)
    assert len(locked) > 50
    versions = {name: [next(iter(pin.specifier)).version for pin in pins] for name, pins in locked.items()}
    unmet = [
        str(requirement)
        for requirement in wanted(repository, *groups)
        if not any(
            version in requirement.specifier for version in versions.get(canonicalize_name(requirement.name), ())
        )
    ]
    assert unmet == []


@pytest.mark.parametrize("name", [*LOCKS[1:], *FETCHED.values()])
def test_the_locks_are_parts_of_one_resolution(name: str, repository: Path) -> None:
    resolution = read_lock(repository / RESOLUTION)
    if name in FETCHED.values():
        resolution = read_lock(repository / name) | resolution
    differing = [
        f"{pin}"
        for package, pins in read_lock(repository / name).items()
        for pin in pins
        if pin.specifier not in [other.specifier for other in resolution[package]]
    ]
    assert differing == []


def test_the_environment_is_the_lock(repository: Path) -> None:
    locked = read_lock(repository / "requirements/test.lock")
    here = [pin for pins in locked.values() for pin in pins if pin.marker is None or pin.marker.evaluate()]
    differing = [
        f"{pin}, installed {importlib.metadata.version(pin.name)}"
        for pin in here
        if importlib.metadata.version(pin.name) not in pin.specifier
    ]
    assert differing == []


def test_fetched_packages_satisfy_the_metadata(repository: Path) -> None:
    document = tomllib.loads((repository / "pyproject.toml").read_text())
    for name, path in FETCHED.items():
        locked = read_lock(repository / path)
        for requirement in map(Requirement, group(document["dependency-groups"], name)):
            [pin] = locked[canonicalize_name(requirement.name)]
            assert next(iter(pin.specifier)).version in requirement.specifier
