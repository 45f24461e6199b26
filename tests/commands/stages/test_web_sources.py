"""Sources on a web server are those of the folder that it serves."""

import base64
import io
import os
import random
import re
import shutil
import socket
import struct
import tarfile
import zipfile
from collections import Counter
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
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


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    """Send requests again at once."""
    monkeypatch.setattr("transforms.storage.web._FIRST_PAUSE_SECONDS", 0)


@pytest.fixture
def folder(run, tmp_path):
    """A folder with two others, and an archive beside it."""
    made = tmp_path / "served" / "numpy"
    for name in ("core", "random"):
        shutil.copytree(run.sources / "numpy", made / name, ignore=shutil.ignore_patterns("*[a-m].h", "*api*"))
    with tarfile.open(made.parent / "numpy.tar", "w") as archive:
        archive.add(made, "numpy")
    os.utime(made.parent / "numpy.tar", (1_700_000_000, 1_700_000_000))
    return made


@contextmanager
def served(handler, folder):
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=folder)) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
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


class Shifted(Quiet):
    """Sends five bytes of another place for each part of a file."""

    def do_GET(self):
        if "Range" in self.headers:
            self.send_response(206)
            self.send_header("Content-Range", "bytes 0-99999/100000")
            self.send_header("Content-Length", "5")
            self.end_headers()
            self.wfile.write(b"int x")
        else:
            super().do_GET()


def test_a_web_server_that_sends_other_parts_than_asked_for_is_an_error(run, tmp_path):
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / "rows.jsonl").write_text('{"content": "int x;", "path": "x.cpp"}\n' * 100)
    with served(Shifted, tmp_path / "served") as place, pytest.raises(cppmill.CppmillError, match="it sent 5 bytes as"):
        cppmill.run(f"{place}/rows.jsonl", out=tmp_path / "out", tokenizer=run.out / "tokenizer")


class Failing(Quiet):
    """Is too busy for the first request of each file, and breaks off in the first answer to the second."""

    seen = Counter()

    def do_GET(self):
        self.seen[self.path] += 1
        if not self.path.endswith(".h"):
            super().do_GET()
        elif self.seen[self.path] == 1:
            self.send_error(503)
        elif self.seen[self.path] == 2:
            self.send_response(200)
            self.send_header("Content-Length", "1000000")
            self.end_headers()
            self.wfile.write(b"int half")
            self.close_connection = True
        else:
            super().do_GET()


def test_a_web_server_that_fails_now_and_then_is_asked_again(run, folder, tmp_path):
    expected = made(run, folder, tmp_path / "local")
    with served(Failing, folder.parent) as place:
        assert made(run, f"{place}/numpy/", tmp_path / "web") == expected
    assert max(Failing.seen.values()) >= 3


class Short(Quiet):
    """Sends less of each file than it says that there is, as a whole answer."""

    def do_GET(self):
        if not self.path.endswith(".h"):
            super().do_GET()
            return
        self.send_response(200)
        self.send_header("Content-Length", "8")
        self.end_headers()
        self.wfile.write(b"int half")


def test_a_file_of_which_a_web_server_sends_too_little_is_no_document(run, folder, tmp_path):
    with served(Short, folder.parent) as place, pytest.raises(cppmill.CppmillError, match="truncated"):
        made(run, f"{place}/numpy/", tmp_path / "web")


class Boundless(Quiet):
    """Says that each file has more bytes than any number of 64 bits."""

    def do_HEAD(self):
        self.send_response(200)
        self.send_header("Content-Length", str(10**19))
        self.end_headers()

    def do_GET(self):
        self.do_HEAD()


def test_a_file_of_more_bytes_than_there_are_is_an_error_that_names_it(run, tmp_path):
    with (
        served(Boundless, tmp_path) as place,
        pytest.raises(cppmill.CppmillError, match=r"/a\.h is said to have 10,000,000,000,000,000,000 bytes"),
    ):
        made(run, f"{place}/a.h", tmp_path / "web")


class Redirecting(Quiet):
    """Sends everyone to the same file of another server."""

    other, signed_in = "", []

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        self.signed_in.append(self.headers["Authorization"] is not None)
        self.send_response(302)
        self.send_header("Location", f"{self.other}{self.path}")
        self.end_headers()


class Watched(Quiet):
    """Serves a folder, and notes who signs in."""

    signed_in = []

    def send_head(self):
        self.signed_in.append(self.headers["Authorization"] is not None)
        return super().send_head()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the library, about how one signs in
