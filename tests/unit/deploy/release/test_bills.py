"""Bills of materials: valid CycloneDX, all that is linked or needed, the same bytes each time."""

import hashlib
import importlib.metadata
import json
import tomllib

import pytest

from deploy.release.bills import Toolchain, crates_bill, packages_bill
from deploy.release.crates import linked_crates

EPOCH = 1_700_000_000
TOOLCHAIN = Toolchain("1.95.0", "0.17.1")


@pytest.fixture(scope="module")
def crates(repository):
    return linked_crates(repository)


@pytest.fixture(scope="module")
def core_text(crates):
    return crates_bill(crates, TOOLCHAIN, version="1.2.3", epoch=EPOCH)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    path = tmp_path_factory.mktemp("dist") / "cppmill_core.whl"
    path.write_bytes(b"a wheel")
    return path


@pytest.fixture(scope="module")
def other_wheel(wheel):
    path = wheel.with_name("cppmill_core-aarch64.whl")
    path.write_bytes(b"a wheel for another machine")
    return path


@pytest.fixture(scope="module")
def package_text(repository, wheel, other_wheel):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", str(EPOCH))
        return packages_bill(repository, [wheel, other_wheel])


@pytest.mark.release
def test_both_are_valid(core_text, package_text):
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    validator = JsonStrictValidator(SchemaVersion.V1_6)
    assert validator.validate_str(core_text) is None
    assert validator.validate_str(package_text) is None
    assert validator.validate_str(core_text.replace('"type": "library"', '"type": "book"')) is not None


def test_each_crate_has_its_version_licence_and_digest(core_text, crates, repository):
    everything = json.loads(core_text)["components"]
    components = [component for component in everything if component["purl"].startswith("pkg:cargo/")]
    found = {(c["name"], c["version"], c["licenses"][0]["expression"], c["hashes"][0]["content"]) for c in components}
    assert found == {(crate.name, crate.version, crate.license, crate.sha256) for crate in crates}
    locked = tomllib.loads((repository / "native/Cargo.lock").read_text())["package"]
    assert {item[3] for item in found} <= {package.get("checksum") for package in locked}


def test_what_the_toolchain_links_is_in_it_too(core_text, repository):
    components = {item["name"]: item["version"] for item in json.loads(core_text)["components"]}
    assert (components["rust-std"], components["zig"]) == ("1.95.0", "0.17.1")
    pins = [(repository / name).read_text() for name in ("rust-toolchain.toml", "deploy/release/requirements.lock")]
    toolchain = Toolchain.of(repository)
    assert f'"{toolchain.rust}"' in pins[0] and f"ziglang=={toolchain.zig} " in pins[1]


def test_all_crates_hang_together(core_text):
    bill = json.loads(core_text)
    links = {item["ref"]: item.get("dependsOn", []) for item in bill["dependencies"]}
    reached, todo = set(), [bill["metadata"]["component"]["bom-ref"]]
    while todo:
        if (ref := todo.pop()) not in reached:
            reached.add(ref)
            todo += links[ref]
    assert reached == links.keys() == {c["bom-ref"] for c in bill["components"]} | {"pkg:pypi/cppmill-core@1.2.3"}


def test_the_time_is_the_one_given_and_nothing_else_changes(
    core_text, package_text, crates, repository, wheel, other_wheel, monkeypatch
):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", str(EPOCH))
    assert json.loads(core_text)["metadata"]["timestamp"] == "2023-11-14T22:13:20+00:00"
    assert json.loads(package_text)["metadata"]["timestamp"] == "2023-11-14T22:13:20+00:00"
    assert crates_bill(crates[::-1], TOOLCHAIN, version="1.2.3", epoch=EPOCH) == core_text
    assert packages_bill(repository, [other_wheel, wheel]) == package_text  # in any order


def test_no_path_of_this_machine_is_in_them(core_text, package_text, repository, crates):
    for text in (core_text, package_text):
        assert str(repository) not in text and str(crates[0].folder.parent) not in text


def test_packages_are_those_of_the_lock_that_cppmill_needs(package_text, wheel, other_wheel):
    components = json.loads(package_text)["components"]
    versions = {component["name"]: component["version"] for component in components}
    assert {"apache-beam", "numpy", "pyarrow", "tokenizers", "cppmill-core"} <= versions.keys()
    assert not {"pytest", "maturin", "s3fs", "torch"} & versions.keys()
    assert versions == {name: importlib.metadata.version(name) for name in versions}
    hashes = {
        component["name"]: {item["content"] for place in component["externalReferences"] for item in place["hashes"]}
        for component in components
    }
    assert hashes["cppmill-core"] == {hashlib.sha256(path.read_bytes()).hexdigest() for path in (wheel, other_wheel)}
    assert min(map(len, hashes.values())) >= 1
