from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import cppmill_core
import numpy as np
import pyarrow as pa
import pytest

from schemas.options import BuildOptions
from tokenizer_build.bands import Strength
from tokenizer_build.build import BuildSummary
from tokenizer_build.compare.diff import (
    ID_MAP,
    VocabularyDiff,
    compare_compression,
    describe_compression,
    describe_diff,
    read_ids,
)

Build = Callable[..., BuildSummary]


def compare(old: Path, new: Path) -> VocabularyDiff:
    return VocabularyDiff(*(read_ids(path, cppmill_core.Tokenizer.from_dir(path)) for path in (old, new)))


@pytest.fixture(scope="module")
def other_tokenizer(
    build: Build, lenient: BuildOptions, words: pa.RecordBatch, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Of half the words, with fewer domain tokens and more ids."""
    options = lenient.model_copy(update={"vocab_size": 13_000, "min_hits": 100})
    out = tmp_path_factory.mktemp("other") / "tokenizer"
    build(out, words=[words.slice(words.num_rows // 2)], options=options)
    return out


@pytest.fixture(scope="module")
def found(small_tokenizer: Path, other_tokenizer: Path) -> VocabularyDiff:
    return compare(small_tokenizer, other_tokenizer)


@pytest.fixture(scope="module")
def id_map(found: VocabularyDiff) -> list[dict[str, Any]]:
    table = found.id_map()
    assert table.schema.equals(ID_MAP)
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def test_a_tokenizer_does_not_differ_from_itself(small_tokenizer: Path) -> None:
    same = compare(small_tokenizer, small_tokenizer)
    assert (same.added, same.removed, same.moved, same.broken_promises()) == ([], [], [], [])
    assert same.new_ids().tolist() == list(range(12_288))
    assert set(same.id_map()["kind"].to_pylist()) == {"same", "reserved"}


def test_every_token_is_kept_moved_added_or_removed(found: VocabularyDiff) -> None:
    parts = [len(part) for part in (found.kept, found.moved, found.added, found.removed)]
    assert min(parts) > 50
    kept, moved, added, removed = parts
    assert kept + moved + removed == sum(e.strength is not Strength.RESERVED for e in found.old.entries)
    assert kept + moved + added == sum(e.strength is not Strength.RESERVED for e in found.new.entries)


def test_no_fixed_id_moves_between_builds_of_one_vocabulary(found: VocabularyDiff) -> None:
    assert found.broken_promises() == []
    assert not any(old.fixed and new.fixed for old, new in found.moved)
    assert any(e.fixed for e in found.removed)


@pytest.mark.parametrize(
    ("line", "instead", "said"),
    [
        ('72 = "register"', '300 = "register"', ["'register': id 72 is 300 now, and it is fixed in both"]),
        ('72 = "register"', '72 = "registar"', ["'register': its id 72 is that of 'registar' now, and both are fixed"]),
    ],
)
def test_a_fixed_id_that_moved_is_named(
    build: Build,
    small_tokenizer: Path,
    vocabulary_copy: Path,
    tmp_path: Path,
    line: str,
    instead: str,
    said: list[str],
) -> None:
    path = vocabulary_copy / "language" / "keywords.toml"
    assert line in path.read_text()
    path.write_text(path.read_text().replace(line, instead))
    lock = vocabulary_copy / "ids.lock"  # else the build would refuse it
    lock.write_text("".join(row for row in lock.read_text().splitlines(True) if not row.startswith('"register"')))
    build(tmp_path / "moved", vocabulary_dir=vocabulary_copy)
    assert compare(small_tokenizer, tmp_path / "moved").broken_promises() == said


def test_the_map_has_a_row_for_each_new_id_that_says_what_it_was(
    found: VocabularyDiff, id_map: list[dict[str, Any]]
) -> None:
    assert [row["new_id"] for row in id_map] == list(range(13_000))
    old, new = found.old.tokenizer, found.new.tokenizer
    for row in id_map:
        if row["kind"] == "reserved":
            assert row["old_ids"] == []
            continue
        if row["old_id"] is not None:
            assert row["kind"] == ("same" if row["old_id"] == row["new_id"] else "moved")
            assert row["old_ids"] == [row["old_id"]]
            assert old.token_bytes(row["old_id"]) == new.token_bytes(row["new_id"])
        else:
            assert row["kind"] == "new"
            assert old.decode(row["old_ids"]) == new.token_bytes(row["new_id"]) == row["token"]
    assert {row["kind"] for row in id_map} == {"same", "moved", "new", "reserved"}


def test_control_tokens_and_reserved_ids_are_matched_by_name(
    id_map: list[dict[str, Any]], found: VocabularyDiff
) -> None:
    assert id_map[0] == {"new_id": 0, "token": b"<PAD>", "kind": "same", "old_id": 0, "old_ids": [0]}
    reserved = {"new_id": 7000, "token": b"<RESERVED_7000>", "kind": "reserved", "old_id": 7000, "old_ids": []}
    assert id_map[7000] == reserved
    assert found.new_ids()[[0, 7000]].tolist() == [0, 7000]


def test_the_array_is_the_map_turned_around(found: VocabularyDiff, id_map: list[dict[str, Any]]) -> None:
    array = found.new_ids()
    assert (array.dtype, array.shape) == (np.dtype(np.int64), (12_288,))
    back = {row["old_id"]: row["new_id"] for row in id_map if row["old_id"] is not None}
    assert array.tolist() == [back.get(old_id, -1) for old_id in range(12_288)]
    assert (array == -1).sum() == len(found.removed)


def test_compression_is_counted_by_project(found: VocabularyDiff, documents: list[bytes]) -> None:
    projects = ["b", "a"] * (len(documents) // 2)
    batch = pa.record_batch({"project": projects, "content": pa.array(documents[: len(projects)], pa.binary())})
    counted = compare_compression([batch.slice(0, 7), batch.slice(7)], found, threads=2)
    assert list(counted) == ["a", "b"]
    texts = documents[1 : len(projects) : 2]
    assert counted["a"].num_bytes == sum(map(len, texts))
    assert counted["a"].old_tokens == sum(len(found.old.tokenizer.encode(text)) for text in texts)
    assert counted["a"].new_tokens == sum(len(found.new.tokenizer.encode(text)) for text in texts)


def test_the_table_of_compression_has_a_line_for_each_project_and_for_all(
    found: VocabularyDiff, documents: list[bytes]
) -> None:
    batch = pa.record_batch({"project": ["p", "q"], "content": pa.array([documents[0], b""], pa.binary())})
    lines = describe_compression(compare_compression([batch], found))
    assert [line.split()[0] for line in lines] == ["bytes", "p", "q", "all"]
    before, after = (len(documents[0]) / len(ids.tokenizer.encode(documents[0])) for ids in (found.old, found.new))
    assert lines[1].split()[2:] == [f"{before:.3f}", f"{after:.3f}", f"{after / before - 1:+.2%}"]


def test_the_description_counts_fixed_and_learned_and_names_tokens(found: VocabularyDiff) -> None:
    lines = describe_diff(found)
    assert lines[0].split() == ["tokens", "fixed", "learned"]
    numbers = {line.split()[0]: [int(n.replace(",", "")) for n in line.split()[1:]] for line in lines[1:5]}
    parts = {"kept": found.kept, "moved": found.moved, "added": found.added, "removed": found.removed}
    assert {name: sum(pair) for name, pair in numbers.items()} == {name: len(part) for name, part in parts.items()}
    assert numbers["moved"][0] == numbers["added"][0] == 0
    assert "removed, fixed:" in lines
    assert f"  … and {numbers['removed'][1] - 20:,} more" in lines
    every = describe_diff(found, shown=None)
    assert len(every) > sum(map(len, (found.added, found.removed, found.moved)))
    assert not any(line.startswith("  …") for line in every)
