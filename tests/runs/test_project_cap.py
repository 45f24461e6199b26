"""A run that caps what a project counts for: words are counted by project, and everything else holds as in any run."""

from __future__ import annotations

import zlib
from collections import Counter

import pyarrow.parquet as pq
import pytest

from pipelines.versions.verify import verify

PARTITIONS = 8


@pytest.fixture(scope="module")
def capped(run, cppmill, tmp_path_factory):
    out = tmp_path_factory.mktemp("capped") / "out"
    by_project = ("--set", "scan.partition_by_project=true", "--set", f"scan.word_partitions={PARTITIONS}")
    given = ("--vocab-size", "12288", "--set", "build.project_cap=1.0", "--unit-bytes", "262144")
    cppmill("run", run.sources, "--out", out, *given, *by_project)
    return out


def counted(out):
    """The words of a run by the number of their file."""
    files = sorted((out / "counts/words").iterdir())
    return {file.stem: dict(zip(*pq.read_table(file).to_pydict().values(), strict=True)) for file in files}


def test_a_file_has_the_words_of_its_projects_and_all_files_have_those_of_any_run(run, capped):
    files = counted(capped)
    projects = set(pq.read_table(capped / "documents", columns=["project"])["project"].to_pylist())
    wanted = {f"part-{zlib.crc32(project.encode()) % PARTITIONS:03d}" for project in projects}
    assert {name for name, words in files.items() if words} == wanted
    assert len(wanted) > 1
    together = sum((Counter(words) for words in files.values()), Counter())
    assert together == sum((Counter(words) for words in counted(run.out).values()), Counter())


def test_its_tokenizer_is_another_one_and_verifies(run, capped):
    merges = [(folder / "tokenizer/tokenizer.json").read_bytes() for folder in (run.out, capped)]
    assert merges[0] != merges[1]
    assert verify(str(capped)) == []
