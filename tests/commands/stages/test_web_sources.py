"""Sources on a web server are those of the folder that it serves."""

import shutil
import tarfile
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

import cppmill


class Quiet(SimpleHTTPRequestHandler):
    """Serves a folder, with a page of links for each folder in it, and logs nothing."""

    def log_message(self, *_arguments):
        pass


class Signed(Quiet):
    """Serves files for GET with one of two signatures, and forbids all else, as signed URLs of object stores do."""

    def do_HEAD(self):
        self.send_error(403)

    def do_GET(self):
        self.path, _, query = self.path.partition("?")
        if query in ("X-Amz-Date=1&X-Amz-Signature=5ecret", "X-Amz-Signature=4nother&X-Amz-Date=2"):
            super().do_GET()
        else:
            self.send_error(403)


@pytest.fixture
def folder(run, tmp_path):
    """A folder with two others, and an archive beside it."""
    made = tmp_path / "served" / "numpy"
    for name in ("core", "random"):
        shutil.copytree(run.sources / "numpy", made / name, ignore=shutil.ignore_patterns("*[a-m].h", "*api*"))
    with tarfile.open(made.parent / "numpy.tar", "w") as archive:
        archive.add(made, "numpy")
    return made


@contextmanager
def served(handler, folder):
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=folder)) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def url(folder):
    with served(Quiet, folder.parent) as place:
        yield place


def made(run, source, out):
    receipt = cppmill.run(source, out=out, tokenizer=run.out / "tokenizer").receipt
    return receipt["dataset"]["digest"], receipt["ledger"]


@pytest.mark.parametrize("end", ["", "/"])
def test_a_folder_of_a_web_server(run, folder, url, tmp_path, end):
    expected = made(run, folder, tmp_path / "local")
    assert made(run, f"{url}/numpy{end}", tmp_path / "web") == expected
    assert expected[1]["documents"]["kept"] > 5


def test_an_archive_of_a_web_server(run, folder, url, tmp_path):
    expected = made(run, folder.parent / "numpy.tar", tmp_path / "local")
    assert made(run, f"{url}/numpy.tar", tmp_path / "web") == expected


def test_what_a_web_server_has_not_is_no_source(url, tmp_path):
    with pytest.raises(cppmill.ConfigError, match=f"source '{url}/no' does not exist"):
        cppmill.run(f"{url}/no", out=tmp_path / "out")


def test_signed_urls_are_the_file_and_their_signature_stays_here(run, folder, tmp_path, capfd):
    expected = made(run, folder.parent / "numpy.tar", tmp_path / "local")
    header = folder / "core" / "numpy" / "npy_common.h"
    out = tmp_path / "web"
    with served(Signed, folder.parent) as place:
        first = f"{place}/numpy.tar?X-Amz-Date=1&X-Amz-Signature=5ecret"
        assert made(run, first, out) == expected
        again = f"{place}/numpy.tar?X-Amz-Signature=4nother&X-Amz-Date=2"
        assert {unit.action for unit in cppmill.plan(again, out=out, tokenizer=run.out / "tokenizer")} == {"skip"}
        loose = f"{place}/numpy/core/numpy/{header.name}?X-Amz-Date=1&X-Amz-Signature=5ecret"
        assert cppmill.run(loose, out=tmp_path / "one", tokenizer=run.out / "tokenizer").receipt["corpus"]["bytes"] > 0
        with pytest.raises(cppmill.CppmillError) as refused:
            cppmill.run(f"{place}/numpy.tar?X-Amz-Signature=5ecret", out=tmp_path / "no")
    assert "5ecret" not in str(refused.value)
    assert "5ecret" not in "".join(capfd.readouterr())
    files = [path for path in tmp_path.rglob("*") if path.is_file() and "served" not in path.parts]
    assert not [path for path in files if b"5ecret" in path.read_bytes()]
