"""A lease of a damaged record lasts as long as any: it is neither taken at once nor waited for without end."""

import json
import time

import pytest

from transforms.storage import lease
from transforms.storage.lease import Lease
from transforms.storage.protocol import ConflictError


class Stored:
    """The object of a lease, in this process; its version is the number of its writes."""

    def __init__(self, data):
        self.data, self.writes = data, 1

    def version(self):
        return None if self.data is None else str(self.writes)

    def read(self):
        return self.data

    def write(self, data, *, expected):
        if expected != self.version():
            raise ConflictError("lease")
        self.data, self.writes = data, self.writes + 1
        return str(self.writes)

    def remove(self):
        self.data = None


@pytest.mark.parametrize("seconds", ['"abc"', "null", "[1]", "true", "-5", "0", "NaN", "Infinity", "1e6"])
def test_what_is_no_duration_counts_as_the_usual_one(monkeypatch, seconds):
    monkeypatch.setattr(lease, "LEASE_SECONDS", 0.1)
    monkeypatch.setattr(lease, "_LOOK_SECONDS", 0.05)
    stored = Stored(b'{"token": "of a crashed run", "seconds": %s}' % seconds.encode())
    started = time.monotonic()
    with Lease(stored, "s3://bucket/out/.lock") as taken:
        assert time.monotonic() - started >= 0.1
        assert json.loads(stored.data)["token"] == taken.token
    assert stored.data is None