def test_a_password_goes_to_its_server_and_not_where_that_redirects(run, folder, tmp_path, monkeypatch):
    expected = made(run, folder.parent / "numpy.tar", tmp_path / "local")
    monkeypatch.setattr(Redirecting, "signed_in", [])
    monkeypatch.setattr(Watched, "signed_in", [])
    with served(Watched, folder.parent) as other, served(Redirecting, folder.parent) as place:
        monkeypatch.setattr(Redirecting, "other", other)
        url = f"{place.replace('//', '//me:5ecret@')}/numpy.tar"
        assert made(run, url, tmp_path / "web") == expected
    assert set(Redirecting.signed_in) == {True}
    assert set(Watched.signed_in) == {False}


class Undated(Quiet):
    """Says of no file when it was written."""

    def send_header(self, keyword, value):
        if keyword != "Last-Modified":
            super().send_header(keyword, value)


class Farthest(Quiet):
    """Says that each file is of a year that there is not."""

    def send_header(self, keyword, value):
        super().send_header(keyword, value.replace("2027", "99999999999") if keyword == "Last-Modified" else value)


@pytest.mark.parametrize(
    ("server", "ages"), [(Quiet, (0.5, 60, 90)), (Quiet, (0.5, 1.5, 60)), (Undated, (60, 70, 80)), (Farthest, (1,))]
)
def test_a_file_that_changes_without_another_date_is_read_again(run, tmp_path, monkeypatch, server, ages):
    file, written = tmp_path / "served" / "a.cpp", 1_800_000_000
    file.parent.mkdir()
    digests = []
    with served(server, file.parent) as place:
        for content, age in zip(("int a;", "int b;", "int b;"), ages, strict=False):
            file.write_text(content)
            os.utime(file, (written, written))
            monkeypatch.setattr("transforms.sources.listing.time.time", lambda age=age: written + age)
            digests.append(made(run, f"{place}/", tmp_path / "out")[0])
        planned = cppmill.plan(f"{place}/", out=tmp_path / "out", tokenizer=run.out / "tokenizer")
        fresh = made(run, f"{place}/", tmp_path / "fresh")[0]
    assert digests[-1] == fresh
    assert digests[1:] == digests[1:2] * (len(ages) - 1)
    assert (digests[0] == fresh) == (server is Farthest)
    assert {unit.action for unit in planned} == ({"skip"} if server is Quiet else {"run"})


class Exchanged(Quiet):
    """Lists the files of a folder, and sends those of another one; says where both are if asked with a query."""

    sends = "b"
    tags: ClassVar[dict[str, str]] = {}

    def do_HEAD(self):
        self.answer("a", super().do_HEAD)

    def do_GET(self):
        self.answer(self.sends, super().do_GET)

    def answer(self, folder, answer):
        self.folder = folder
        if self.path.startswith("/elsewhere/"):
            self.path = f"/{folder}/{self.path.removeprefix('/elsewhere/')}"
            answer()
        else:
            self.send_response(302)
            self.send_header("Location", f"/elsewhere{self.path}")
            self.send_header("Content-Length", "0")
            self.end_headers()

    def end_headers(self):
        if self.folder in self.tags:
            self.send_header("ETag", self.tags[self.folder])
        super().end_headers()


@pytest.mark.parametrize("tags", [{}, {"a": '"1"', "b": '"2"'}], ids=("dates", "tags"))
@pytest.mark.parametrize("longer", [False, True], ids=("same", "longer"))
@pytest.mark.parametrize("name", ["a.h?v=1", "a.zip", "a.jsonl"])
def test_a_file_that_is_another_one_when_it_is_sent_is_read_again(run, tmp_path, monkeypatch, name, longer, tags):
    file = name.partition("?")[0]
    for place, (folder, content) in enumerate((("a", b"int a;"), ("b", b"int b;" + b"int c;" * longer))):
        (tmp_path / folder).mkdir()
        write_file(tmp_path / folder / file, content)
        os.utime(tmp_path / folder / file, (1_700_000_000, 1_700_000_000 + 9 * place * (not tags)))
    monkeypatch.setattr(Exchanged, "tags", tags)
    (tmp_path / "other.h").write_text("int other;")
    with served(Exchanged, tmp_path) as url:
        sources = [tmp_path / "other.h", f"{url}/{name}"]
        options = {"tokenizer": run.out / "tokenizer", "max_dead_fraction": 1}
        with (
            pytest.raises(cppmill.CppmillError, match="sends a file of")
            if longer and file == "a.jsonl"
            else nullcontext()
        ):
            cppmill.run(sources, out=tmp_path / "out", **options)
        monkeypatch.setattr(Exchanged, "sends", "a")
        found = cppmill.run(sources, out=tmp_path / "out", **options).receipt
        assert found["dataset"] == cppmill.run(sources, out=tmp_path / "fresh", **options).receipt["dataset"]
        assert {unit.action for unit in cppmill.plan(sources, out=tmp_path / "out", **options)} == {"skip"}


