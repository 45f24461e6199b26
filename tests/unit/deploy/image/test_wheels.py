"""The packages of the image: fetched once for a lock, into a folder of the lock's digest."""

import pytest

from deploy.image import wheels
from deploy.image.wheels import fetch_wheels
from schemas.errors import ConfigError


@pytest.fixture
def commands(monkeypatch):
    """What would have been run; each run leaves a wheel."""
    found = []

    def run(command, *, cwd, **_):
        found.append(command)
        (cwd / "a.whl").touch()

    monkeypatch.setattr(wheels, "run", run)
    return found


def test_packages_are_fetched_once_for_a_lock_by_their_hashes(commands, tmp_path):
    lock = tmp_path / "requirements.lock"
    lock.write_text("a==1\n")
    first = fetch_wheels(lock, tmp_path)
    assert fetch_wheels(lock, tmp_path) == first
    assert [path.name for path in first.iterdir()] == ["a.whl"]
    [command] = commands
    assert {"--require-hashes", "--no-deps", "manylinux_2_28_x86_64", "manylinux2014_x86_64"} <= set(command)


def test_another_lock_takes_the_place_of_the_first(commands, tmp_path):
    lock = tmp_path / "requirements.lock"
    lock.write_text("a==1\n")
    first = fetch_wheels(lock, tmp_path)
    lock.write_text("a==2\n")
    second = fetch_wheels(lock, tmp_path)
    assert not first.exists()
    assert second.exists()


def test_a_failed_fetch_is_done_again(commands, tmp_path, monkeypatch):
    lock = tmp_path / "requirements.lock"
    lock.write_text("a==1\n")
    whole = wheels.run

    def fail(*_, **__):
        raise ConfigError("no network")

    monkeypatch.setattr(wheels, "run", fail)
    with pytest.raises(ConfigError, match="no network"):
        fetch_wheels(lock, tmp_path)
    monkeypatch.setattr(wheels, "run", whole)
    assert fetch_wheels(lock, tmp_path).joinpath("a.whl").exists()
