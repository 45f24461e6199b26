"""What changes or cannot be read while a run is at work is counted, and is made good by the next run."""

import json
import os
import shutil

import pytest

from configs.runs import load_run_config
from pipelines.console.progress import QuietReporter
from pipelines.stages import ingest
from pipelines.stages.session import open_session


@pytest.fixture
def small_sources(sources, tmp_path):
    return shutil.copytree(sources / "numpy", tmp_path / "sources" / "numpy").parent


def ingested(sources, out):
    """Ingest and return the ledger of documents."""
    config = load_run_config(
        flags={"SOURCE": [str(sources)], "--out": str(out), "--max-dead-fraction": "1"}, needs_sources=True
    )
    with open_session(config, QuietReporter()) as session:
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
    opened = os.open

    def refuse(path, *arguments, **named):
        if str(path).endswith("npy_math.h"):
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *arguments, **named)

    monkeypatch.setattr(os, "open", refuse)
    [first] = ingested(small_sources, tmp_path / "out")
    assert first["dead"] == {"unreadable": 1}
    monkeypatch.undo()
    [second] = ingested(small_sources, tmp_path / "out")
    assert second["dead"] == {}
    assert second["kept"] == first["kept"] + 1
