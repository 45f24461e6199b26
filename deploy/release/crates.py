"""The crates that are linked into the native core, as Cargo resolves them from `native/Cargo.lock`.

Procedural macros and build scripts run in the compiler and are not among them. A crate of which linking keeps nothing
may be among them.
"""

from __future__ import annotations

import json
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schemas.errors import ConfigError

TARGETS = ("x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu")
"""What the wheels of a release are for. Both link the same crates, so one file of licences serves both."""


@dataclass(frozen=True, kw_only=True)
class Crate:
    """A crate that others wrote.

    Attributes:
        name: Its name on crates.io.
        version: Its version.
        license: An SPDX expression.
        folder: Its unpacked sources, with its licence files.
        sha256: The digest of its archive, from `Cargo.lock`.
        dependencies: Labels of the crates that it links, sorted.
        is_direct: Whether one of our crates names it.
    """

    name: str
    version: str
    license: str
    folder: Path
    sha256: str
    dependencies: tuple[str, ...]
    is_direct: bool

    @property
    def label(self) -> str:
        """Name and version."""
        return f"{self.name} {self.version}"


def linked_crates(repository: Path, target: str = TARGETS[0]) -> list[Crate]:
    """Return what Cargo says is linked into the native core, our own crates left out, sorted by name.

    Args:
        repository: The folder of the checkout. Cargo fetches what it does not have.
        target: One of `TARGETS`.

    Raises:
        ConfigError: If cargo fails: with its message.
    """
    tree = ("tree", "--target", target, "--edges", "normal,no-proc-macro", "--prefix", "none", "--format", "{p}")
    linked = {tuple(line.split()[:2]) for line in _cargo(repository, *tree).splitlines()}
    metadata = json.loads(_cargo(repository, "metadata", "--format-version", "1", "--filter-platform", target))
    packages = {
        package["id"]: package
        for package in metadata["packages"]
        if (package["name"], f"v{package['version']}") in linked
    }
    links = {
        node["id"]: [packages[link] for link in node["dependencies"] if link in packages]
        for node in metadata["resolve"]["nodes"]
        if node["id"] in packages
    }
    own = {key for key, package in packages.items() if package["source"] is None}
    direct = {package["id"] for key in own for package in links[key]}
    checksums = _checksums(repository)
    crates = (_crate(packages[key], links[key], checksums, is_direct=key in direct) for key in packages.keys() - own)
    return sorted(crates, key=lambda crate: crate.label)


def _cargo(repository: Path, command: str, *options: str) -> str:
    manifest = str(repository / "native/py/Cargo.toml")
    # From there, as the pinned toolchain is the folder's.
    done = subprocess.run(
        ["cargo", command, "--manifest-path", manifest, "--locked", *options],
        cwd=repository,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise ConfigError(f"{manifest}: cargo {command} failed; does `make setup` work here?\n{done.stderr}")
    return done.stdout


def _checksums(repository: Path) -> dict[str, str]:
    lock = tomllib.loads((repository / "native/Cargo.lock").read_text())
    return {f"{package['name']} {package['version']}": package.get("checksum", "") for package in lock["package"]}


def _crate(
    package: dict[str, Any], dependencies: list[dict[str, Any]], checksums: dict[str, str], *, is_direct: bool
) -> Crate:
    labels = sorted(f"{link['name']} {link['version']}" for link in dependencies)
    return Crate(
        name=package["name"],
        version=package["version"],
        # Crates of old write MIT/Apache-2.0.
        license=(package["license"] or "").replace("/", " OR "),
        folder=Path(package["manifest_path"]).parent,
        sha256=checksums[f"{package['name']} {package['version']}"],
        dependencies=tuple(labels),
        is_direct=is_direct,
    )
