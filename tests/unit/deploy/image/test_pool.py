"""The pool of workers: what is mounted, and what is left when it does not come up."""

import socket
from pathlib import Path

import pytest

from deploy.image import pool as pools
from deploy.image.pool import WorkerPool
from schemas.errors import ConfigError


@pytest.fixture
def unshare(buildah):
    """A program in the place of unshare that writes down what it is asked for and ends."""
    program = buildah.images.parent / "unshare"
    program.write_text(f'#!/bin/bash\nprintf "%s\\n" "$@" > {program}.words\necho no namespace\n')
    program.chmod(0o755)
    return Path(f"{program}.words")


@pytest.fixture
def port(monkeypatch):
    """A port that nobody uses, in the place of Beam's."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        number = one.getsockname()[1]
    monkeypatch.setattr(pools, "_PORT", number)
    return number


def test_a_pool_that_ends_at_once_is_reported_and_its_container_deleted(port, buildah, unshare, tmp_path):
    with pytest.raises(ConfigError, match="pool ended(.|\n)*no namespace"):
        WorkerPool(tmp_path / "pool", "worker", read=[Path("/a")], write=[Path("/b")], environment={"NAME": "value"})
    words = unshare.read_text().splitlines()
    assert {"--volume=/a:/a:ro", "--volume=/b:/b:rw", "--env=NAME=value", "--kill-child"} <= set(words)
    made, deleted = buildah.calls
    assert made[:2] == ["from", "--pull-never"]
    assert made[-1] == "worker"
    assert deleted == ["rm", made[-2]]


def test_a_second_pool_is_refused(port, buildah, unshare, tmp_path):
    with socket.socket() as other:
        other.bind(("127.0.0.1", port))
        other.listen()
        with pytest.raises(ConfigError, match=f"port {port} is in use"):
            WorkerPool(tmp_path / "pool", "worker")
    assert not unshare.exists()
