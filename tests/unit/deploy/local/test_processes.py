import os
import select
import signal
import sys
from pathlib import Path

import pytest

from deploy.local.processes import Processes, answers, free_ports
from schemas.errors import ConfigError

# Says its own id and that of a process that it started, then waits to be ended.
PARENT = """
import subprocess, sys
waiting = "import signal; print(flush=True); signal.pause()"
child = subprocess.Popen([sys.executable, "-c", waiting], stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
child.wait()
"""
WAITING = [sys.executable, "-c", "import signal; signal.pause()"]


@pytest.fixture
def processes(tmp_path):
    started = Processes(tmp_path / "engine")
    yield started
    started.stop()


class Watched:
    """A process that is not ours to wait for."""

    def __init__(self, pid):
        self.handle = os.pidfd_open(pid)

    def ended(self):
        """Wait for its end, with a bound."""
        ready, _, _ = select.select([self.handle], [], [], 10)
        os.close(self.handle)
        return bool(ready)


def child_of(processes, started):
    log = processes.directory / f"{started.name}.log"
    processes.wait_ready(lambda: log.read_text().endswith("\n"), "the child")
    return Watched(int(log.read_text()))


def test_stopping_ends_a_process_and_what_it_started(processes):
    started = processes.start("parent", [sys.executable, "-c", PARENT])
    child = child_of(processes, started)
    processes.stop()
    assert not started.runs
    assert child.ended()
    assert processes.started == []


def test_stopping_ends_a_frozen_process(processes):
    started = processes.start("frozen", WAITING)
    os.kill(started.pid, signal.SIGSTOP)
    processes.stop()
    assert not started.runs


def test_another_program_stops_what_was_started(processes):
    started = processes.start("one", WAITING)
    Processes(processes.directory).stop()
    assert not started.runs


def test_what_a_killed_process_started_ends_with_stop(processes):
    started = processes.start("parent", [sys.executable, "-c", PARENT])
    child = child_of(processes, started)
    os.kill(started.pid, signal.SIGKILL)
    processes.stop()
    assert child.ended()


def test_a_process_that_was_not_started_here_is_left_alone(processes, tmp_path):
    other = Processes(tmp_path / "other")
    started = other.start("one", WAITING)
    record = (other.directory / "processes.json").read_text()
    moment = f'"moment": {started.moment}'
    assert moment in record
    (processes.directory / "processes.json").write_text(record.replace(moment, f'"moment": {started.moment - 1}'))
    processes.stop()
    assert started.runs
    other.stop()


def test_a_name_that_runs_is_not_started_again(processes):
    processes.start("one", WAITING)
    with pytest.raises(ConfigError, match="one runs there already"):
        processes.start("one", WAITING)


def test_a_name_that_ended_can_be_started_again(processes):
    processes.kill(processes.start("one", WAITING))
    assert processes.start("one", WAITING).runs
    assert len(processes.started) == 1


def test_waiting_ends_with_the_log_of_a_process_that_died(processes):
    processes.start("short", [sys.executable, "-c", "print('no such jar')"])
    with pytest.raises(ConfigError, match=r"short ended(.|\n)*no such jar"):
        processes.wait_ready(lambda: False, "the engine")


def test_waiting_has_a_bound(processes):
    processes.start("idle", WAITING)
    with pytest.raises(ConfigError, match=r"the engine: not ready within 0.2 s"):
        processes.wait_ready(lambda: False, "the engine", seconds=0.2)


def test_a_missing_program_is_named(processes):
    with pytest.raises(ConfigError, match="no-such-java: not found"):
        processes.start("one", ["no-such-java"])


def test_free_ports_differ_and_nobody_answers_there():
    ports = free_ports(20)
    assert len(set(ports)) == 20
    assert not any(answers(port) for port in ports)


def test_no_connection_gets_a_free_port():
    given = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()
    assert max(free_ports(20)) < max(int(given[0]), 20480)  # some systems give nearly all
