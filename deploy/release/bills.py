"""Bills of materials as CycloneDX 1.6: of the crates in the native core, and of the packages that cppmill needs.

Both are the same bytes for the same locks, version and `SOURCE_DATE_EPOCH`. The one of crates that maturin can write
names paths of the machine, and has crates of every platform and those that build but are not linked.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import re
import subprocess
import sys
import tomllib
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import LicenseExpression
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from deploy.release.crates import Crate
from schemas.errors import ConfigError


@dataclass(frozen=True)
class Toolchain:
    """What links code of its own into the native core.

    Attributes:
        rust: The version whose standard library it is.
        zig: The version whose libunwind and compiler library it is.
    """

    rust: str
    zig: str

    @classmethod
    def of(cls, repository: Path) -> Toolchain:
        """Return the one that a checkout pins."""
        zig = _locked(repository / "deploy/release/requirements.lock")["ziglang"]
        rust = tomllib.loads((repository / "rust-toolchain.toml").read_text())["toolchain"]["channel"]
        return cls(rust=rust, zig=zig.split()[0].partition("==")[2])


def crates_bill(crates: Iterable[Crate], toolchain: Toolchain, *, version: str, epoch: int) -> str:
    """Return the bill of the native core as JSON: each crate with version, licence, digest, and what it links.

    Args:
        crates: What is linked into it.
        toolchain: What it is built with.
        version: Of the core.
        epoch: The bill's time, in seconds since 1970.
    """
    crates = list(crates)
    components = {crate.label: _component(crate) for crate in crates}
    core = Component(
        name="cppmill-core",
        version=version,
        type=ComponentType.LIBRARY,
        purl=PackageURL("pypi", name="cppmill-core", version=version),
        bom_ref=f"pkg:pypi/cppmill-core@{version}",
        licenses=[LicenseExpression("Apache-2.0")],
    )
    runtimes = [
        _runtime("rust-std", toolchain.rust, "Apache-2.0 OR MIT"),
        _runtime("zig", toolchain.zig, "MIT AND Apache-2.0 WITH LLVM-exception"),
    ]
    links = sorted(f"{crate.sha256} {crate.dependencies}" for crate in crates)
    what = "\n".join([f"cppmill-core {version} {epoch} {toolchain}", *links])
    bill = Bom(
        components=[*components.values(), *runtimes],
        serial_number=uuid.uuid5(uuid.NAMESPACE_URL, what),
        metadata=BomMetaData(component=core, timestamp=datetime.fromtimestamp(epoch, UTC)),
    )
    bill.register_dependency(core, [*(components[crate.label] for crate in crates if crate.is_direct), *runtimes])
    for crate in crates:
        bill.register_dependency(components[crate.label], [components[label] for label in crate.dependencies])
    return JsonV1Dot6(bill).output_as_string(indent=2) + "\n"


def packages_bill(repository: Path, core_wheels: Iterable[Path]) -> str:
    """Return the bill of cppmill as JSON: each package that it needs here, as `requirements.lock` pins it.

    Args:
        repository: The folder of the checkout.
        core_wheels: The wheels of the native core, which no lock has; their digests are in the bill.

    Raises:
        ConfigError: If `cyclonedx-py` fails, or the lock lacks a package.
    """
    locked = _locked(repository / "requirements.lock")
    needed = _needed("cppmill") - {"cppmill", "cppmill-core"}
    if missing := needed - locked.keys():
        raise ConfigError(f"{', '.join(sorted(missing))}: not in requirements.lock; make lock, then make setup")
    version = importlib.metadata.version("cppmill-core")
    digests = sorted(hashlib.sha256(wheel.read_bytes()).hexdigest() for wheel in core_wheels)
    core = " ".join([f"cppmill-core=={version}", *(f"--hash=sha256:{digest}" for digest in digests)])
    # The tests validate it; what validates takes three seconds to import.
    command = [str(Path(sys.executable).with_name("cyclonedx-py")), "requirements", "-", "--output-reproducible"]
    done = subprocess.run(
        [*command, "--no-validate", "--spec-version=1.6", "--pyproject", str(repository / "pyproject.toml")],
        input="\n".join([core, *(locked[name] for name in sorted(needed))]),
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise ConfigError(f"cyclonedx-py failed:\n{done.stderr}")
    return done.stdout


def _component(crate: Crate) -> Component:
    purl = PackageURL("cargo", name=crate.name, version=crate.version)
    return Component(
        name=crate.name,
        version=crate.version,
        purl=purl,
        bom_ref=str(purl),
        licenses=[LicenseExpression(crate.license)],
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=crate.sha256)],
    )


def _runtime(name: str, version: str, license: str) -> Component:
    purl = PackageURL("generic", name=name, version=version)
    return Component(name=name, version=version, purl=purl, bom_ref=str(purl), licenses=[LicenseExpression(license)])


def _locked(lock: Path) -> dict[str, str]:
    """Lines of the lock that hold here, with their digests, by package."""
    lines = (re.sub(r" *\\\n *", " ", lock.read_text())).splitlines()
    pins = (line for line in lines if line and not line.lstrip().startswith("#"))
    parsed = ((Requirement(pin.split("--hash")[0].strip()), pin) for pin in pins)
    return {canonicalize_name(key.name): pin for key, pin in parsed if key.marker is None or key.marker.evaluate()}


def _needed(name: str) -> set[str]:
    """The package and everything that it needs in this environment, without what only an unwanted extra needs."""
    reached: set[tuple[str, str]] = set()
    todo: set[tuple[str, str]] = {(canonicalize_name(name), "")}
    while todo:
        reached |= todo
        todo = {link for package, extra in todo for link in _links(package, extra)} - reached
    return {package for package, _ in reached}


def _links(package: str, extra: str) -> Iterator[tuple[str, str]]:
    """What a package needs with an extra, "" being none: pairs of the same kind."""
    for text in importlib.metadata.requires(package) or ():
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
            name = canonicalize_name(requirement.name)
            yield from ((name, wanted) for wanted in ("", *requirement.extras))
