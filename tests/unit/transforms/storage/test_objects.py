"""On an object store writers race, stores fail for a while, runs die: one file stands, whole, and nothing is left."""

import hashlib
import logging
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest

import transforms.storage.gcs
import transforms.storage.lease
import transforms.storage.s3
from schemas.errors import ConfigError, IntegrityError, LockedError, StoreError
from tests.stores import new_prefix
from transforms.storage.folder import OutputFolder
from transforms.storage.urls import OBJECTS

pytestmark = pytest.mark.engines
KEY = "a" * 64
NAMES = [f"tokens/part-{number:064x}.parquet" for number in range(12)]

RACER = """
import os, sys
import transforms.storage.gcs
import transforms.storage.s3
from schemas.errors import IntegrityError
from transforms.storage.folder import OutputFolder
transforms.storage.s3.PART_BYTES = transforms.storage.gcs.CHUNK_BYTES = 5 << 20
out, size = OutputFolder(sys.argv[1]), int(sys.argv[2])
out.exists("warm")
for name in sys.argv[4:]:
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        out.publish_bytes(name, sys.argv[3].encode() * size)
        print("published", flush=True)
    except IntegrityError as error:
        print(f"refused {error}", flush=True)
"""


@pytest.fixture
def out(object_store):
    return OutputFolder(f"{new_prefix(object_store)}/out")


@pytest.fixture
def objects(object_store):
    return OBJECTS[object_store.scheme]()


def race(out, size, contents, names):
    """Publish each name from two processes at once; return what both said of each."""
    commands = [[sys.executable, "-c", RACER, out.root, str(size), content, *names] for content in contents]
    racers = [subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for line in commands]
    said = []
    for _ in names:
        assert [racer.stdout.readline() for racer in racers] == ["ready\n"] * 2
        for racer in racers:
            racer.stdin.write("go\n")
            racer.stdin.flush()
        said.append([racer.stdout.readline().strip() for racer in racers])
    for racer in racers:
        racer.communicate()
        assert racer.returncode == 0
    return said


def path_of(out, name):
    """The path of an object, as the library of its store takes it."""
    return out.where(name).partition("://")[2]


def test_of_two_writers_of_a_unit_one_wins_and_the_other_goes_on(out):
    assert race(out, 1000, ["x", "x"], NAMES) == [["published", "published"]] * len(NAMES)
    assert sorted(out.files("tokens")) == NAMES


@pytest.mark.parametrize(("size", "names"), [(1000, NAMES), (11 << 20, NAMES[:2])], ids=["whole", "in parts"])
def test_another_digest_under_the_same_key_is_an_error_that_names_both(out, size, names):
    digests = [hashlib.sha256(content * size).hexdigest() for content in (b"x", b"y")]
    for name, said in zip(names, race(out, size, ["x", "y"], names), strict=True):
        refused, published = sorted(said, reverse=True)
        assert published == "published"
        assert refused.startswith(f"refused {out.where(name)}: ")
        assert all(digest in refused for digest in digests)
        assert out.hash(name) == digests[said.index("published")]


def test_a_file_may_be_made_again_once_it_is_gone(out):
    name = f"documents/part-{KEY}-00000.parquet"
    out.publish_bytes(name, b"one")
    out.publish_bytes(name, b"one")
    with pytest.raises(IntegrityError, match="another writer of the same unit"):
        out.publish_bytes(name, b"two")
    out.remove(name)
    out.publish_bytes(name, b"two")
    assert out.read_bytes(name) == b"two"


def test_what_others_wrote_over_a_file_is_not_taken_for_it(out, objects):
    output = out.publish_bytes("tokens/part-0.parquet", b"abc")
    assert out.digest(output.path) == output.sha256
    objects.system.pipe_file(path_of(out, output.path), b"xyz")
    assert out.digest(output.path) == hashlib.sha256(b"xyz").hexdigest()


def test_large_files_come_back_whole(out, objects, monkeypatch):
    monkeypatch.setattr(transforms.storage.s3, "PART_BYTES", 5 << 20)
    monkeypatch.setattr(transforms.storage.gcs, "CHUNK_BYTES", 5 << 20)
    content = hashlib.shake_256(b"seed").digest(11 << 20)
    for name in (f"tokens/part-{KEY}.parquet", "tokens/part-0.parquet"):
        output = out.publish_bytes(name, content)
        assert objects.status(path_of(out, name)).sha256 == output.sha256
        assert (out.hash(name), out.digest(name)) == (output.sha256, output.sha256)


