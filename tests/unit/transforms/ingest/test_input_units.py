"""Input units: verdicts by name, limits, keys that move with what they stand for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from schemas.options import IngestOptions
from schemas.units import Unit
from transforms.filters.decontamination import read_benchmark
from transforms.ingest.input_units import plan_inputs
from transforms.sources.listing import list_inputs


def plan(*sources: Path, **options: object) -> list[Unit]:
    chosen = IngestOptions.model_validate(options)
    return plan_inputs(list_inputs([str(source) for source in sources], chosen), chosen)


def reasons(units: list[Unit]) -> dict[str, str]:
    return {path: reason for unit in units for path, _, _, reason in unit.payload["inputs"]}


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    root = tmp_path / "corpus"
    for index in range(60):
        path = root / f"p{index % 3}/f{index:02d}.cpp"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"int a;\n" * (index * 300))
    (root / "README").write_bytes(b"read me")
    (root / "a.tar").write_bytes(b"x")
    return root


def test_every_file_is_in_one_unit_and_archives_are_alone_in_theirs(corpus: Path) -> None:
    units = plan(corpus, unit_bytes=1 << 16)
    names = [path for unit in units for path, *_ in unit.payload["inputs"]]
    assert sorted(names) == sorted(str(path.relative_to(corpus)) for path in corpus.rglob("*") if path.is_file())
    assert [unit.payload["inputs"][0][0] for unit in units if unit.payload["kind"] == "tar"] == ["a.tar"]
    assert [unit.payload["index"] for unit in units] == list(range(len(units)))
    assert len(units) > 5


def test_units_never_span_sources(corpus: Path) -> None:
    assert [unit.payload["root"] for unit in plan(corpus / "p0", corpus / "p1")] == [
        str(corpus / "p0"),
        str(corpus / "p1"),
    ]


def test_names_and_sizes_decide_what_they_can(corpus: Path) -> None:
    found = reasons(plan(corpus, max_document_bytes=100_000))
    assert found["README"] == "extension"
    assert found["p2/f59.cpp"] == "size"
    assert found["p0/f00.cpp"] == ""


def test_a_sample_takes_its_share_and_counts_the_rest(corpus: Path) -> None:
    found = reasons(plan(corpus, sample=0.3))
    assert 8 < sum(not reason for reason in found.values()) < 30
    assert set(found.values()) == {"", "sample", "extension"}


def test_a_limit_takes_so_many_of_each_source_whatever_the_units(corpus: Path) -> None:
    small, large = plan(corpus, corpus / "p0", limit=7, unit_bytes=1 << 16), plan(corpus, corpus / "p0", limit=7)
    taken = [path for unit in small for path, _, _, reason in unit.payload["inputs"] if not reason and "cpp" in path]
    assert len(taken) == 14
    assert reasons(small) == reasons(large)


def test_a_key_moves_with_its_files_and_no_others(corpus: Path) -> None:
    before = plan(corpus, unit_bytes=1 << 16)
    os.utime(corpus / "p1/f31.cpp", ns=(5, 5))
    after = plan(corpus, unit_bytes=1 << 16)
    changed = [old for old, new in zip(before, after, strict=True) if old.key != new.key]
    assert len(changed) == 1
    assert "p1/f31.cpp" in reasons(changed)


def test_a_key_moves_with_the_options_that_bear_on_reading(corpus: Path) -> None:
    def key(**options: object) -> str:
        return plan(corpus / "p0", **options)[0].key

    same = {key(), key(detect_platforms=False), key(drop_duplicates=False), key(near_duplicate_similarity=0.8)}
    assert len(same) == 1
    assert (
        len(same | {key(drop_binary=False), key(max_line_bytes=9), key(content_column="x"), key(extensions=("cpp",))})
        == 5
    )


def test_a_key_moves_with_the_libraries_that_the_filters_decide_by(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, filtered = plan(corpus)[0].key, plan(corpus, allowed_licenses=("MIT",))[0].key
    monkeypatch.setattr("schemas.plugins.entry_points.version", lambda name: "0")
    assert plan(corpus)[0].key == before
    assert plan(corpus, allowed_licenses=("MIT",))[0].key not in (before, filtered)


def test_a_key_moves_with_what_is_in_a_benchmark_not_with_its_place(corpus: Path, tmp_path: Path) -> None:
    def key(text: str, folder: str) -> str:
        place = tmp_path / folder / "b.txt"
        place.parent.mkdir(exist_ok=True)
        place.write_text(text)
        options = IngestOptions(decontaminate=(str(place),))
        return plan_inputs(list_inputs([str(corpus)], options), options, read_benchmark(options))[0].key

    words = " ".join(f"word{number}" for number in range(13))
    assert key(words, "a") == key(words, "b")
    assert len({key(words, "a"), key(words + " more", "a"), plan(corpus)[0].key}) == 3


def test_a_key_moves_with_the_place_of_the_source(corpus: Path, tmp_path: Path) -> None:
    other = tmp_path / "other/p0"
    other.parent.mkdir()
    before = plan(corpus / "p0")[0].key
    (corpus / "p0").rename(other)
    assert plan(other)[0].key != before


def test_units_travel_as_json_whatever_their_names(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9.cpp")).write_bytes(b"x")
    (unit,) = plan(tmp_path)
    assert Unit.from_bytes(unit.to_bytes()) == unit
    assert unit.label == "caf%E9.cpp"
