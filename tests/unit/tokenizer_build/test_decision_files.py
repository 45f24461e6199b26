from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.options import BuildOptions
from schemas.tables import MORPHEMES, TERMS
from tokenizer_build.decision_files import DECISIONS, write_decisions
from tokenizer_build.decisions import decide, decide_morphemes
from tokenizer_build.lint import load_vocabulary
from tokenizer_build.vocabulary import Vocabulary

DOCUMENTS = 1000


def table(*rows: tuple[str, str, int, int, int]) -> pa.Table:
    columns = ("term", "category", "hits", "documents", "projects")
    return pa.Table.from_pylist([dict(zip(columns, row, strict=True)) for row in rows], schema=TERMS)


def written(vocabulary_dir: Path, folder: Path) -> list[dict[str, Any]]:
    vocabulary, lock = load_vocabulary(vocabulary_dir)
    terms = table(("TEST", "gtest", 50, 30, 7))
    morphemes = pa.Table.from_pylist(
        [{"morpheme": "init", "position": "cpp_stem", "hits": 9, "documents": 5, "projects": 2}], schema=MORPHEMES
    )
    decisions = decide(vocabulary, lock, terms, DOCUMENTS, BuildOptions())
    write_decisions(decisions, decide_morphemes(vocabulary, lock, morphemes, DOCUMENTS, BuildOptions()), folder)
    file = pq.read_table(folder / "decisions.parquet")
    assert file.schema.equals(DECISIONS)
    rows: list[dict[str, Any]] = file.to_pylist()
    return rows


def test_the_report_has_a_row_for_each_candidate_and_morpheme(
    vocabulary: Vocabulary, vocabulary_copy: Path, tmp_path: Path
) -> None:
    rows = written(vocabulary_copy, tmp_path)
    assert len(rows) == len(vocabulary.candidates) + len(vocabulary.morphemes)
    assert next(row for row in rows if row["token"] == "TEST") == {
        "token": "TEST",
        "id": 5302,
        "category": "gtest",
        "hits": 50,
        "documents": 30,
        "projects": 7,
        "document_share": 0.03,
        "shape": "none",
        "decision": "cut",
        "rule": "generic",
    }
    init = next(row for row in rows if row["token"] == "init")
    assert (init["category"], init["hits"], init["decision"]) == ("morpheme:cpp_stem", 9, "kept")


def test_the_readable_table_has_the_same_rows(vocabulary_copy: Path, tmp_path: Path) -> None:
    rows = written(vocabulary_copy, tmp_path)
    lines = (tmp_path / "decisions.txt").read_text().splitlines()
    assert lines[0].split() == [*("share" if name == "document_share" else name for name in rows[0])]
    assert len(lines) == len(rows) + 1
    cells = [(line[: lines[0].index("id") + 2].split()[0], line.split()[-1]) for line in lines[1:]]
    plain = [(row["token"].split()[0], row["rule"]) for row in rows]
    assert cells == plain
    assert lines[[row["token"] for row in rows].index("TEST") + 1].split() == [
        *("TEST", "5302", "gtest", "50", "30", "7", "3.000%", "none", "cut", "generic")
    ]


def test_the_report_is_the_same_bytes_each_time(vocabulary_copy: Path, tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("first", "second")]
    for folder in folders:
        folder.mkdir()
        written(vocabulary_copy, folder)
    for name in ("decisions.parquet", "decisions.txt"):
        assert (folders[0] / name).read_bytes() == (folders[1] / name).read_bytes()
