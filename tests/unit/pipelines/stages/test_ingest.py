"""What changes or cannot be read while a run is at work is counted, and is made good by the next run."""

import errno
import io
import json
import os
import shutil
import stat
import threading
from collections import Counter
from contextlib import contextmanager

import pytest

from configs.runs import load_run_config
from pipelines.console.progress import Reporters
from pipelines.console.reporters import JsonReporter
from pipelines.stages import ingest
from pipelines.stages.session import check_version_folder, open_session
from transforms.filters.withdrawals import Withdrawals
from transforms.sources.batches import BATCH_ROWS
from transforms.sources.readers import read_batches
from transforms.storage.local import LocalStore


@pytest.fixture
def small_sources(sources, tmp_path):
    return shutil.copytree(sources / "numpy", tmp_path / "sources" / "numpy").parent


def ingested(sources, out, **flags):
    """Ingest and return the ledger of documents."""
    given = {f"--{name.replace('_', '-')}": value for name, value in flags.items()}
    config = load_run_config(
        flags={"SOURCE": [str(sources)], "--out": str(out), "--max-dead-fraction": "1", **given}, needs_sources=True
    )
    with open_session(config, Reporters()) as session:
        receipts = ingest.ingest(session)
    return [json.loads(json.dumps(receipt.ledger))["documents"] for receipt in receipts]


def test_a_file_that_is_away_for_the_second_pass_is_back_in_the_next_run(small_sources, tmp_path, monkeypatch):
    path, away = small_sources / "numpy" / "numpy" / "npy_math.h", tmp_path / "away"
    planned = ingest.plan_documents

    def plan_and_move(*arguments):
        units = planned(*arguments)
        path.rename(away)
        return units

    monkeypatch.setattr(ingest, "plan_documents", plan_and_move)
    [first] = ingested(small_sources, tmp_path / "out")
    assert first["dead"] == {"changed": 1}
    monkeypatch.undo()
    away.rename(path)
    [second] = ingested(small_sources, tmp_path / "out")
    assert second["dead"] == {}
    assert second["kept"] == first["kept"] + 1


def test_a_file_that_could_not_be_read_is_tried_again(small_sources, tmp_path, monkeypatch):
    path, away = small_sources / "numpy" / "numpy" / "npy_math.h", tmp_path / "away"
    listed = ingest.list_units

    def list_and_replace(*arguments):
        units = listed(*arguments)
        path.rename(away)
        os.mknod(path, stat.S_IFSOCK | 0o600)  # no one can open a socket
        return units

    monkeypatch.setattr(ingest, "list_units", list_and_replace)
    [first] = ingested(small_sources, tmp_path / "out")
    assert first["dead"] == {"unreadable": 1}
    monkeypatch.undo()
    away.rename(path)
    [second] = ingested(small_sources, tmp_path / "out")
    assert second["dead"] == {}
    assert second["kept"] == first["kept"] + 1


@pytest.fixture
def opened(monkeypatch):
    """How often each file of the cache was opened for its footer."""
    open_ranges, counts = LocalStore.open_ranges, Counter()

    @contextmanager
    def count_and_open(store, name):
        with open_ranges(store, name) as file:
            counts[name] += name.startswith((".cache/fingerprints/", ".cache/signatures/"))
            yield file

    monkeypatch.setattr(LocalStore, "open_ranges", count_and_open)
    return counts


@pytest.mark.parametrize("flags", [{}, {"near_duplicate_similarity": "0.8"}], ids=["exact", "near"])
def test_the_footers_of_each_unit_are_read_once_in_a_run(small_sources, tmp_path, opened, flags):
    out, changed = tmp_path / "out", small_sources / "numpy" / "numpy" / "npy_math.h"
    for change in (b"", b"", b"int more;\n"):
        if change:
            changed.write_bytes(changed.read_bytes() + change)
        opened.clear()
        units = len(ingested(small_sources, out, unit_bytes="65536", **flags))
        footers = Counter({name: number for name, number in opened.items() if number})
        cached = {f".cache/{path.relative_to(out / '.cache')}" for path in out.glob(".cache/fingerprints/*")}
        assert len(cached) == units > 5
        assert cached <= footers.keys()
        assert set(footers.values()) == {1}


def test_progress_is_shown_within_an_archive(tmp_path):
    table = tmp_path / "all.jsonl"
    lines = (json.dumps({"content": f"int a{row};" + 600 * " "}) for row in range(3 * BATCH_ROWS))
    table.write_text("\n".join(lines))
    config = load_run_config(flags={"SOURCE": [str(table)], "--out": str(tmp_path / "out")}, needs_sources=True)
    stream, done = io.StringIO(), threading.Event()
    done.set()  # one look, at once
    with open_session(config, JsonReporter(stream, every_seconds=0.0)) as session:
        (unit,) = ingest.list_units(session.config)
        batches = read_batches(unit, session.config.options.ingest, keep=False)
        for _ in range(3):
            next(batches)
            session._watch({unit: "not there"}, done)
        batches.close()
    shown = [event["done_bytes"] for event in map(json.loads, stream.getvalue().splitlines())]
    assert 0 < shown[0] < shown[-1] < unit.num_bytes


def notes_of(config, **options):
    """Ingest and return what is noted."""
    stream = io.StringIO()
    with open_session(config, JsonReporter(stream), **options) as session:
        ingest.ingest(session)
    return [event["message"] for event in map(json.loads, stream.getvalue().splitlines()) if event["event"] == "note"]


def test_entries_of_a_list_that_no_document_has_are_counted(small_sources, tmp_path):
    file, gone = tmp_path / "list.json", ["numpy/numpy/npy_math.h", "numpy/numpy/random/"]
    flags = {"SOURCE": [str(small_sources)], "--out": str(tmp_path / "out"), "--withdrawn": str(file)}
    for missing, said in (({"paths": ["a.h", "b.h"], "projects": ["zlib"]}, "2 paths, 1 projects"), ({}, "")):
        file.write_bytes((Withdrawals.of({"paths": gone}) | Withdrawals.of(missing)).to_bytes())
        config = load_run_config(flags=flags, needs_sources=True)
        expected = [f"{file}: no document that would be kept has these of its entries: {said}"] if said else []
        assert notes_of(config) == notes_of(config) == expected


def test_entries_of_the_list_of_a_store_may_be_of_earlier_documents(small_sources, tmp_path):
    file, out = tmp_path / "list.json", tmp_path / "store/versions/v000002"
    file.write_bytes(Withdrawals.of({"projects": ["zlib"]}).to_bytes())
    flags = {"SOURCE": [str(small_sources)], "--out": str(out), "--withdrawn": str(file)}
    assert notes_of(load_run_config(flags=flags, needs_sources=True), check=check_version_folder) == []


def test_a_folder_that_cannot_be_looked_into_does_not_end_the_display(tmp_path, monkeypatch, caplog):
    def refuse(self, names):
        raise PermissionError(errno.EACCES, "Permission denied", "fingerprints")

    config = load_run_config(flags={"SOURCE": [__file__], "--out": str(tmp_path / "out")}, needs_sources=True)
    done = threading.Event()
    done.set()
    with open_session(config, Reporters()) as session, monkeypatch.context() as patched:
        patched.setattr(LocalStore, "present", refuse)
        session._watch(dict.fromkeys(ingest.list_units(session.config), "x"), done)
    assert "cannot list finished units, trying again: " in caplog.text
