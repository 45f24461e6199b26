"""The base of the image: its packages are those of the list, its sources the archive or a snapshot of it."""

import os
import re

import pytest

from deploy.image import debian
from deploy.image.debian import check_packages, make_root, read_lock, sources
from schemas.errors import ConfigError, IntegrityError


@pytest.fixture
def lock(tmp_path, monkeypatch):
    """A lock of two packages."""
    path = tmp_path / "debian.lock"
    path.write_text("# 20260102T030405Z\nbash 5.2-1\nlibc6 2.36-9\n")
    monkeypatch.setattr(debian, "LOCK", path)
    return path


@pytest.fixture
def mmdebstrap(tmp_path, monkeypatch):
    """A program in the place of mmdebstrap that writes down its arguments and its time, and runs the last hook."""
    folder = tmp_path / "tools"
    folder.mkdir()
    program = folder / "mmdebstrap"
    program.write_text(
        '#!/bin/bash\nprintf "%s\\n" "$@" > arguments\necho "$SOURCE_DATE_EPOCH" > moment\n'
        'chroot() { echo "bash 5.2-1"; }\n'
        'for word in "$@"; do case "$word" in --customize-hook=*dpkg-query*) set -- /; eval "${word#*=}";; esac; done\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


def test_the_lock_has_a_moment_and_the_packages_that_the_image_needs():
    moment, packages = read_lock()
    assert re.fullmatch(r"\d{8}T\d{6}Z", moment)
    assert {"python3.11", "libc6", "apt", *debian.PACKAGES} <= packages.keys()
    assert not {"gcc", "build-essential", "python3-dev", "perl"} & packages.keys()


@pytest.mark.parametrize(
    ("found", "named"),
    [
        ({"bash": "5.2-1"}, "libc6 is 2.36-9, and Debian's archive has None"),
        ({"bash": "5.2-1", "libc6": "2.36-10"}, "libc6 is 2.36-9, and Debian's archive has 2.36-10"),
        ({"bash": "5.2-1", "libc6": "2.36-9", "gcc": "12"}, "gcc is None, and Debian's archive has 12"),
    ],
)
def test_other_packages_are_refused_with_both_ways_out(lock, found, named):
    with pytest.raises(IntegrityError, match=f"{named} .*20260102T030405Z.*SNAPSHOT=1.*deploy.image lock"):
        check_packages(found)


def test_the_packages_of_the_lock_are_accepted(lock):
    check_packages({"libc6": "2.36-9", "bash": "5.2-1"})


def test_a_written_lock_is_read_again(lock):
    debian.write_lock({"zlib1g": "1:1.3", "apt": "2.6"})
    moment, packages = read_lock()
    assert moment > "20260102T030405Z"
    assert packages == {"apt": "2.6", "zlib1g": "1:1.3"}
    assert lock.read_text().splitlines()[1:] == ["apt 2.6", "zlib1g 1:1.3"]


def test_a_snapshot_has_the_same_parts_as_the_archive():
    now, then = sources(None), sources("20260102T030405Z")
    assert [line.split()[-2:] for line in now] == [line.split()[-2:] for line in then]
    assert {line.split()[-2] for line in now} == {"bookworm", "bookworm-updates", "bookworm-security"}
    assert all("/20260102T030405Z bookworm" in line and "check-valid-until=no" in line for line in then)


def test_the_root_is_made_at_the_time_of_the_lock(lock, mmdebstrap, tmp_path):
    archive, packages = make_root(tmp_path, snapshot=True)
    assert packages == {"bash": "5.2-1"}
    assert (tmp_path / "moment").read_text() == "1767323045\n"
    arguments = (tmp_path / "arguments").read_text().splitlines()
    assert arguments[arguments.index("bookworm") :] == ["bookworm", str(archive), *sources("20260102T030405Z")]


def test_a_missing_mmdebstrap_says_what_to_install(lock, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="apt-get install mmdebstrap"):
        make_root(tmp_path)
