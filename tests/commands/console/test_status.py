"""What another process learns of a run: while it goes on, when it ended well, failed, was stopped or died."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pipelines.console.events import EVENTS, KEPT_LOGS, EventLog
from pipelines.console.status import read_status
from pipelines.console.status_lines import describe_status
from schemas.errors import ConfigError
from transforms.storage.folder import OutputFolder
from transforms.storage.lock import HOLDER

ROOT = Path(__file__).parents[3]
STAGES = ["read", "ingest", "scan", "build", "tokenize", "validate"]


@pytest.fixture
def log(out):
    """A log of a run in an output folder whose lock it holds."""
    with out.store.lock():
        log = EventLog(out)
        log.started(engine="local", threads=2)
        yield log
        log.ended("done")


def test_the_event_log_of_a_finished_run_lists_its_stages(run):
    [name] = OutputFolder(run.out).files(EVENTS)
    events = [json.loads(line) for line in (run.out / name).read_text().splitlines()]
    assert events[0]["event"] == "run_started"
    assert events[-1] == {**events[-1], "event": "run_ended", "outcome": "done"}
    assert [event["stage"] for event in events if event["event"] == "stage_done"] == STAGES
    assert all(datetime.fromisoformat(event["time"]).tzinfo == UTC for event in events)


def test_the_status_of_a_finished_run(run, cppmill):
    done = cppmill("status", run.out, "--json")
    status = json.loads(done.stdout)
    assert (status["state"], status["holder"], status["receipt"]) == ("done", None, run.receipt["digest"])
    assert [stage["stage"] for stage in status["stages"]] == STAGES
    documents = run.receipt["ledger"]["bytes"]["kept"]
    assert [stage["bytes"] for stage in status["stages"] if stage["stage"] == "tokenize"] == [documents]
    assert f"receipt   {run.receipt['digest']}" in cppmill("status", run.out).stdout


def test_a_changed_receipt_has_no_digest_to_show(copied_run, cppmill):
    file = copied_run.out / "receipt.json"
    file.write_bytes(file.read_bytes().replace(b'"kept":', b'"kept":1', 1))
    done = cppmill("status", copied_run.out, check=False)
    assert done.returncode == 1
    assert "it was changed; run again to rewrite it" in done.stderr


def test_the_event_log_is_no_part_of_the_run(run, cppmill):
    assert not [name for name in run.receipt["files"] if "events" in name]
    cppmill("verify", run.out)


def test_a_run_has_a_status_while_it_runs_and_after_it_was_killed(copied_run, cppmill, processes):
    again = [*copied_run.command, "--unit-bytes", 1 << 16, "--json"]
    with processes.command(*again, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        next(line for line in process.stdout if '"stage_started", "stage": "ingest"' in line)
        current = []
        while not current:  # between two stages there is none, and the run goes on meanwhile
            status = json.loads(cppmill("status", copied_run.out, "--json").stdout)
            assert status["state"] == "running"
            current = [stage for stage in status["stages"] if stage["state"] == "running"]
        process.kill()
    assert status["holder"].endswith(f", process {process.pid}")
    assert len(current) == 1
    assert current[0]["units"] >= current[0]["done_units"] >= 0
    died = cppmill("status", copied_run.out, check=False)
    assert died.returncode == 1
    assert f"{copied_run.out}: died: the same command continues" in died.stdout
    taken = cppmill(*copied_run.command)
    assert f"lock taken over from {status['holder']}, which ended without releasing it" in taken.stderr
    assert not (copied_run.out / HOLDER).exists()
    assert "taken over" not in cppmill(*copied_run.command).stderr


def test_a_run_that_is_stopped_says_so(copied_run, cppmill, processes):
    again = [*copied_run.command, "--unit-bytes", 1 << 16, "--json"]
    with processes.command(*again, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        next(line for line in process.stdout if '"stage_started", "stage": "tokenize"' in line)
        process.send_signal(signal.SIGTERM)
    assert process.returncode == 143
    found = cppmill("status", copied_run.out, "--json", check=False)
    status = json.loads(found.stdout)
    assert (found.returncode, status["state"], status["holder"]) == (1, "stopped", None)


STOPPED = """
import os, signal, sys, time
from pipelines.console.events import open_log
from pipelines.console.signals import stop_on_signals
from transforms.storage.folder import OutputFolder
with stop_on_signals(), open_log(OutputFolder(sys.argv[1]), engine="local", threads=1):
    try:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(600)
    except KeyboardInterrupt:
        raise RuntimeError("KeyboardInterrupt [while running 'Ingest']") from None
