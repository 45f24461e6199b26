"""Source archives: the same bytes for the same files, whatever times, owners and modes they have."""

import tarfile

import pytest

from deploy.release.archives import normalize

EPOCH = 1_700_000_000


@pytest.fixture
def archive(tmp_path):
    """Makes an archive of three files in an order, with times and modes."""

    def make(name, order, time, mode):
        def change(member):
            member.mtime, member.mode, member.uname = time, mode | (0o100 if member.name == "a/run" else 0), name
            return member

        path = tmp_path / f"{name}.tar.gz"
        (tmp_path / "empty").mkdir(exist_ok=True)
        with tarfile.open(path, "w:gz") as target:
            target.add(tmp_path / "empty", "a", filter=change)
            for file in order:
                (tmp_path / "file").write_text(f"text of {file}")
                target.add(tmp_path / "file", f"a/{file}", filter=change)
        return path

    return make


def test_the_same_files_are_the_same_bytes(archive):
    first, second = archive("one", ("x", "run"), 5, 0o600), archive("two", ("run", "x"), 7.5, 0o664)
    assert first.read_bytes() != second.read_bytes()
    for path in (first, second):
        normalize(path, epoch=EPOCH)
    assert first.read_bytes() == second.read_bytes()


def test_the_files_are_what_they_were(archive):
    path = archive("one", ("x", "run"), 5, 0o600)
    normalize(path, epoch=EPOCH)
    with tarfile.open(path) as read:
        found = {member.name: (member.mode, member.mtime, member.uname, member.uid) for member in read}
        assert read.extractfile("a/x").read() == b"text of x"
    assert found == {
        "a": (0o755, EPOCH, "", 0),
        "a/x": (0o644, EPOCH, "", 0),
        "a/run": (0o755, EPOCH, "", 0),
    }