def write_file(path, content):
    """Write a file that has a document, of the kind that its name says."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(zipfile.ZipInfo("x.cpp"), content)
    else:
        path.write_bytes(content if path.suffix == ".h" else b'{"path": "x.cpp", "content": "%s"}\n' % content)


class Shorter(Quiet):
    """Says that tables have three lines."""

    def do_HEAD(self):
        self.is_head = True
        super().do_HEAD()

    def send_header(self, keyword, value):
        is_length = keyword == "Content-Length" and getattr(self, "is_head", False)
        super().send_header(keyword, str(int(value) // 3) if is_length else value)


def test_a_file_of_which_a_web_server_says_too_few_bytes_is_not_cut(run, tmp_path):
    write_file(
        tmp_path / "a.jsonl", b'int a;"}\n{"path": "y.cpp", "content": "int b;"}\n{"path": "z.cpp", "content": "'
    )
    write_file(tmp_path / "a.zip", b"int a;")
    with served(Shorter, tmp_path) as url:
        with pytest.raises(cppmill.CppmillError, match=f"^{url}/a.jsonl: .*sends a file of"):
            made(run, f"{url}/a.jsonl", tmp_path / "out")
        assert made(run, f"{url}/a.zip", tmp_path / "zip") == made(run, tmp_path / "a.zip", tmp_path / "local")


class Personal(Quiet):
    """Sends each user another folder."""

    def send_head(self):
        user = base64.b64decode(self.headers["Authorization"].split()[1]).decode().partition(":")[0]
        self.path = f"/{user}{self.path}"
        return super().send_head()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the library, about how one signs in
@pytest.mark.parametrize("source", ["{}/p.tar", "tar://::{}/p.tar"])
def test_another_user_of_a_url_is_another_source_and_another_password_is_not(run, tmp_path, source):
    for user in ("me", "you"):
        (tmp_path / user).mkdir()
        pack_tar(tmp_path / user / "p.tar", {"x.cpp": f"int {user:_<9};".encode()})
        os.utime(tmp_path / user / "p.tar", (1_700_000_000, 1_700_000_000))
    digests = []
    with served(Personal, tmp_path) as place:
        for account in ("me:1", "me:2", "you:1"):
            url = source.format(place.replace("//", f"//{account}@"))
            if digests:
                actions = {
                    unit.action for unit in cppmill.plan(url, out=tmp_path / "out", tokenizer=run.out / "tokenizer")
                }
                assert actions == ({"skip"} if account == "me:2" else {"run"})
            digests.append(made(run, url, tmp_path / "out")[0])
        fresh = made(run, url, tmp_path / "fresh")[0]
    assert digests == [digests[0], digests[0], fresh]
    assert digests[0] != fresh


@pytest.mark.parametrize("source", ["tar://::{}/p.tar", "tar://p/*::{}/p.tar", "tar://::file://{}/p.tar"])
def test_an_archive_behind_a_url_whose_members_have_the_times_of_others_is_read_again(run, tmp_path, source):
    with served(Quiet, tmp_path) as place:
        url = source.format(tmp_path if "file://" in source else place)
        for age, name in enumerate("ab"):
            pack_tar(tmp_path / "p.tar", {"x.cpp": f"int {name};".encode()})
            os.utime(tmp_path / "p.tar", (1_700_000_000 + age, 1_700_000_000 + age))
            found = made(run, url, tmp_path / "out")
        assert found == made(run, url, tmp_path / "fresh")


@pytest.mark.parametrize("status", [302, 304, 401, 403, 500, 503])
def test_what_a_web_server_refuses_is_not_said_to_be_absent(tmp_path, status):
    class Refusing(Quiet):
        def send_head(self):
            self.send_error(status)

    with served(Refusing, tmp_path) as place, pytest.raises(cppmill.CppmillError, match=f"{place}/a.cpp: .*{status}"):
        cppmill.run(f"{place}/a.cpp", out=tmp_path / "out")


def test_a_part_of_a_file_that_was_not_asked_for_is_not_the_file(tmp_path):
    class Partial(Quiet):
        def send_response(self, code, message=None):
            super().send_response(206 if code == 200 else code, message)

    (tmp_path / "a.cpp").write_text("int a;")
    with served(Partial, tmp_path) as place, pytest.raises(cppmill.CppmillError, match=f"{place}/a.cpp: .*206.* part"):
        cppmill.run(f"{place}/a.cpp", out=tmp_path / "out")


@pytest.mark.parametrize("name", ["numpy.tar", "numpy/core/numpy/npy_common.h", "rows.jsonl"])
def test_a_body_that_ends_early_names_the_file(run, folder, tmp_path, name):
    class Short(Quiet):
        def copyfile(self, source, outputfile):
            outputfile.write(source.read()[:-9])

    (folder.parent / "rows.jsonl").write_text('{"path": "a.cpp", "content": "int a;"}\n')
    with (
        served(Short, folder.parent) as place,
        pytest.raises(cppmill.CppmillError, match=f"^{place}/{name}: .* failed"),
    ):
        cppmill.run(f"{place}/{name}", out=tmp_path / "out", tokenizer=run.out / "tokenizer")


def test_a_fragment_is_no_part_of_a_source(run, folder, tmp_path, capfd):
    expected = made(run, folder.parent / "numpy.tar", tmp_path / "local")
    with served(Quiet, folder.parent) as place:
        assert made(run, f"{place}/numpy.tar?key=1#5ecret", tmp_path / "web") == expected
    assert "5ecret" not in "".join(capfd.readouterr())
    assert not [path for path in (tmp_path / "web").rglob("*") if path.is_file() and b"5ecret" in path.read_bytes()]


def test_a_host_may_be_an_address_of_ipv6(tmp_path):
    with pytest.raises(cppmill.CppmillError, match="Cannot connect to host ::1:9 "):
        cppmill.run("http://[::1]:9/x", out=tmp_path / "out")


def large(path, pack):
    """Write an archive of more than fsspec asks a web server for at once."""
    rng = random.Random(1)
    sources = {f"{number}.cpp": f"// {rng.randbytes(400_000).hex()}\n".encode() for number in range(9)}
    pack(path, sources)


def pack_tar(path, sources):
    with tarfile.open(path, "w") as archive:
        for name, content in sources.items():
            info = tarfile.TarInfo(f"p/{name}")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))


def pack_zip(path, sources):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in sources.items():
            archive.writestr(f"p/{name}", content)


class Unmeasured(Quiet):
    """Says of no file how long it is, as servers that make them on demand."""

    def send_header(self, keyword, value):
        if keyword != "Content-Length":
            super().send_header(keyword, value)


class Denying(Quiet):
    """Says that it sends no parts of files, and sends them."""

    def end_headers(self):
        self.send_header("Accept-Ranges", "none")
        super().end_headers()

    def send_head(self):
        first, last = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", "bytes=0-")).groups()
        content = Path(self.translate_path(self.path)).read_bytes()
        part = content[int(first) : int(last or len(content)) + 1]
        self.send_response(206 if "Range" in self.headers else 200)
        self.send_header("Content-Length", str(len(part)))
        self.send_header("Content-Range", f"bytes {first}-{int(first) + len(part) - 1}/{len(content)}")
        self.end_headers()
        return io.BytesIO(part)


@pytest.mark.parametrize("server", [Quiet, Unmeasured, Denying])
@pytest.mark.parametrize("pack", [pack_tar, pack_zip])
def test_an_archive_of_a_web_server_that_sends_no_parts_is_read_whole(run, tmp_path, pack, server):
    (tmp_path / "served").mkdir()
    name = "p.zip" if pack is pack_zip else "p.tar"
    large(tmp_path / "served" / name, pack)
    expected = made(run, tmp_path / "served" / name, tmp_path / "local")
    with served(server, tmp_path / "served") as place:
        assert made(run, f"{place}/{name}", tmp_path / "web") == expected
    assert expected[1]["documents"]["kept"] == 9


class Shortened(Quiet):
    """Answers requests for later parts of a file with a short page, as if it were the file."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"<htm>")


