"""Licences that are found: in which order, by what, the same in folders and archives; nothing if not asked for."""

from __future__ import annotations

import os
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from schemas.options import IngestOptions
from schemas.tables import DOCUMENTS
from transforms.filters.kept_counts import documents_schema
from transforms.filters.license_texts import find_notices, identify_license_file, states_other_conditions
from transforms.ingest.input_units import plan_inputs
from transforms.sources.license_files import LICENSE_FILES, is_license_file
from transforms.sources.listing import list_inputs
from transforms.storage.folder import OutputFolder

MIT = (
    "Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated "
    'documentation files (the "Software"), to deal in the Software without restriction, including without limitation '
    "the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and "
    "to permit persons to whom the Software is furnished to do so, subject to the following conditions:\n\nThe above "
    "copyright notice and this permission notice shall be included in all copies or substantial portions of the "
    'Software.\n\nTHE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT '
    "NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO "
    "EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN "
    "ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR "
    "OTHER DEALINGS IN THE SOFTWARE.\n"
)
BOOST = (
    "// Distributed under the Boost Software License, Version 1.0. (See accompanying\n// file LICENSE_1_0.txt or copy "
    "at http://www.boost.org/LICENSE_1_0.txt)\n"
)
APACHE = "/*\n * Copyright 2020 Acme\n *\n * Licensed under the Apache License, Version 2.0\n */\n"

FILES = {
    "p/LICENSE": MIT,
    "p/COPYRIGHT": "Copyright 2020 Acme\n",
    "p/a.h": "int a;\n",
    "p/tagged.h": "// SPDX-License-Identifier: ISC\n" + APACHE,
    "p/noticed.h": APACHE + "int b;\n",
    "p/boost.h": BOOST,
    "p/other.h": "// Licensees of Acme may use this.\n",
    "p/refers.h": "// License: see the LICENSE file.\n",
    "p/deep/er/b.h": "int deep;\n",
    "p/vendored/COPYING": "Ask Acme.\n",
    "p/vendored/c.h": "int c;\n",
    "top.h": "int top;\n",
}
FOUND = {
    "p/a.h": ("MIT", "folder"),
    "p/tagged.h": ("ISC", "tag"),
    "p/noticed.h": ("Apache-2.0", "text"),
    "p/boost.h": ("BSL-1.0", "text"),
    "p/other.h": (None, "none"),
    "p/refers.h": ("MIT", "folder"),
    "p/deep/er/b.h": ("MIT", "folder"),
    "p/vendored/c.h": (None, "none"),
    "top.h": (None, "none"),
}


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "corpus" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "corpus"


def found(result: Any) -> dict[str, tuple[str | None, str]]:
    rows = result.table().to_pylist()
    return {row["path"].removeprefix("a.tar/"): (row["license"], row["license_source"]) for row in rows}


@pytest.mark.parametrize("unit_bytes", [1 << 16, 1 << 26])
@pytest.mark.parametrize("is_archive", [False, True])
def test_tags_come_before_texts_and_these_before_the_nearest_folder(
    corpus: Path, out: OutputFolder, run_ingest: Callable[..., Any], *, is_archive: bool, unit_bytes: int
) -> None:
    source = corpus
    if is_archive:
        source = corpus.parent / "a.tar"
        with tarfile.open(source, "w") as archive:
            for name in sorted(FILES, reverse=True):  # the licence is behind what is under it
                archive.add(corpus / name, name)
    result = run_ingest([source], out, IngestOptions(find_licenses="folders", unit_bytes=unit_bytes))
    assert found(result) == FOUND
    counts = [receipt.totals["licenses"] for receipt in result.receipts]
    sums = {name: sum(count[name] for count in counts) for name in counts[0]}
    assert sums == {"source": 0, "tag": 1, "text": 2, "folder": 3, "none": 3}


LINKS = {
    "p/same/COPYING": "../LICENSE",
    "p/same/deep/LICENSE": "../../LICENSE",
    "p/out/LICENSE": "/usr/share/common-licenses/GPL-3",
    "p/up/LICENSE": "../../../elsewhere",
    "p/dangling/LICENSE": "nothing",
    "p/side/LICENSE": "../vendored/COPYING",
    "p/vendored/deep/LICENSE": "../../LICENSE",
    "p/other/COPYING": "../a.h",
}


@pytest.mark.parametrize("pack", ["folder", "tar", "zip", "hard links"])
def test_a_licence_behind_a_link_is_unknown_unless_it_holds_anyway(
    corpus: Path, out: OutputFolder, run_ingest: Callable[..., Any], pack: str
) -> None:
    for name, target in LINKS.items():
        (corpus / name).parent.mkdir(exist_ok=True)
        (corpus / name).symlink_to(target)
        (corpus / name).with_name("x.h").write_text(f"int {name.replace('/', '_')};\n")
    source = packed(corpus, pack)
    result = found(run_ingest([source], out, IngestOptions(find_licenses="folders", unit_bytes=1 << 16)))
    linked = {path.removeprefix("a.zip/"): row for path, row in result.items() if path.endswith("/x.h")}
    unknown = {str(Path(name).with_name("x.h")): (None, "none") for name in LINKS}
    assert linked == unknown | dict.fromkeys(("p/same/x.h", "p/same/deep/x.h"), ("MIT", "folder"))


