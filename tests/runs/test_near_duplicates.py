"""Near-duplicates of real headers are dropped and listed, wherever and however the run is carried out."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from configs.runs import load_run_config
from pipelines.console.progress import Reporters
from pipelines.stages import ingest
from pipelines.stages.session import open_session
from transforms.storage.folder import OutputFolder

SIMILARITY = ("--near-duplicate-similarity", "0.8")
EDITED = ("npy_math.h", "ndarraytypes.h", "npy_cpu.h", "npy_endian.h", "ufuncobject.h", "halffloat.h")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """The headers of NumPy, a fork of some with small edits, another with exact copies of these and of others."""
    root = tmp_path_factory.mktemp("near") / "sources"
    headers = Path(np.get_include(), "numpy")
    shutil.copytree(headers, root / "numpy")
    for name in EDITED:
        content = b"/* Copyright: another one, of another year. */\n" + (headers / name).read_bytes()
        content = content.replace(b"npy_half_to_float", b"npy_half_as_float").replace(b"NPY_CPU_S390", b"NPY_CPU_S360")
        for fork in ("other", "zcopy"):
            (root / fork).mkdir(exist_ok=True)
            (root / fork / name).write_bytes(content)
    shutil.copy(headers / "npy_os.h", root / "zcopy" / "npy_os.h")
    return root


def ingested(sources, out, *options):
    """Ingest; returns the receipts of the units, one of the ledgers' sums, and the rejects by path."""
    flags = {"SOURCE": [str(sources)], "--out": str(out), "--unit-bytes": "65536"}
    flags |= dict(zip(options[::2], options[1::2], strict=True))
    with open_session(load_run_config(flags=flags, needs_sources=True), Reporters()) as session:
        return ingest.ingest(session)


@pytest.fixture(scope="module")
def filtered(corpus, tmp_path_factory):
    """The corpus once ingested with the filter; not to be changed."""
    out = tmp_path_factory.mktemp("filtered") / "out"
    ingested(corpus, out, *SIMILARITY)
    return out


def rejects(out, reason="near_duplicate"):
    """Path and detail of what was dropped for a reason; of an empty reason, of duplicates."""
    folder = OutputFolder(out)
    found = {}
    for name in folder.files("documents"):
        if "/rejects-" in name:
            with folder.open_local(name) as path:
                rows = pq.read_table(path).to_pylist()
            found |= {row["path"]: row["detail"] for row in rows if row["reason"] == reason}
    return found


def documents(out):
    """The kept documents' digests by path."""
    folder, found = OutputFolder(out), {}
    for name in folder.files("documents"):
        if "/part-" in name:
            with folder.open_local(name) as path:
                rows = pq.read_table(path, columns=["path", "doc_id"]).to_pylist()
            found |= {row["path"]: row["doc_id"] for row in rows}
    return found


def test_edited_headers_are_dropped_with_their_copies_and_name_what_is_kept(corpus, place):
    receipts = ingested(corpus, place, *SIMILARITY)
    dropped, kept = rejects(place), documents(place)
    expected = {f"{fork}/{name}": f"numpy/{name}" for fork in ("other", "zcopy") for name in EDITED}
    assert dropped.keys() == expected.keys()
    for path, original in expected.items():
        similarity, doc_id = dropped[path].split(" like ")
        assert doc_id == kept[original]
        assert 0.8 <= float(similarity) <= 1
    assert float(dropped["other/ufuncobject.h"].split()[0]) == 1, "only a comment was changed"
    assert float(dropped["other/halffloat.h"].split()[0]) < 1, "functions were renamed"
    assert rejects(place, "").keys() == {"zcopy/npy_os.h"}
    total = sum(1 for path in corpus.rglob("*") if path.is_file())
    ledgers = [receipt.ledger["documents"] for receipt in receipts]
    assert sum(ledger["in"] for ledger in ledgers) == total
    assert sum(ledger["filtered"].get("near_duplicate", 0) for ledger in ledgers) == len(expected)


def test_units_of_another_size_drop_the_same(corpus, filtered, tmp_path):
    ingested(corpus, tmp_path / "large", *SIMILARITY, "--unit-bytes", str(64 << 20))
    assert len(rejects(filtered)) == 2 * len(EDITED)
    assert rejects(filtered) == rejects(tmp_path / "large")
    assert documents(filtered) == documents(tmp_path / "large")


def test_without_the_filter_units_are_as_before(corpus, tmp_path):
    plain = [receipt.to_bytes() for receipt in ingested(corpus, tmp_path / "out")]
    filtered = [receipt.to_bytes() for receipt in ingested(corpus, tmp_path / "out", *SIMILARITY)]
    assert len(set(filtered) - set(plain)) < len(plain), "units without near-duplicates stay as they are"
    assert [receipt.to_bytes() for receipt in ingested(corpus, tmp_path / "out")] == plain


