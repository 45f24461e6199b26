"""What is linked into the native core: locked, of this platform, with its sources; each linked by another."""

import tomllib

import pytest

from deploy.release.crates import TARGETS, linked_crates


@pytest.fixture(scope="module")
def crates(repository):
    return linked_crates(repository)


def test_they_are_locked_and_neither_macros_nor_build_scripts(crates, repository):
    locked = tomllib.loads((repository / "native/Cargo.lock").read_text())["package"]
    assert {crate.label for crate in crates} <= {f"{package['name']} {package['version']}" for package in locked}
    names = {crate.name for crate in crates}
    assert {"memchr", "pyo3", "pyo3-ffi", "rayon-core", "serde_json", "zmij"} <= names
    assert not {"autocfg", "pyo3-build-config", "pyo3-macros", "serde_derive", "syn", "cppmill-core"} & names


def test_none_is_of_another_platform(crates, repository):
    others = {"core-foundation-sys", "js-sys", "wasi", "windows-core"}
    assert not others & {crate.name for crate in crates}
    locked = tomllib.loads((repository / "native/Cargo.lock").read_text())["package"]
    assert others <= {package["name"] for package in locked}


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_links_the_same_crates(target, crates, repository):
    assert [crate.label for crate in linked_crates(repository, target)] == [crate.label for crate in crates]


def test_the_direct_ones_are_those_that_our_manifests_name(crates, repository):
    manifests = [tomllib.loads((repository / f"native/{name}/Cargo.toml").read_text()) for name in ("core", "py")]
    named = {name for manifest in manifests for name in manifest["dependencies"]} - {"cppmill-core"}
    assert {crate.name for crate in crates if crate.is_direct} == named


def test_each_has_its_sources_and_digest_and_links_others_of_them(crates):
    labels = {crate.label for crate in crates}
    assert all((crate.folder / "Cargo.toml").is_file() and len(crate.sha256) == 64 for crate in crates)
    assert {label for crate in crates for label in crate.dependencies} <= labels
    reached = {label for crate in crates for label in crate.dependencies}
    assert labels == reached | {crate.label for crate in crates if crate.is_direct}
