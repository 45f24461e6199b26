"""What `make wheels` makes: tags, licences, bills, digests, no trace of this machine; it runs without a compiler."""

import fnmatch
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from deploy.release.bills import Toolchain
from deploy.release.crates import TARGETS, linked_crates
from deploy.release.licenses import PATH, ZIG_FILES, standard_crates

pytestmark = [pytest.mark.release, pytest.mark.timeout(1200)]
VERSION = importlib.metadata.version("cppmill")
CORES = {
    machine: f"cppmill_core-{VERSION}-cp311-abi3-manylinux_2_28_{machine}.whl" for machine in ("x86_64", "aarch64")
}
BILLS = {"x86_64": f"cppmill-core-{VERSION}.cdx.json", "aarch64": f"cppmill-core-{VERSION}-aarch64.cdx.json"}
PURE = f"cppmill-{VERSION}-py3-none-any.whl"


@pytest.fixture(scope="module")
def dist(repository: Path) -> Path:
    folder = repository / "dist"
    assert folder.is_dir(), "make wheels makes it"
    return folder


@pytest.fixture(scope="module", params=["x86_64", pytest.param("aarch64", marks=pytest.mark.aarch64)])
def machine(request: pytest.FixtureRequest) -> str:
    """What a native wheel is for; the second one is there after `make wheels-aarch64`."""
    return request.param


@pytest.fixture(scope="module")
def core(dist: Path, machine: str) -> dict[str, bytes]:
    """The files of the native wheel."""
    with zipfile.ZipFile(dist / CORES[machine]) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def ending(files: dict[str, bytes], pattern: str) -> bytes:
    [name] = fnmatch.filter(files, pattern)
    return files[name]


def test_all_of_a_release_is_there(dist: Path, machine: str) -> None:
    machines = CORES if machine == "aarch64" else [machine]
    assert {file.name for file in dist.iterdir() if file.is_file()} == {
        *(name for key in machines for name in (CORES[key], BILLS[key])),
        *(PURE, f"cppmill-{VERSION}.tar.gz", f"cppmill_core-{VERSION}.tar.gz"),
        *(f"cppmill-{VERSION}.cdx.json", "SHA256SUMS"),
    }


@pytest.mark.usefixtures("machine")
def test_the_sums_are_of_all_files(dist: Path) -> None:
    lines = (dist / "SHA256SUMS").read_text().splitlines()
    sums = {name: digest for digest, name in (line.split("  ") for line in lines)}
    files = [file for file in dist.iterdir() if file.is_file() and file.name != "SHA256SUMS"]
    assert sums == {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def test_auditwheel_agrees_with_the_tag(dist: Path, machine: str) -> None:
    command = [sys.executable, "-m", "auditwheel", "show", str(dist / CORES[machine])]
    shown = " ".join(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())
    found = re.search(rf'following platform tag: "manylinux_2_(\d+)_{machine}"', shown)
    assert found is not None and int(found[1]) <= 28, shown


def test_the_licences_are_in_the_wheel(core: dict[str, bytes], repository: Path) -> None:
    assert ending(core, "*.dist-info/licenses/LICENSE") == (repository / "LICENSE").read_bytes()
    assert ending(core, "*.dist-info/licenses/THIRD_PARTY_LICENSES") == (repository / PATH).read_bytes()


def mistake_of_bill(text: str) -> object:
    """Return what is wrong with a bill of materials."""
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    return JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)


def test_the_bill_of_the_wheel_names_every_crate(
    core: dict[str, bytes], dist: Path, machine: str, repository: Path
) -> None:
    [bill] = fnmatch.filter(core, "*.dist-info/sboms/*")
    assert core[bill] == (dist / BILLS[machine]).read_bytes()
    assert mistake_of_bill(core[bill].decode()) is None
    components = {f"{item['name']} {item['version']}" for item in json.loads(core[bill])["components"]}
    toolchain = Toolchain.of(repository)
    crates = {crate.label for crate in linked_crates(repository)}
    assert components == crates | {f"rust-std {toolchain.rust}", f"zig {toolchain.zig}"}


