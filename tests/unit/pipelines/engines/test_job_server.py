"""How job servers are started and stopped."""

import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from apache_beam.runners.portability import job_server

from pipelines.engines.job_server import HeldJobServer


class Waiting(job_server.JobServer):
    """A server that does nothing; it is stopped as Beam stops its servers."""

    def start(self) -> str:
        waiting = "import time; print('started', flush=True); time.sleep(60)"
        self.process = subprocess.Popen([sys.executable, "-c", waiting], stdout=subprocess.PIPE)
        assert self.process.stdout
        return self.process.stdout.readline().decode()

    def stop(self) -> None:
        with self.process:
            self.process.send_signal(signal.SIGINT)
            assert self.process.wait(30) == -signal.SIGINT


@pytest.fixture
def ignored() -> Iterator[None]:
    """This process ignores SIGINT, as one does that a shell starts in the background."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGINT, before)


def test_a_server_ends_by_sigint_even_if_we_ignore_it(ignored: None) -> None:
    server = HeldJobServer(Waiting)
    assert server.start() == "started\n"
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    server.stop()
