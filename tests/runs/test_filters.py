"""Filters in whole runs: ledger, rejects, verify and plan agree; a changed benchmark has sources read again."""

import json
import shutil

import pyarrow.parquet as pq
import pytest

from pipelines.versions.verify import verify
from transforms.ingest import document_shards

HEADERS = ("ndarraytypes.h", "npy_endian.h", "npy_math.h", "npy_os.h", "ufuncobject.h")
KEY = "gh" + "p_" + "Q9zR" * 9
FILTERS = """
[ingest]
drop_minified = true
drop_secrets = true
convert_wide_text = true
redact = ["email", "ip"]
allowed_licenses = ["MIT"]
unlicensed = "keep"
decontaminate = ["{benchmark}"]
"""
DROPPED = {
    "licensed.h": ("license", "tagged GPL-3.0-only"),
    "table.h": ("minified", "1.000 of it are numbers"),
    "token.h": ("secret", "GitHub Token in line 2"),
    "npy_endian.h": ("contaminated", "13 words of benchmark.h:"),
}


@pytest.fixture
def filtered(run, tmp_path):
    """A folder of headers and three files that filters drop, a benchmark, and a run file that names all."""
    sources = tmp_path / "sources"
    sources.mkdir()
    for name in HEADERS:
        shutil.copy(run.sources / "numpy" / "numpy" / name, sources)
    (sources / "licensed.h").write_text("// SPDX-License-Identifier: GPL-3.0-only\nint licensed;\n")
    (sources / "table.h").write_text("{" + "0x12, 0x34,\n" * 200 + "}")
    (sources / "token.h").write_text(f'int a;\nconst char* token = "{KEY}";\n')
    (sources / "mail.h").write_text("// Jane <jane@acme.org>, joe@acme.org\nint mail;\n")
    wide = (run.sources / "numpy" / "numpy" / "npy_cpu.h").read_text()
    (sources / "wide.h").write_text(wide, encoding="utf-16")
    benchmark = tmp_path / "benchmark.h"
    shutil.copy(sources / "npy_endian.h", benchmark)
    (tmp_path / "run.toml").write_text(FILTERS.format(benchmark=benchmark))
    return tmp_path


def arguments(filtered, run, *options):
    return (filtered / "sources", "--config", filtered / "run.toml", "--tokenizer", run.out / "tokenizer", *options)


def rejects(out):
    rows = [row for path in (out / "documents").glob("rejects-*") for row in pq.read_table(path).to_pylist()]
    return {row["path"]: (row["reason"], row["detail"]) for row in rows}


def test_every_filter_is_in_the_ledger_and_the_rejects_and_the_run_is_proven(filtered, run, cppmill, checker):
    out = filtered / "out"
    cppmill("run", *arguments(filtered, run, "--out", out))
    found = rejects(out)
    assert found.keys() == DROPPED.keys()
    for name, (reason, detail) in DROPPED.items():
        assert found[name][0] == reason
        assert found[name][1].startswith(detail)
    receipt = (out / "receipt.json").read_text()
    assert json.loads(receipt)["ledger"]["documents"]["filtered"] == {reason: 1 for reason, _ in DROPPED.values()}
    assert not any(KEY.encode() in path.read_bytes() for path in out.rglob("*") if path.is_file())
    corpus = json.loads(receipt)["corpus"]
    assert corpus["altered"] == 2
    assert corpus["redacted"]["redacted_emails"] == {"documents": 1, "places": 2}
    documents = pq.read_table(out / "documents", columns=["path", "content", "source_doc_id"]).to_pylist()
    converted = {row["path"]: row for row in documents if row["source_doc_id"]}
    assert converted.keys() == {"mail.h", "wide.h"}
    assert converted["mail.h"]["content"].startswith(b"// Jane <REDACTED_EMAIL>, REDACTED_EMAIL")
    assert converted["wide.h"]["content"] == (run.sources / "numpy" / "numpy" / "npy_cpu.h").read_bytes()
    assert not checker(out)
    assert cppmill("verify", out).returncode == 0
    assert not (out / ".cache" / "benchmarks").exists() or not any((out / ".cache" / "benchmarks").iterdir())


