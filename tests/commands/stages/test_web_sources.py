"""Sources on a web server are those of the folder that it serves."""

import shutil
import tarfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

import cppmill


class Quiet(SimpleHTTPRequestHandler):
    """Serves a folder, with a page of links for each folder in it, and logs nothing."""

    def log_message(self, *_arguments):
        pass


@pytest.fixture
def folder(run, tmp_path):
    """A folder with two others, and an archive beside it."""
    made = tmp_path / "served" / "numpy"
    for name in ("core", "random"):
        shutil.copytree(run.sources / "numpy", made / name, ignore=shutil.ignore_patterns("*[a-m].h", "*api*"))
    with tarfile.open(made.parent / "numpy.tar", "w") as archive:
        archive.add(made, "numpy")
    return made


@pytest.fixture
def url(folder):
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder.parent)) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


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
