"""The licences of what is linked: the file is up to date, has each crate and its text, and new licences are refused."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from deploy.release.crates import linked_crates
from deploy.release.licenses import ALLOWED, PATH, check_allowed, is_allowed, render
from schemas.errors import ConfigError


@pytest.fixture(scope="module")
def crates(repository):
    return linked_crates(repository)


@pytest.fixture(scope="module")
def written(repository):
    return (repository / PATH).read_text()


def test_the_file_is_what_make_licenses_writes(crates, written, repository):
    assert render(crates, repository) == written


def test_every_linked_crate_is_listed_and_has_a_text(crates, written):
    lines = written.splitlines()
    blocks = [line.removeprefix("Of ").rstrip(":").split(", ") for line in lines if line.startswith("Of ")]
    with_text = {name for names in blocks for name in names}
    for crate in crates:
        assert f"{crate.label}: {crate.license}" in lines
        assert crate.label in with_text


def test_the_text_of_a_crate_is_the_one_that_it_is_published_with(crates, written):
    [foldhash] = [crate for crate in crates if crate.name == "foldhash"]
    words = " ".join((foldhash.folder / "LICENSE").read_text().split())
    assert words.startswith("Copyright (c)")
    assert words in " ".join(written.split())


def test_the_standard_library_is_in_it(written):
    assert re.search(r"^The standard library of Rust: Apache-2.0 OR MIT, with .*\bstd\b", written, re.MULTILINE)
    assert re.search(r"^Of .*\bgimli [0-9.]+ \(standard library\)", written, re.MULTILINE)


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ("MIT", True),
        ("MIT AND Zlib", True),
        ("GPL-3.0-only OR MIT", True),
        ("(LGPL-2.1-or-later OR Apache-2.0) AND BSD-3-Clause", True),
        ("Apache-2.0 WITH LLVM-exception", True),
        ("GPL-3.0-only", False),
        ("MIT AND MPL-2.0", False),
        ("GPL-2.0-only WITH Classpath-exception-2.0", False),
        ("LicenseRef-Ours", False),
        ("", False),
    ],
)
def test_an_expression_is_allowed_if_allowed_licences_meet_it(expression, allowed):
    assert is_allowed(expression) is allowed


def test_no_copyleft_licence_is_allowed():
    assert not [name for name in ALLOWED if re.search("GPL|MPL|EPL|CDDL|EUPL|OSL|SA", name)]


def test_a_crate_with_another_licence_is_named(crates, repository):
    changed = [replace(crates[0], license="MPL-2.0"), *crates[1:]]
    with pytest.raises(ConfigError, match=rf"^{crates[0].label} \(MPL-2.0\): not among the licences"):
        check_allowed(changed)
    with pytest.raises(ConfigError, match="MPL-2.0"):
        render(changed, repository)


def test_a_crate_without_a_text_must_allow_ours(crates, repository, tmp_path: Path):
    [crate] = [crate for crate in crates if crate.name == "pyo3-arrow"]
    with pytest.raises(ConfigError, match=r"pyo3-arrow .* has no text of its licence, MIT; find it"):
        render([replace(crate, folder=tmp_path, license="MIT")], repository)
    assert "Apache License" in render([replace(crate, folder=tmp_path)], repository)