"""


def test_a_run_is_stopped_not_failed_if_its_engine_turns_the_stop_into_an_error(tmp_path):
    done = subprocess.run([sys.executable, "-c", STOPPED, str(tmp_path)], capture_output=True, cwd=ROOT, check=False)
    assert done.returncode == 143
    status = read_status(str(tmp_path))
    assert (status.state, status.message) == ("stopped", "")


def test_the_status_of_a_failed_run_has_its_error(copied_run, cppmill):
    (copied_run.sources / "damaged.tar.gz").write_bytes(b"no archive")
    failed = cppmill(*copied_run.command, "--max-dead-fraction", "0", check=False)
    assert failed.returncode == 3
    found = cppmill("status", copied_run.out, check=False)
    assert found.returncode == 1
    told = failed.stderr.splitlines()[-1].removeprefix("error: ")
    assert f"{copied_run.out}: failed: {told}" in found.stdout


def test_units_rate_and_time_left_are_those_of_the_last_event(out, log):
    log.stage_started("scan", 4, 400_000_000)
    log.progress(1, 100_000_000)
    log.flush()
    status = read_status(out.root, now=datetime.now(UTC) + timedelta(seconds=60))
    [stage] = status.stages
    assert (stage.done_units, stage.units, stage.done_bytes, stage.bytes) == (1, 4, 100_000_000, 400_000_000)
    assert stage.seconds == pytest.approx(60, abs=5)
    assert stage.eta_seconds is not None
    log.stage_done("scan", 3.0, {"documents": 5})
    [stage] = read_status(out.root).stages
    assert (stage.state, stage.done_units, stage.seconds, stage.summary) == ("done", 4, 3.0, {"documents": 5})
    assert "scan      4 of 4 units, 400.0 of 400.0 MB, 133.3 MB/s, 3.0 s" in describe_status(read_status(out.root))


def test_a_note_is_shown_as_it_was_printed(out, log):
    log.note("largest   id 7 of a vocabulary of 8")
    log.flush()
    *_, shown = describe_status(read_status(out.root))
    assert shown.endswith("Z largest   id 7 of a vocabulary of 8")


def test_as_many_events_as_asked_for_are_returned(out, log):
    for number in range(5):
        log.note(str(number))
    log.flush()
    assert [event["message"] for event in read_status(out.root, events=2).events] == ["3", "4"]
    assert read_status(out.root, events=0).events == ()


def test_a_line_that_is_half_written_is_left_out(copied_run):
    log = max((copied_run.out / EVENTS).iterdir())
    log.write_text(log.read_text().partition('"run_ended"')[0])
    [last] = read_status(str(copied_run.out), events=1).events
    assert last == {**last, "event": "note", "message": f"receipt   {copied_run.receipt['digest']}"}


def test_the_logs_of_the_last_runs_are_kept(out):
    for _ in range(KEPT_LOGS + 3):
        EventLog(out).ended("done")
    assert len(list(out.files(EVENTS))) == KEPT_LOGS


def test_a_folder_without_a_run_has_no_status(tmp_path):
    with pytest.raises(ConfigError, match="no run; give the --out of one"):
        read_status(str(tmp_path))


def test_a_missing_folder_is_an_error_that_says_so(cppmill, tmp_path):
    done = cppmill("status", tmp_path / "later", check=False)
    assert done.returncode == 2
    assert "no such folder; nothing has run there yet" in " ".join(done.stderr.split())


def test_looking_at_the_lock_blocks_nobody(tmp_path):
    out = OutputFolder(tmp_path)
    out.store.lock().release()
    looking = (
        "import sys\nfrom transforms.storage.folder import OutputFolder\n"
        "while True: OutputFolder(sys.argv[1]).store.holder()"
    )
    with subprocess.Popen([sys.executable, "-c", looking, str(tmp_path)]) as process:
        try:
            for _ in range(20):
                with out.store.lock():
                    assert out.store.holder().owner.endswith(f", process {os.getpid()}")
        finally:
            process.kill()
    assert out.store.holder() is None