def test_the_bill_of_cppmill_has_the_digests_of_the_native_wheels(dist: Path, machine: str) -> None:
    text = (dist / f"cppmill-{VERSION}.cdx.json").read_text()
    assert mistake_of_bill(text) is None
    components = json.loads(text)["components"]
    [core] = [item for item in components if item["name"] == "cppmill-core"]
    digests = {item["content"] for place in core["externalReferences"] for item in place["hashes"]}
    assert hashlib.sha256((dist / CORES[machine]).read_bytes()).hexdigest() in digests


def test_the_standard_library_that_is_linked_is_that_of_the_licences(machine: str, repository: Path) -> None:
    [target] = [target for target in TARGETS if target.startswith(machine)]
    assert standard_crates(repository, target) == standard_crates(repository) != []


def test_the_licences_of_zig_are_those_that_it_comes_with(repository: Path) -> None:
    installed = importlib.util.find_spec("ziglang")
    assert installed is not None and installed.origin is not None
    for file, (_, place, _) in ZIG_FILES.items():
        ours = (repository / "deploy/release/zig" / file).read_text()
        assert ours in (Path(installed.origin).parent / place).read_text()


def test_no_path_of_this_machine_is_in_the_wheels(core: dict[str, bytes], dist: Path, repository: Path) -> None:
    with zipfile.ZipFile(dist / PURE) as archive:
        pure = {name: archive.read(name) for name in archive.namelist()}
    places = [str(place).encode() for place in (repository, Path.home() / ".cargo", Path.home() / ".rustup")]
    assert [(name, place) for name, data in (core | pure).items() for place in places if place in data] == []


def test_the_crates_that_the_module_names_are_among_those_of_the_bill(core: dict[str, bytes], repository: Path) -> None:
    module = ending(core, "*_native.abi3.so")
    named = {name.decode() for name in re.findall(rb"/crates/([a-z0-9_-]+-[0-9]+\.[0-9]+\.[0-9]+)/", module)}
    assert len(named) > 20
    assert named <= {f"{crate.name}-{crate.version}" for crate in linked_crates(repository)}


def test_it_runs_without_a_compiler_and_makes_the_same_tokenizer(dist: Path, tmp_path: Path) -> None:
    bill = json.loads((dist / f"cppmill-{VERSION}.cdx.json").read_text())
    versions = {item["name"]: item["version"] for item in bill["components"]}
    python, environment = fresh_environment(tmp_path)
    constraints = tmp_path / "constraints.txt"
    constraints.write_text("".join(f"{name}=={version}\n" for name, version in versions.items()))
    install = ["-m", "pip", "install", "--quiet", "--no-compile", "--only-binary=:all:", "--constraint", constraints]
    run([python, *install, dist / CORES["x86_64"], dist / PURE], environment)

    listed = json.loads(run([python, "-m", "pip", "list", "--format=json", "--exclude=pip"], environment))
    installed = {re.sub(r"[-_.]+", "-", item["name"]).lower(): item["version"] for item in listed}
    installed.pop("setuptools", None)
    assert installed == versions | {"cppmill": VERSION}

    headers = [np.get_include(), pa.get_include()]
    theirs = receipt(python, headers, tmp_path / "theirs", environment)
    ours = receipt(Path(sys.executable), headers, tmp_path / "ours", dict(os.environ))
    assert theirs["tokenizer"]["digest"] == ours["tokenizer"]["digest"]
    assert theirs["dataset"]["digest"] == ours["dataset"]["digest"]


def fresh_environment(folder: Path) -> tuple[Path, dict[str, str]]:
    """A new venv's Python, and an environment in which its programs are all that is on PATH."""
    run([Path(sys.base_prefix) / "bin/python3", "-m", "venv", folder / "venv"], dict(os.environ))
    path = str(folder / "venv/bin")
    assert [name for name in ("cargo", "rustc", "cc", "gcc", "c++", "clang") if shutil.which(name, path=path)] == []
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("CARGO", "RUST", "PYTHON", "CC"))}
    return folder / "venv/bin/python", kept | {"PATH": path}


def receipt(python: Path, headers: list[str], out: Path, environment: dict[str, str]) -> dict:
    options = ["--out", out, "--profile", "demo", "--quiet"]
    run([python.with_name("cppmill"), "run", *headers, *options], environment, cwd=out.parent)
    return json.loads((out / "receipt.json").read_text())


def run(command: list[object], environment: dict[str, str], cwd: Path | None = None) -> str:
    done = subprocess.run([str(part) for part in command], env=environment, cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
