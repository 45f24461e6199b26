"""Packages of the distribution: nothing is done where the program stands, else it is said what to install."""

import os

import pytest

from deploy.local.commands import install_package
from schemas.errors import ConfigError


@pytest.fixture
def tools(tmp_path, monkeypatch):
    """An empty folder, which is the whole PATH."""
    folder = tmp_path / "tools"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def write_program(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_what_is_on_path_is_left_alone(tools, tmp_path):
    write_program(tools / "chromium", "")
    said = []
    install_package("chromium", log_folder=tmp_path, say=said.append)
    assert said == [f"chromium: {tools / 'chromium'}"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root installs packages")
def test_a_package_is_installed_without_questions(tools, tmp_path):
    program = tools / "chromium"
    write_program(
        tools / "apt-get",
        f'echo "$DEBIAN_FRONTEND $*"; if [ "$1" = install ]; then : > {program}; /bin/chmod 755 {program}; fi',
    )
    install_package("chromium", log_folder=tmp_path, say=print)
    assert (tmp_path / "chromium-install.log").read_text().startswith("noninteractive install --yes")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root installs packages")
@pytest.mark.parametrize("apt", [None, "echo no network; exit 100"])
def test_what_cannot_be_installed_says_what_to_install(tools, tmp_path, apt):
    if apt:
        write_program(tools / "apt-get", apt)
    with pytest.raises(ConfigError, match="no network" if apt else "apt-get install chromium"):
        install_package("chromium", log_folder=tmp_path, say=print)