def test_a_page_in_the_place_of_a_file_is_an_error(run, tmp_path):
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / "rows.jsonl").write_text('{"content": "int x;", "path": "x.cpp"}\n' * 100)
    with served(Shortened, tmp_path / "served") as place, pytest.raises(cppmill.CppmillError, match="rows.jsonl: "):
        cppmill.run(f"{place}/rows.jsonl", out=tmp_path / "out", tokenizer=run.out / "tokenizer")


class Resetting(Quiet):
    """Resets the connection of whoever asks for the page of a folder `random`."""

    def send_head(self):
        if self.path.rstrip("/") == "/numpy/random":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            raise ConnectionAbortedError
        return super().send_head()

    def handle_error(self, *_arguments):
        pass


@pytest.mark.parametrize("end", ["", "/", "/**/*.h", "/random/**"])
def test_a_page_of_a_folder_that_cannot_be_read_is_an_error_and_no_empty_folder(run, folder, tmp_path, end):
    with served(Resetting, folder.parent) as place, pytest.raises(cppmill.CppmillError, match=f"{place}/numpy"):
        cppmill.run(f"{place}/numpy{end}", out=tmp_path / "out", tokenizer=run.out / "tokenizer")


def test_links_to_what_is_not_there_are_in_the_ledger(run, folder, tmp_path):
    class Lacking(Quiet):
        def send_head(self):
            if self.path.rstrip("/") == "/numpy/random" or self.path.endswith("/npy_common.h"):
                return self.send_error(404)
            return super().send_head()

    gone = 1 + len(list((folder / "core").rglob("npy_common.h")))
    with served(Lacking, folder.parent) as place:
        options = {"tokenizer": run.out / "tokenizer", "max_dead_fraction": 1}
        documents = cppmill.run(f"{place}/numpy", out=tmp_path / "out", **options).receipt["ledger"]["documents"]
    assert (documents["dead"], documents["kept"] > gone > 1) == ({"vanished": gone}, True)