def test_a_copy_keeps_the_digest_and_never_replaces_a_file(out, objects):
    output = out.publish_bytes(f"tokens/part-{KEY}.parquet", b"abc")
    other = OutputFolder(f"{out.root}-other")
    other.publish_bytes("b", b"other")
    out.publish_bytes("b", b"mine")
    other.link(out, [output.path, "b"])
    assert objects.status(path_of(other, output.path)).sha256 == output.sha256
    assert (other.read_bytes(output.path), other.read_bytes("b")) == (b"abc", b"other")


def test_the_empty_objects_that_consoles_make_for_folders_are_no_files(out, objects):
    out.publish_bytes("versions/v000001/a", b"")
    for name in ("versions/", "versions/v000001/"):
        objects.system.pipe_file(f"{path_of(out, name)}", b"")
    assert list(out.files()) == ["versions/v000001/a"]
    assert out.store.folders("versions") == ["v000001"]


def test_lists_go_on_past_a_page(out, objects):
    names = [f"documents/{number:04d}" for number in range(1_005)]
    objects.system.pipe({f"{out.root}/{name}": b"" for name in names})
    assert list(out.files("documents")) == names
    assert out.store.present([*names, "documents/x"]) == set(names)


class Proxy:
    """Hands connections through to a store, except those that it is told to spoil."""

    def __init__(self, endpoint):
        url = urlsplit(endpoint)
        self._store = (url.hostname, url.port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.goes_on = False
        self.refuse, self.cut, self.refused, self.answer = 0, 0, 0, b"503 Service Unavailable"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self._listener.close()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        """Answer one request and close: so each has a connection of its own."""
        with client, socket.create_connection(self._store) as store:
            request = self._read_head(client)
            if not request:
                return
            if self.refuse:
                self.refuse, self.refused = self.refuse - 1, self.refused + 1
                client.sendall(b"HTTP/1.1 %b\r\nContent-Length: 0\r\nConnection: close\r\n\r\n" % self.answer)
                client.shutdown(socket.SHUT_WR)
                while client.recv(1 << 16):
                    pass
                return
            head, _, body = request.partition(b"\r\n\r\n")
            store.sendall(head + b"\r\nConnection: close\r\n\r\n" + body)
            threading.Thread(target=self._pass_on, args=(client, store), daemon=True).start()
            left = self.cut or None
            self.cut = self.cut if self.goes_on else 0
            while data := store.recv(1 << 16):
                client.sendall(data[:left])
                left = None if left is None else left - len(data)
                if left is not None and left <= 0:
                    break
            with suppress(OSError):  # who was cut off may have closed it
                client.shutdown(socket.SHUT_RDWR)

    def _read_head(self, client):
        request = b""
        while b"\r\n\r\n" not in request and (data := client.recv(1 << 16)):
            request += data
        return request

    def _pass_on(self, client, store):
        try:
            while data := client.recv(1 << 16):
                store.sendall(data)
        except OSError:
            pass


@pytest.fixture
def proxy(object_store, monkeypatch):
    """A proxy before the store, which the output folders of a test go through."""
    made = Proxy(object_store.endpoint)
    monkeypatch.setenv(object_store.endpoint_variable, made.endpoint)
    clear_systems()
    yield made
    clear_systems()
    made.close()


@pytest.fixture
def no_waits(monkeypatch):
    """Retries without waits between them: six attempts on gs://, two on s3://."""
    monkeypatch.setitem(transforms.storage.s3._CONFIG, "retries", {"mode": "standard", "total_max_attempts": 2})

    async def sleep(seconds):
        """Return at once."""

    monkeypatch.setattr("gcsfs.retry.asyncio", SimpleNamespace(sleep=sleep))


def clear_systems():
    for module in (transforms.storage.s3, transforms.storage.gcs):
        module._open_system.cache_clear()


@pytest.mark.parametrize("answer", [b"503 Service Unavailable", b"429 Too Many Requests"])
def test_a_store_that_refuses_for_a_while_is_asked_again(out, proxy, answer, object_store):
    throttled = {"s3": b"503 Slow Down", "gs": answer}
    proxy.answer = throttled[object_store.scheme]
    output = out.publish_bytes(f"tokens/part-{KEY}.parquet", b"abc")
    proxy.refuse = 2
    assert out.read_bytes(output.path) == b"abc"
    proxy.refuse = 2
    out.publish_bytes("receipt.json", b"{}")
    proxy.refuse = 1
    assert list(out.files()) == ["receipt.json", output.path]
    assert (proxy.refuse, proxy.refused) == (0, 5)


def test_a_body_that_breaks_off_is_read_on(out, proxy):
    content = hashlib.shake_256(b"seed").digest(1 << 20)
    out.publish_bytes("a", content)
    proxy.cut = 300_000
    with out.open_local("a") as path:
        assert path.read_bytes() == content
    proxy.cut = 300_000
    assert out.read_bytes("a") == content
    assert proxy.cut == 0


def test_a_small_object_is_read_when_it_is_opened_and_of_a_large_one_what_is_asked_for(out):
    contents = {"small": b"s" * (2 << 20), "large": b"l" * (2 << 20) + b"!"}
    for name, content in contents.items():
        out.publish_bytes(name, content)
    with out.open_ranges("small") as file:
        out.remove("small")
        assert file.read() == contents["small"]
    with out.open_ranges("large") as file:
        file.seek(2 << 20)
        assert file.read() == b"!"
        out.remove("large")
        file.seek(0)
        with pytest.raises(FileNotFoundError):
            file.read()


@pytest.mark.usefixtures("no_waits")
def test_a_range_that_goes_on_breaking_off_is_an_error_that_names_the_file(out, proxy):
    out.publish_bytes("a", hashlib.shake_256(b"seed").digest(3 << 20))
    with pytest.raises(StoreError, match=f"^{out.root}/a: "), out.open_ranges("a") as file:
        proxy.goes_on, proxy.cut = True, 300_000
        file.read()


@pytest.mark.usefixtures("no_waits")
def test_retries_have_an_end_that_names_the_file(out, proxy, object_store, caplog, capfd):
    proxy.refuse = 1_000_000
    with pytest.raises(StoreError, match=f"{out.root}/a: the object store failed after all retries") as caught:
        out.read_bytes("a")
    assert "\n" not in str(caught.value)
    assert proxy.refused == {"s3": 2, "gs": 6}[object_store.scheme]
    with pytest.raises(ConfigError, match=f"--out {out.root}: cannot be written"):
        out.store.lock()
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert "Traceback" not in capfd.readouterr().err


def test_a_store_that_is_killed_for_a_while_is_waited_for(object_store):
    out = OutputFolder(f"{new_prefix(object_store)}/out")
    content = hashlib.shake_256(b"seed").digest(6 << 20)
    out.publish_bytes("a", content)
    object_store.kill()
    threading.Timer(2.0, object_store.restart).start()
    names = [f"tokens/part-{number:064x}.parquet" for number in range(4)]
    out.each(lambda name: out.publish_bytes(name, content), names)
    assert out.read_bytes("a") == content
    assert list(out.files("tokens")) == names


def test_a_bucket_that_is_not_there_cannot_be_written(object_store):
    place = f"{object_store.scheme}://no-such-bucket/out"
    with pytest.raises(ConfigError, match=f"--out {place}: cannot be written"):
        OutputFolder(place).store.lock()
    with pytest.raises(StoreError, match=f"{place}/a: there is no such bucket"):
        OutputFolder(place).publish_bytes("a", b"")
    with pytest.raises(StoreError, match=f"{place}: there is no such bucket"):
        list(OutputFolder(place).files())


def test_a_run_whose_lock_was_taken_over_writes_nothing_more(out, monkeypatch):
    monkeypatch.setattr(transforms.storage.lease, "LEASE_SECONDS", 0.4)
    with out.store.lock() as lease:
        out.publish_bytes("a", b"")
        out.publish_bytes(".lock", b'{"token": "other", "owner": "another run"}')
        deadline = time.monotonic() + 30
        while not lease._lost and time.monotonic() < deadline:
            lease._thread.join(0.1)
        with pytest.raises(LockedError, match="another run took the lock over"):
            out.publish_bytes("a", b"late")
        with pytest.raises(LockedError):
            out.remove("a")
    assert out.exists(".lock"), "the lock is the other's"


def test_whether_a_place_can_be_written_is_tried_and_leaves_nothing(out, object_store):
    out.store.check_writable()
    assert list(out.files()) == []
    missing = f"{object_store.scheme}://no-such-bucket/tmp"
    with pytest.raises(StoreError, match=f"^{missing}: there is no such bucket; create it first$"):
        OutputFolder(missing).store.check_writable()
