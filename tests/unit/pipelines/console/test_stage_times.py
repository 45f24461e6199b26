"""How fast stages were, from logs of events as `run --json` prints them."""

import json

import pytest

from pipelines.console.events import EVENTS, parse_events
from pipelines.console.stage_status import StageTime, read_stage_times, stage_times
from transforms.storage.folder import OutputFolder


@pytest.fixture(scope="module")
def events(cppmill, run, tmp_path_factory):
    """What two runs printed: all stages, then nothing to do."""
    command = ["run", run.sources / "numpy", "--out", tmp_path_factory.mktemp("events") / "out", "--json"]
    return [cppmill(*command, "--tokenizer", run.out / "tokenizer").stdout for _ in range(2)]


def test_a_log_has_the_times_of_each_stage(events):
    found = stage_times(parse_events(events[0].splitlines()))
    done = [json.loads(line) for line in events[0].splitlines()]
    started = {event["stage"]: event for event in done if event["event"] == "stage_started"}
    ended = {event["stage"]: event for event in done if event["event"] == "stage_done"}
    assert [stage.name for stage in found] == ["read", "ingest", "tokenize", "validate"]
    for stage in found:
        assert (stage.units, stage.num_bytes) == (started[stage.name]["units"], started[stage.name]["bytes"])
        assert stage.seconds == ended[stage.name]["seconds"]


def test_a_stage_counts_where_it_had_something_to_do(events, tmp_path):
    out = OutputFolder(tmp_path)
    folder = tmp_path / EVENTS
    folder.mkdir(parents=True)
    for number, text in enumerate(events):
        (folder / f"{number}.jsonl").write_text(text)
    found = {stage.name: stage for stage in read_stage_times(out)}
    assert [
        found[stage.name] for stage in stage_times(parse_events(events[0].splitlines())) if stage.name != "read"
    ] == [found[name] for name in ("ingest", "tokenize", "validate")]


def test_lines_that_are_no_events_are_skipped():
    lines = [
        '{"event": "stage_started", "stage": "scan", "units": 2, "bytes": 10}',
        '{"event": "sta',
        "[]",
        '{"event": "stage_done", "stage": "scan", "seconds": 0.5, "summary": {}}',
        '{"event": "stage_started", "stage": "tokenize", "units": 2, "bytes": 10}',
    ]
    assert stage_times(parse_events(lines)) == [StageTime("scan", 2, 10, 0.5)]


def test_a_run_without_logs_has_no_times(tmp_path):
    assert read_stage_times(OutputFolder(tmp_path)) == []