def test_a_link_to_what_a_web_server_refuses_is_an_error(run, folder, tmp_path):
    class Refusing(Quiet):
        def send_head(self):
            return self.send_error(403) if self.path.endswith("/npy_common.h") else super().send_head()

    with served(Refusing, folder.parent) as place, pytest.raises(cppmill.CppmillError, match="403.*npy_common.h"):
        made(run, f"{place}/numpy", tmp_path / "out")


@pytest.mark.parametrize("name", ["a.cpp", "a.tar", ""])
def test_a_web_server_that_never_answers_has_failed(tmp_path, monkeypatch, name):
    monkeypatch.setattr("transforms.storage.web._SILENT_SECONDS", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:  # it has a queue of connections, and nobody accepts one
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/{name}"
        with pytest.raises(cppmill.CppmillError, match=f"^{url}: the web server failed .*Timeout"):
            cppmill.run(url, out=tmp_path / "out")


@pytest.mark.parametrize("most", ["_MOST_DEPTH", "_MOST_PAGES"])
def test_pages_without_end_are_an_error(tmp_path, monkeypatch, most):
    class Endless(Quiet):
        def translate_path(self, path):
            return self.directory  # whatever it is asked for, it sends the page of the folder

    for name in "xy":
        (tmp_path / name).mkdir()
    monkeypatch.setattr(f"transforms.storage.urls.{most}", 9)
    with served(Endless, tmp_path) as place, pytest.raises(cppmill.CppmillError, match=f"{place}/d/.*: its web server"):
        cppmill.run(f"{place}/d/", out=tmp_path / "out")


class Ending(Quiet):
    """Answers some requests for a file, and fails at all later ones, as with a permission that ends."""

    answered = 0
    left = 0
    status = 503
    name = ""

    def send_head(self):
        if self.path == self.name:
            cls = type(self)
            cls.answered += 1
            if cls.answered > cls.left:
                if self.status:
                    return self.send_error(self.status)
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.connection.close()
                self.close_connection = True
                return None
        return super().send_head()

    def finish(self):
        with suppress(OSError):
            super().finish()


@pytest.mark.parametrize("status", [403, 503, 0])
@pytest.mark.parametrize("name", ["/numpy.tar", "/rows.jsonl", "/rows.parquet", "/numpy/core/numpy/npy_common.h"])
def test_a_web_server_that_fails_after_some_answers_loses_no_file(run, folder, tmp_path, name, status):
    (folder.parent / "rows.jsonl").write_text('{"path": "a.cpp", "content": "int a;"}\n')
    pq.write_table(pa.table({"path": ["a.cpp"], "content": ["int a;"]}), folder.parent / "rows.parquet")

    def tried(left):
        """Return what is lost without a word, None if the failure is said."""
        Ending.answered, Ending.left, Ending.status, Ending.name = 0, left, status, name
        options = {"tokenizer": run.out / "tokenizer", "max_dead_fraction": 1}
        with served(Ending, folder.parent) as place:
            try:
                made = cppmill.run([folder, f"{place}{name}"], out=tmp_path / str(left), **options)
            except cppmill.CppmillError as error:
                assert re.match(f"{place}{name}: .* failed", str(error)), error
                return None
        return made.receipt["ledger"]["documents"]["dead"]

    found = [tried(left) for left in (1, 2, 3, 4, 5, 6, 99)]
    assert (found[0], found[-1]) == (None, {})
    assert all(lost in (None, {}) for lost in found)


@pytest.mark.parametrize("pattern", ["core/**", "co*", "*/numpy/*common.h"])
def test_a_pattern_on_a_web_server_takes_what_it_takes_of_a_folder(run, folder, url, tmp_path, pattern):
    local = cppmill.run(f"{folder}/{pattern}", out=tmp_path / "local", tokenizer=run.out / "tokenizer").receipt
    web = cppmill.run(f"{url}/numpy/{pattern}", out=tmp_path / "web", tokenizer=run.out / "tokenizer").receipt
    assert web["dataset"]["digest"] == local["dataset"]["digest"]


def test_links_may_begin_with_a_dot_and_none_lead_out(run, folder, tmp_path):
    class Dotted(Quiet):
        def list_directory(self, path):
            page = super().list_directory(path).read().replace(b'href="', b'href="./')
            places = (
                b"../../numpy.tar ./ %2e%2e/numpy.tar ..%2Fnumpy.tar HTTP://host/a.h javascript:a.h mailto:a.h".split()
            )
            return io.BytesIO(page.replace(b"</ul>", b"".join(b'<li><a href="%s">a</a>' % link for link in places)))

        def send_header(self, keyword, value):
            if keyword != "Content-Length" or not self.path.endswith("/"):
                super().send_header(keyword, value)

    expected = made(run, folder, tmp_path / "local")
    with served(Dotted, folder.parent) as place:
        assert made(run, f"{place}/numpy", tmp_path / "web") == expected


def test_a_folder_may_be_there_under_its_url_with_a_slash_alone(run, folder, tmp_path):
    class Strict(Quiet):
        def send_head(self):
            if Path(self.translate_path(self.path)).is_dir() and not self.path.endswith("/"):
                self.send_error(404)
                return None
            return super().send_head()

    expected = made(run, folder, tmp_path / "local")
    with served(Strict, folder.parent) as place:
        assert made(run, f"{place}/numpy/", tmp_path / "web") == expected


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the library, about how one signs in
@pytest.mark.parametrize("user", ["", "me:5ecret@"])
def test_links_are_what_html_says(run, tmp_path, user):
    folder = tmp_path / "in"
    names = [f"{name}.cpp" for name in ("plain", "blank", "host", "a&b", "quote'", "code", "http_me", "whole", "said")]
    folder.mkdir()
    for number, name in enumerate([*names, "x.h"]):
        (folder / name).write_bytes(b"int a%d;\n" % number)

    class Linked(Quiet):
        def list_directory(self, _):
            place = self.headers["Host"].encode()
            page = b"""<a href=plain.cpp>x</a><A class=a HREF = 'blank.cpp'><a href="//%s/host.cpp">
                <a href="a&amp;b.cpp"><a href="quote'.cpp">x</a><a href=" code&#46;cpp"></a><a href="http_me.cpp">
                <link href="x.h"><!-- <a href="x.h"> --><a href="http://%s//plain.cpp">
                <a href="http://%s/whole.cpp"><a href="https://other/b.cpp"><a href><a href="../">http://%s/said.cpp"""
            page %= (place, place, place, place)
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            return io.BytesIO(page)

    with served(Linked, folder) as place:
        source, out = f"{place.replace('http://', f'http://{user}')}/", tmp_path / "out"
        made = cppmill.run(source, out=out, tokenizer=run.out / "tokenizer")
    assert set(made.table("documents", ["path"])["path"]) == set(names)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the library, about how one signs in
@pytest.mark.parametrize(
    "source",
    ["simplecache::{}/numpy/", "filecache://::{}/numpy/**", "tar://numpy::{}/numpy.tar", "tar://::{}/numpy.tar"],
)
def test_a_chain_is_its_folder_and_its_password_stays_here(run, folder, url, tmp_path, source):
    place = url.replace("http://", "http://me:5ecret@")
    assert made(run, source.format(place), tmp_path / "out")[1] == made(run, folder, tmp_path / "local")[1]
    files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert not [path for path in files if b"5ecret" in path.read_bytes()]