def test_false_platforms_are_found_though_documents_are_altered(filtered, run, cppmill, monkeypatch):
    out, find = filtered / "out", document_shards.find_platforms
    with monkeypatch.context() as patch:
        patch.setattr(document_shards, "find_platforms", lambda paths, content, detect: find(paths, content, None))
        cppmill("run", *arguments(filtered, run, "--out", out))
    assert "has platform_ids [], and its content gives [" in " ".join(verify(str(out), 1.0))


def test_a_changed_benchmark_reads_again_and_an_equal_one_elsewhere_does_not(filtered, run, cppmill):
    out = filtered / "out"
    cppmill("ingest", filtered / "sources", "--config", filtered / "run.toml", "--out", out)

    def planned():
        return cppmill("plan", filtered / "sources", "--config", filtered / "run.toml", "--out", out).stdout

    assert "skip" in planned()
    assert "to be read again" not in planned()
    (filtered / "elsewhere").mkdir()
    (filtered / "benchmark.h").rename(filtered / "elsewhere" / "benchmark.h")
    (filtered / "run.toml").write_text(FILTERS.format(benchmark=filtered / "elsewhere" / "benchmark.h"))
    assert "to be read again" not in planned()
    header = filtered / "elsewhere" / "benchmark.h"
    header.write_bytes(b"\n" + header.read_bytes())
    assert "to be read again" in planned()


def test_a_new_version_is_filtered_as_the_last_one(filtered, run, cppmill):
    store = filtered / "store"
    cppmill("retokenize", *arguments(filtered, run, "--store", store))
    (filtered / "sources" / "other.h").write_text("// SPDX-License-Identifier: GPL-2.0-only\nint other;\n")
    again = ("retokenize", filtered / "sources", "--store", store)
    asked = cppmill(*again, check=False)
    assert asked.returncode == 2
    assert "a receipt has only a benchmark's digest; name its files again" in asked.stderr
    cppmill(*again, "--config", filtered / "run.toml")
    found = rejects(store / "current")
    assert found.keys() == {*DROPPED, "other.h"}
    units = list((store / "current/units/documents").glob("_unit-*.json"))
    assert len(list((store / "current/.cache/fingerprints").iterdir())) == len(units)
    assert cppmill(*again, "--config", filtered / "run.toml", check=False).returncode == 10


def test_a_receipt_has_the_benchmark_and_not_its_place(filtered, run, cppmill):
    receipts = []
    for name in ("here", "there"):
        (filtered / name).mkdir()
        benchmark = filtered / name / "benchmark.h"
        benchmark.write_bytes((filtered / "benchmark.h").read_bytes())
        (filtered / "run.toml").write_text(FILTERS.format(benchmark=benchmark))
        cppmill("run", *arguments(filtered, run, "--out", filtered / f"out-{name}"))
        receipts.append((filtered / f"out-{name}" / "receipt.json").read_bytes())
    assert receipts[0] == receipts[1]
    (filtered / "there" / "benchmark.h").write_bytes((filtered / "sources" / "ndarraytypes.h").read_bytes())
    remembered = filtered / "out-there" / ".cache" / "stages" / "benchmark"
    for forget in (lambda: None, remembered.unlink):
        forget()
        done = cppmill("validate", *arguments(filtered, run, "--out", filtered / "out-there"), check=False)
        assert done.returncode == 2
        assert "the benchmark has changed" in done.stderr


def test_worker_processes_have_the_filters_too(filtered, cppmill, forked_workers):
    out = filtered / "out"
    beam = ("--", "--direct_running_mode=multi_processing", "--direct_num_workers=2")
    cppmill(
        "ingest", filtered / "sources", "--config", filtered / "run.toml", "--out", out, "--unit-bytes", 1 << 16, *beam
    )
    assert rejects(out).keys() == DROPPED.keys()


def test_a_benchmark_without_words_ends_before_anything_is_written(filtered, cppmill):
    (filtered / "benchmark.h").write_text("int a;\n")
    out = filtered / "out"
    done = cppmill("ingest", filtered / "sources", "--config", filtered / "run.toml", "--out", out, check=False)
    assert done.returncode == 2
    assert "no run of 13 words in it" in done.stderr
    assert not list(out.glob("documents/*"))
