"""A program in the place of buildah, which writes down what it is asked for."""

import os
from pathlib import Path

import pytest


@pytest.fixture
def buildah(tmp_path, monkeypatch):
    """Its calls, a list of words each; images that it has are files of the folder `images`."""
    folder = tmp_path / "tools"
    folder.mkdir()
    (folder / "images").mkdir()
    calls = folder / "calls"
    program = folder / "buildah"
    program.write_text(
        f"#!/bin/bash\nprintf '%s\\t' \"$@\" >> {calls}\necho >> {calls}\n"
        f'case "$1" in inspect) [ -e "{folder}/images/${{@: -1}}" ];; images) echo 1.2 GB;; esac\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")

    class Buildah:
        images = folder / "images"

        @property
        def calls(self):
            return [line.split("\t")[:-1] for line in Path(calls).read_text().splitlines()]

    return Buildah()