@pytest.mark.parametrize("text", [b"Ask Acme", b"int c;"])
@pytest.mark.parametrize("missing", [600, 0])
def test_a_damaged_archive_may_have_lost_licence_files_so_nothing_is_inherited_in_it(
    corpus: Path, out: OutputFolder, run_ingest: Callable[..., Any], text: bytes, missing: int
) -> None:
    source = corpus.with_name("a.tar")
    with tarfile.open(source, "w") as archive:
        for name in FILES:
            archive.add(corpus / name, name)
    whole = source.read_bytes()
    source.write_bytes(whole[: whole.index(text) - missing])
    result = found(run_ingest([source], out, IngestOptions(find_licenses="folders")))
    assert {path: row for path, row in result.items() if row[1] == "tag"} == {"p/tagged.h": ("ISC", "tag")}
    assert (result["p/a.h"], result["p/deep/er/b.h"]) == ((None, "none"), (None, "none"))


def packed(corpus: Path, how: str) -> Path:
    """Pack files and links, in which tar may have hard links in the place of symbolic ones that lead to files."""
    source = corpus.with_name("a.zip" if how == "zip" else "a.tar")
    if how == "folder":
        return corpus
    if how == "zip":
        with zipfile.ZipFile(source, "w") as archive:
            for path in sorted(corpus.rglob("*")):
                info = zipfile.ZipInfo(path.relative_to(corpus).as_posix())
                info.external_attr = (stat.S_IFLNK if path.is_symlink() else stat.S_IFREG) << 16
                if path.is_symlink() or path.is_file():
                    content = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
                    archive.writestr(info, content)
        return source

    def harden(member: tarfile.TarInfo) -> tarfile.TarInfo:
        if how == "hard links" and member.issym():
            member.type, member.linkname = tarfile.LNKTYPE, os.path.normpath(f"{member.name}/../{member.linkname}")
        return member

    with tarfile.open(source, "w") as archive:
        archive.add(corpus, "", filter=harden)
    return source


@pytest.mark.parametrize(("places", "known"), [("tags", {"tag"}), ("texts", {"tag", "text"})])
def test_each_place_goes_further_than_the_one_before(
    corpus: Path, out: OutputFolder, run_ingest: Callable[..., Any], places: Any, known: set[str]
) -> None:
    rows = found(run_ingest([corpus], out, IngestOptions(find_licenses=places)))
    assert rows == {path: row if row[1] in known else (None, "none") for path, row in FOUND.items()}


def test_the_allow_list_takes_what_is_found(corpus: Path, out: OutputFolder, run_ingest: Callable[..., Any]) -> None:
    options = IngestOptions(find_licenses="folders", allowed_licenses=("MIT",), unlicensed="drop")
    assert found(run_ingest([corpus], out, options)).keys() == {"p/a.h", "p/refers.h", "p/deep/er/b.h"}


def test_a_unit_names_the_licence_files_that_bear_on_it_and_changes_with_them(corpus: Path) -> None:
    def unit(**changes: Any) -> Any:
        options = IngestOptions(**changes)
        (planned,) = plan_inputs(list_inputs([str(corpus)], options), options)
        return planned

    before, plain = unit(find_licenses="folders"), unit()
    assert [path for path, *_ in before.payload[LICENSE_FILES]] == ["p/COPYRIGHT", "p/LICENSE", "p/vendored/COPYING"]
    (corpus / "p/LICENSE").write_text(MIT.upper() + "\n")
    assert unit(find_licenses="folders").key != before.key
    assert LICENSE_FILES not in plain.payload


def test_what_is_off_is_in_no_canonical_form_and_no_schema() -> None:
    assert "find_licenses" not in IngestOptions().to_json()
    assert documents_schema(IngestOptions().to_json()) == DOCUMENTS


def test_only_files_of_licences_count_as_such() -> None:
    options = IngestOptions()
    names = ["LICENSE", "a/licence.md", "COPYING.LESSER", "Copyright.txt", "UNLICENSE", "LICENSE-MIT"]
    assert all(is_license_file(name, options) for name in names)
    assert not any(is_license_file(name, options) for name in ["license.cpp", "licensee", "LICENSES/MIT.txt", "a.h"])


def test_a_licence_file_has_to_be_mostly_a_licence() -> None:
    assert identify_license_file(MIT.encode()) == "MIT"
    assert identify_license_file((MIT + "But ask Acme before you use any of it at all. " * 60).encode()) is None
    assert find_notices(b'const char* text = "no comment";\n') is None
    assert not states_other_conditions(b"int a;\n")
    said = [
        b"// This file is GPL v3.\n",
        b"/* LGPLv2.1+ */",
        b"// Proprietary and confidential\n",
        b"// non-commercial\n",
    ]
    assert all(map(states_other_conditions, said))
    assert not any(map(states_other_conditions, [b"/* palette: ink.gplx */", b"// keeps its confidentiality\n"]))
