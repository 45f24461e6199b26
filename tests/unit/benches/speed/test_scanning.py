"""The scanner's benchmark on a small real tree: its rows, the agreement of budgets, and what it refuses."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

import benches.speed.scanning
from benches.lib.harness import BenchmarkError, Comparison, Figure, Published, Row, RunResult, Sample, summarize, table
from benches.speed.scanning import Documents, app, find_documents, measure_scanner, prepare, read_all
from pipelines.console.progress import Reporters

KILOBYTES = 1e-6
"""In gigabytes."""


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Documents:
    return find_documents(Path(np.get_include()), tmp_path_factory.mktemp("work"), Reporters())


@pytest.mark.usefixtures("in_process")
def test_the_rows_of_speed_and_of_the_curve_are_there_and_budgets_agree(
    documents: Documents, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(benches.speed.scanning, "SAMPLE_GIGABYTES", (100 * KILOBYTES, 200 * KILOBYTES, 1.0))
    monkeypatch.setattr(benches.speed.scanning, "SMALL_BUDGET_BYTES", 100_000)
    comparisons = list(measure_scanner(documents, tmp_path, rounds=1, reporter=Reporters()))
    assert [comparison.bench for comparison in comparisons] == ["documents", "scanner", "0.0001 GB", "0.0002 GB"]
    assert [comparison.different for comparison in comparisons] == [()] * 4
    rows = [(figure.row.unit, figure.row.threads) for comparison in comparisons for figure in comparison.figures]
    shares = "% of it waiting for documents"
    assert rows[:5] == [("MB/s", 1), ("MB/s", 2), (shares, 2), ("MB/s", 1), (shares, 1)]
    assert rows[5:] == [("s/GB", 2)] * 4
    assert {published.value for published in comparisons[1].published} == {434.0, 77.0}
    assert list((tmp_path / "spill").iterdir()) == []  # the small budget was too small, and nothing stayed


def test_an_output_folder_is_taken_as_it_is(documents: Documents, tmp_path: Path) -> None:
    out = documents.shards[0].parent.parent
    assert find_documents(out, tmp_path, Reporters()) == documents
    assert list(tmp_path.iterdir()) == []


def test_a_sample_is_the_first_shards_that_have_enough() -> None:
    documents = Documents(tuple(map(Path, "abc")), (10, 20, 30))
    assert [documents.sample(size).num_bytes for size in (1, 10, 11, 30, 60, 61)] == [10, 10, 30, 30, 60, 60]


def test_missing_bytes_are_an_error(documents: Documents) -> None:
    with pytest.raises(BenchmarkError, match="1 bytes of documents were announced"):
        read_all(1, prepare(documents.shards))


def test_costs_are_seconds_and_shares_are_as_they_are() -> None:
    samples = [Sample(seconds, 1, RunResult(costs={"GB": 0.5}, shares={"% reading": 20.0})) for seconds in (1.0, 3.0)]
    cost, share = summarize("scan", "ours", samples, 1, 1)
    assert (cost.row.value, cost.row.unit, cost.lowest, cost.highest) == (4.0, "s/GB", 2.0, 6.0)
    assert (share.row.value, share.row.unit) == (20.0, "% reading")


def test_the_table_has_published_figures_beside_ours() -> None:
    ours = Figure(Row("scan", "ours", 50.0, "MB/s", 1, 2, 1), 50.0, 50.0)
    comparison = Comparison("scan", (ours,), published=(Published("published: theirs", 100.0, "MB/s", 48),))
    text = io.StringIO()
    Console(width=160, file=text).print(table([comparison]))
    line = next(line for line in text.getvalue().splitlines() if "published" in line)
    assert all(cell in line for cell in ("theirs", "100", "MB/s", "48", "2.00"))


def test_a_tree_without_sources_ends_as_a_run_of_it_does(tmp_path: Path) -> None:
    (tmp_path / "README").write_text("no C++ here\n")
    done = CliRunner().invoke(app, [str(tmp_path)])
    assert done.exit_code == 3
    assert [path.name for path in tmp_path.iterdir()] == ["README"]
