"""Texts for the studies: which files, which of them in a sample, and what of them can be compared on."""

from __future__ import annotations

from pathlib import Path

import pytest

from benches.lib.texts import batches, list_tree
from schemas.errors import ConfigError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, data in {
        "a/one.cpp": b"int a;",
        "a/two.hpp": b"int b;",
        "b/same.cpp": b"int a;",
        "b/latin.cpp": b"// \xe9",
        "b/empty.cpp": b"",
        "b/notes.md": b"no source",
        ".hidden/x.cpp": b"int x;",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
    return tmp_path


def test_the_texts_are_the_first_of_equal_bytes_that_are_valid_and_not_empty(root: Path) -> None:
    assert [(text.project, text.content) for text in list_tree(root).texts()] == [("a", "int a;"), ("a", "int b;")]


def test_hidden_folders_and_other_files_are_not_listed(root: Path) -> None:
    tree = list_tree(root)
    assert tree.paths == ("a/one.cpp", "a/two.hpp", "b/empty.cpp", "b/latin.cpp", "b/same.cpp")
    assert tree.num_bytes == 6 + 6 + 0 + 4 + 6


def test_a_sample_holds_every_smaller_one_and_has_about_the_size(tmp_path: Path) -> None:
    for number in range(400):
        (tmp_path / f"{number}.cpp").write_bytes(b"x" * 10)
    tree = list_tree(tmp_path)
    small, large = tree.sample(1000), tree.sample(2000)
    assert set(small.paths) < set(large.paths)
    assert 700 < small.num_bytes < 1300
    assert tree.sample(4000) == tree


def test_batches_have_all_documents_in_order(root: Path) -> None:
    (batch,) = batches(list_tree(root).texts())
    assert batch.to_pylist() == [{"project": "a", "content": b"int a;"}, {"project": "a", "content": b"int b;"}]


def test_a_tree_without_sources_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no file of C"):
        list_tree(tmp_path)
