"""The comparison with exact similarities: what it counts, and that the filter finds what it should in real headers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from benches.studies.near_duplicates import NEARLY, app, distinct_documents, exact_pairs, measure
from transforms.ingest.shingles import shingle


@pytest.fixture(scope="module")
def documents() -> list[bytes]:
    """The headers of Arrow, and copies of them with some lines cut out."""
    whole = distinct_documents(Path(pa.get_include(), "arrow"), 1e9)
    cut = [b"\n".join(content.split(b"\n")[: -5 * (number % 20) or None]) for number, content in enumerate(whole[:150])]
    return [*whole, *(content for content in cut if content not in whole and len(shingle([content], 1).hashes))]


def test_exact_pairs_are_those_of_sets(documents: list[bytes]) -> None:
    few = documents[110:150] + documents[-40:]
    sets = [set(shingle([content], 5).hashes.tolist()) for content in few]
    expected = {
        first * len(few) + second: len(sets[first] & sets[second]) / len(sets[first] | sets[second])
        for first in range(len(few))
        for second in range(first + 1, len(few))
    }
    found = exact_pairs(shingle(few, 5), 0.5)
    near = {pair: similarity for pair, similarity in expected.items() if similarity >= 0.5}
    assert len(near) > 10
    assert dict(zip(found.pairs.tolist(), found.similarity.tolist(), strict=True)) == pytest.approx(near)


def test_most_pairs_of_real_headers_are_found_and_hardly_any_other(documents: list[bytes]) -> None:
    exact = exact_pairs(shingle(documents, 5), 0.8 - NEARLY)
    row = measure(documents, exact, 0.8, 5, 256)
    assert row.exact == np.count_nonzero(exact.similarity >= 0.8) > 50
    assert row.recall > 0.9
    assert row.precision > 0.9
    assert row.nearly > 0.98
    assert abs(row.dropped - row.dropped_exactly) <= 0.1 * row.dropped_exactly


def test_a_sample_has_whole_folders_without_copies(tmp_path: Path) -> None:
    for number in range(40):
        for name, content in {
            "a.h": f"int a{number};",
            "b.h": f"int b{number};",
            "c.h": "int c;",
            "d.h": "// d",
        }.items():
            path = tmp_path / f"f{number}" / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(content)
    found = distinct_documents(tmp_path, sum(path.stat().st_size for path in tmp_path.rglob("*.h")) / 2)
    names = [content.decode().split()[1] for content in found]
    assert 20 < len(names) < 60
    assert names.count("c;") == 1
    assert {name[1:] for name in names if name[0] == "a"} == {name[1:] for name in names if name[0] == "b"}


def test_the_command_prints_a_row_for_each_choice(documents: list[bytes], tmp_path: Path) -> None:
    for number, content in enumerate(documents[:60] + documents[-60:]):
        (tmp_path / f"{number}.h").write_bytes(content)
    done = CliRunner().invoke(app, [str(tmp_path), "--mb", "100"])
    assert done.exit_code == 0, done.output
    title, names, *rows = done.output.splitlines()
    assert title.startswith("120 distinct documents")
    assert names.split()[:3] == ["similarity", "tokens", "permutations"]
    assert [row.split()[:3] for row in rows[:2]] == [["0.8", "5", "128"], ["0.8", "5", "256"]]
