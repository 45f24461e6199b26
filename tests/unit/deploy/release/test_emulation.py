"""A Python for aarch64: what is missing is named, what is there is left alone, and a folder is there only whole."""

import pytest

from deploy.release.emulation import fetch_python, python_command, python_home
from schemas.errors import ConfigError


@pytest.fixture
def tools(tmp_path, monkeypatch):
    """An empty folder, which is the whole PATH, and an empty cache."""
    folder = tmp_path / "tools"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


def write_program(path, text="exit 1"):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def write_tools(tools):
    """An emulator, an mmdebstrap that writes an archive with a Python and a device, and a tar that unpacks it."""
    write_program(tools / "qemu-aarch64-static")
    write_program(tools / "mmdebstrap", 'for archive; do :; done; echo "$*" > "$archive"')
    write_program(
        tools / "tar", 'for archive; do :; done; /bin/mkdir -p usr/bin; /bin/cp "$archive" usr/bin/python3.11'
    )


def test_a_missing_emulator_is_named_before_anything_is_fetched(tools):
    with pytest.raises(ConfigError, match=r"^qemu-aarch64-static: not on PATH.*apt-get install qemu-user-static"):
        fetch_python()
    assert not python_home().parent.exists()


def test_a_missing_mmdebstrap_is_named(tools):
    write_program(tools / "qemu-aarch64-static")
    with pytest.raises(ConfigError, match=r"^mmdebstrap: not found; .*apt-get install qemu-user-static mmdebstrap"):
        fetch_python()


def test_what_is_fetched_is_for_aarch64_and_is_fetched_once(tools):
    write_tools(tools)
    said = []
    home = fetch_python(say=said.append)
    assert home == python_home() == fetch_python(say=said.append)
    words = (home / "usr/bin/python3.11").read_text().split()
    assert {"--architectures=arm64", "--include=python3.11,libstdc++6", "bookworm"} <= set(words)
    assert len(said) == 1 and not (home / "root.tar").exists()


def test_a_failed_fetch_leaves_no_folder_and_another_one_succeeds(tools):
    write_tools(tools)
    write_program(tools / "mmdebstrap", "echo no such suite; exit 25")
    with pytest.raises(ConfigError, match="exit code 25.*\nno such suite"):
        fetch_python(say=print)
    assert not python_home().exists()
    write_tools(tools)
    assert fetch_python(say=print).is_dir()


def test_the_other_name_of_the_emulator_is_found_too(tools):
    write_program(tools / "qemu-aarch64")
    command = python_command("-c", "pass")
    assert command[:3] == [str(tools / "qemu-aarch64"), "-L", str(python_home())]
    assert command[3:] == [str(python_home() / "usr/bin/python3.11"), "-c", "pass"]
