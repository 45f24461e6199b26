"""The ablations on a small real tree: tokens are those of the encoder, the table has every row and project."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from benches.lib.texts import SourceText
from benches.lib.trainers import PATTERN
from benches.lib.vocabularies import merge_ours
from benches.studies.ablations import HeldOut, Result, app, markdown, measure_learned, read_held_out
from benches.studies.variants import ALL_BYTES, Vocabulary


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for project, text in {"a": "int a;\nint b;\n", "b": "int main() {\n  return 0;\n}\n"}.items():
        (tmp_path / project).mkdir()
        (tmp_path / project / "x.cpp").write_text(text)
    return tmp_path


@pytest.fixture
def learned() -> Vocabulary:
    words = pa.record_batch({"word": pa.array([b"int", b" main"], pa.binary()), "count": pa.array([9, 3], pa.uint64())})
    merges = merge_ours([words], 260, 1)
    return Vocabulary(merges, (*ALL_BYTES, b"in", b"int", b"ma", b"main"))


def test_held_out_text_is_kept_by_project(tree: Path) -> None:
    text = read_held_out(tree)
    assert text.sizes == {"a": 14, "b": 27}
    assert [item.content for item in text.texts["a"]] == ["int a;\nint b;\n"]


def test_a_row_has_the_tokens_of_each_project_and_the_ids_that_training_text_never_has(learned: Vocabulary) -> None:
    text = HeldOut({"p": [SourceText("p", "int")], "q": [SourceText("q", "zz")]}, {"p": 3, "q": 2})
    words = text.count(PATTERN, 1)
    train = pa.RecordBatchReader.from_batches(words["p"][0].schema, words["p"])
    row = measure_learned("name", learned, train, words, text.sizes, 1)
    assert row.tokens == {"p": 1, "q": 2}
    assert row.unused == row.ids - 1
    assert row.bytes_per_token() == {"p": 3.0, "q": 1.0, "total": pytest.approx(5 / 3)}


def test_the_table_has_a_column_a_project_and_the_bytes(learned: Vocabulary) -> None:
    lines = list(
        markdown(
            [
                Result("r", {"p": 5, "q": 4}, {"p": 10, "q": 10}, 300, 7),
                Result("o", {"p": 1, "q": 1}, {"p": 10, "q": 10}, 9, None),
            ]
        )
    )
    assert lines[0] == "| vocabulary | p | q | total | unused ids |"
    assert lines[2] == "| r | 2.000 | 2.500 | 2.222 | 7 of 300 |"
    assert lines[3].endswith("| 10.000 |  |")


@pytest.mark.engines
def test_the_command_makes_every_row(tmp_path: Path, tree: Path, scanned_run: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    options = ["--json", str(rows), "--vocab-size", "13000", "--threads", "1"]
    done = CliRunner().invoke(app, [str(scanned_run), str(tree), *options])
    assert done.exit_code == 0, done.output
    names = [json.loads(line)["name"] for line in rows.read_text().splitlines()]
    assert names[:4] == ["13,000", "13,000, no bands", "13,000, no seeds", "13,000, no seeds, no bands"]
    assert names[4:7] == [f"13,000, superwords after {share} %" for share in (50, 75, 90)]
    assert names[7:] == ["o200k_base", "13,000, cl100k pattern"]
    assert all(f"| {name} |" in done.output for name in names)