def test_one_more_document_changes_the_signatures_of_its_unit_alone(corpus, tmp_path):
    sources = shutil.copytree(corpus, tmp_path / "sources")
    ingested(sources, tmp_path / "out", *SIMILARITY)
    cache = tmp_path / "out" / ".cache"
    before = {path: path.stat().st_mtime_ns for path in (cache / "signatures").iterdir()}
    shutil.copy(sources / "numpy" / "npy_math.h", sources / "other" / "more.h")
    (sources / "other" / "more.h").write_bytes((sources / "other" / "more.h").read_bytes() + b"int more;\n")
    ingested(sources, tmp_path / "out", *SIMILARITY)
    after = {path: path.stat().st_mtime_ns for path in (cache / "signatures").iterdir()}
    kept = before.keys() & after.keys()
    assert kept, "other units are not read again"
    assert all(before[path] == after[path] for path in kept)
    assert len(before.keys() - after.keys()) <= 2, "what is known of a unit that is no more is forgotten"
    assert 1 <= len(after.keys() - before.keys()) <= 2
    assert "other/more.h" in rejects(tmp_path / "out")
    assert not list(cache.glob("near_duplicates/pairs/*"))
    assert not (cache / "near_duplicates" / "clusters.parquet").exists()


def test_a_smaller_name_that_comes_later_is_kept_instead(corpus, tmp_path):
    sources = shutil.copytree(corpus, tmp_path / "sources")
    ingested(sources, tmp_path / "out", *SIMILARITY)
    (sources / "another").mkdir()
    shutil.copy(sources / "other" / "npy_math.h", sources / "another" / "npy_math.h")
    ingested(sources, tmp_path / "out", *SIMILARITY)
    kept = documents(tmp_path / "out")
    assert kept.keys() >= {"another/npy_math.h"}
    assert kept["another/npy_math.h"] in rejects(tmp_path / "out")["numpy/npy_math.h"]
    copies = {"other/npy_math.h", "zcopy/npy_math.h"}
    assert copies <= rejects(tmp_path / "out", "").keys(), "copies of what is kept are duplicates"


def test_choices_that_are_damaged_are_made_again(corpus, filtered, tmp_path):
    shutil.copytree(filtered, tmp_path / "out")
    [chosen] = (tmp_path / "out" / ".cache" / "near_duplicates").glob("*.parquet")
    whole, dropped = chosen.read_bytes(), rejects(tmp_path / "out")
    chosen.write_bytes(whole[:-3])
    ingested(corpus, tmp_path / "out", *SIMILARITY)
    assert chosen.read_bytes() == whole
    assert rejects(tmp_path / "out") == dropped


def test_a_run_is_proven_planned_and_taken_up(corpus, run, cppmill, checker, tmp_path):
    command = ["run", corpus, "--out", tmp_path / "out", "--tokenizer", run.out / "tokenizer", *SIMILARITY]
    cppmill(*command)
    assert cppmill("verify", tmp_path / "out").returncode == 0
    assert not checker(tmp_path / "out")
    ledger = json.loads((tmp_path / "out" / "receipt.json").read_bytes())["ledger"]["documents"]
    assert ledger["filtered"]["near_duplicate"] == 2 * len(EDITED)
    planned = [json.loads(line) for line in cppmill("plan", *command[1:], "--json").stdout.splitlines()]
    assert {unit["action"] for unit in planned} == {"skip"}
    lower = cppmill("plan", *command[1:-1], "0.7", "--json").stdout.splitlines()
    assert json.loads(lower[0])["stage"] == "compare"


def test_a_store_is_retokenized_with_the_filter_of_the_previous_version(corpus, run, cppmill, tmp_path):
    sources = shutil.copytree(corpus, tmp_path / "sources")
    command = ["retokenize", sources, "--store", tmp_path / "store", "--tokenizer", run.out / "tokenizer"]
    (tmp_path / "run.toml").write_text("[ingest]\nnear_duplicate_similarity = 0.8\n")
    cppmill(*command, "--config", tmp_path / "run.toml")
    assert cppmill(*command, check=False).returncode == 10
    shutil.copy(sources / "other" / "npy_math.h", sources / "other" / "more.h")
    os.utime(sources / "other" / "more.h", ns=(5, 5))
    cppmill(*command)
    assert len(rejects(tmp_path / "store" / "current")) == 2 * len(EDITED) + 1


@pytest.mark.engines
@pytest.mark.timeout(900)
def test_an_engine_drops_the_same(corpus, cppmill, tmp_path):
    for engine in ("local", "prism"):
        options = ("--unit-bytes", "65536", "--engine", engine)
        cppmill("ingest", corpus, "--out", tmp_path / engine, *SIMILARITY, *options)
    local, prism = (
        {path.name: path.read_bytes() for path in (tmp_path / engine / "documents").iterdir()}
        for engine in ("local", "prism")
    )
    assert len(rejects(tmp_path / "prism")) == 2 * len(EDITED)
    assert prism == local
