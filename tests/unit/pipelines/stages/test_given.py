"""No source takes what the run writes, whether or not the folder is there yet."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from configs.runs import load_run_config
from pipelines.console.progress import Reporters
from pipelines.stages import ingest
from pipelines.stages.given import check_own_output
from pipelines.stages.session import _check_places, open_session
from schemas.errors import ConfigError
from transforms.storage.protocol import CACHE

READS_ITSELF = "--out .*: it lies inside the source .*, so the run would read its own output; choose a folder apart"


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a.cpp").write_text("int a;")
    monkeypatch.chdir(tmp_path)
    return tmp_path


ANY_DEPTH = ("*", "**", "./*", "?*", "*/*", "**/*", "*/**", "**/*.parquet", "**/*.json", "ou[t]")
ANY_DEPTH += ("{}/*", "file://{}/*", "local://{}/**")


@pytest.mark.parametrize(
    ("source", "out"),
    [*((source, out) for source in ANY_DEPTH for out in ("out", "out/versions/v000001"))]
    + [("*/*/*", "out"), ("*/tokenizer/*", "out"), ("out/*/*", "out/versions/v000001")],
)
def test_a_pattern_that_takes_the_output_is_refused_before_there_is_any(work: Path, source: str, out: str) -> None:
    config = load_run_config(flags={"SOURCE": [source.format(work)], "--out": out}, needs_sources=True)
    with pytest.raises(ConfigError, match=READS_ITSELF):
        check_own_output(config)


@pytest.mark.parametrize(
    "source", ["src/*", "**/*.cpp", "*.json", "s*/**", "?rc", "zip://*::file:///a.zip", "s3://b/*"]
)
def test_any_other_pattern_is_free(work: Path, source: str) -> None:
    check_own_output(load_run_config(flags={"SOURCE": [source], "--out": "out"}, needs_sources=True))
    check_own_output(load_run_config(flags={"SOURCE": ["*"], "--out": ".hidden/out"}, needs_sources=True))


@pytest.mark.parametrize("scheme", ["s3", "s3a", "simplecache::s3", "gs", "gcs", "blockcache::gcs"])
def test_sources_of_an_object_store_are_checked_by_any_of_its_names(work: Path, scheme: str) -> None:
    out = "s3://b/in/out" if "s3" in scheme else "gs://b/in/out"
    places = (("b/in/*", True), ("b/in", True), ("b/in/*.cpp", False), ("c/in/*", False), ("b/i", False))
    for (place, is_refused), flag in product(places, ("SOURCE", "--decontaminate")):
        flags = {"SOURCE": ["src"], "--out": out} | {flag: [f"{scheme}://{place}"]}
        if is_refused:
            with pytest.raises(ConfigError, match=f"--out {out}|--out: it lies"):
                check_own_output(load_run_config(flags=flags, needs_sources=True))
        else:
            check_own_output(load_run_config(flags=flags, needs_sources=True))


@pytest.mark.parametrize(
    ("place", "said"),
    [("out/documents", "lies in"), ("out", "lies in"), ("file://{}/out", "lies in"), ("out/*/*", "lies in")]
    + [(place, "has files of") for place in (".", "*", "**/*.parquet", "{}/o*/documents/*", "file://{}/**/*.txt")],
)
def test_a_benchmark_of_the_output_is_refused(work: Path, place: str, said: str) -> None:
    (work / "out/documents").mkdir(parents=True)
    flags = {"SOURCE": ["src"], "--out": "out", "--decontaminate": [place.format(work)]}
    config = load_run_config(flags=flags, needs_sources=True)
    with pytest.raises(ConfigError, match=f"--decontaminate .*: it {said} --out out, where the run writes"):
        check_own_output(config)


@pytest.mark.parametrize("place", ["src", "*.jsonl", "**/*.jsonl", "s3://b/*"])
def test_any_other_benchmark_is_free(work: Path, place: str) -> None:
    flags = {"SOURCE": ["src"], "--out": "out", "--decontaminate": [place]}
    check_own_output(load_run_config(flags=flags, needs_sources=True))


def test_a_file_of_the_output_that_is_listed_all_the_same_is_refused(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipelines.stages.session.check_own_output", lambda config: None)
    (work / "out/.cache").mkdir(parents=True)
    (work / "out/mine.txt").write_text("")
    config = load_run_config(flags={"SOURCE": ["*"], "--out": "out"}, needs_sources=True)
    with open_session(config, Reporters()), pytest.raises(ConfigError, match=READS_ITSELF):
        ingest.list_units(config)


def test_a_folder_of_the_cache_that_a_peer_removes_meanwhile_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("attempts", "tmp"):
        (tmp_path / CACHE / name / "deeper").mkdir(parents=True)
    listed = Path.iterdir

    def remove_behind(path: Path) -> list[Path]:
        found = list(listed(path))
        (tmp_path / CACHE / "tmp/deeper").rmdir()
        (tmp_path / CACHE / "tmp").rmdir()
        return found

    monkeypatch.setattr(Path, "iterdir", remove_behind)
    _check_places(tmp_path, ("tokens",))
    assert not (tmp_path / CACHE / "tmp").exists()
