"""The trainers' benchmark on a small real tree: the rows are there, and all trainers and ways make the same merges."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from benches.lib.harness import Comparison
from benches.lib.texts import list_tree
from benches.speed.training import Sizes, TrainingBench, write_sample
from pipelines.console.progress import Reporters

SIDES = {
    "cpp-words-1": ["cppmill", "tokenizers", "ffbpe"],
    "GPT-2": ["cppmill, merging alone", "ffbpe"],
    "lines": ["cppmill, merging alone", "gigabpe"],
    "same merges": ["cppmill", "cppmill, 1 thread", "cppmill, shuffled"],
    "counting": ["cppmill"],
    "merging": ["cppmill"],
    "superwords": ["cppmill"],
}


@pytest.fixture(scope="module")
def comparisons(tmp_path_factory: pytest.TempPathFactory, in_process: None) -> list[Comparison]:
    work = tmp_path_factory.mktemp("work")
    bench = TrainingBench(list_tree(Path(pa.get_include())), work, threads=2, rounds=1, reporter=Reporters())
    return list(bench.measure(Sizes([1, 1000], [1], [1]), 2048))


def test_every_trainer_and_way_makes_the_same_merges(comparisons: list[Comparison]) -> None:
    assert [comparison.different for comparison in comparisons] == [()] * len(SIDES)
    names = [list(dict.fromkeys(figure.row.name for figure in comparison.figures)) for comparison in comparisons]
    assert names == list(SIDES.values())
    assert [comparison.bench.split(",")[0] for comparison in comparisons[3:]] == list(SIDES)[3:]


def test_counting_and_merging_are_timed_apart(comparisons: list[Comparison]) -> None:
    ours = [figure.row for figure in comparisons[0].figures if figure.row.name == "cppmill"]
    assert [row.unit for row in ours] == ["s", "s counting", "s merging"]
    assert ours[1].value + ours[2].value == pytest.approx(ours[0].value, rel=0.05, abs=0.01)
    alone = [figure.row for figure in comparisons[1].figures if figure.row.name.startswith("cppmill")]
    assert [row.unit for row in alone] == ["s merging"]


def test_a_sample_has_the_same_text_in_both_files(tmp_path: Path) -> None:
    tree = list_tree(Path(pa.get_include()))
    sample = write_sample(tree, tmp_path)
    assert sample.text.read_bytes().decode() == "".join(text.content for text in tree.texts())
    assert sample.num_bytes == sample.text.stat().st_size


def test_a_sample_without_documents_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.cpp").write_bytes(b"")
    with pytest.raises(ValueError, match="has no document"):
        write_sample(list_tree(tmp_path), tmp_path)
