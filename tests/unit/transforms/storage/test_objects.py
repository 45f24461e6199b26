"""On an object store writers race, stores fail for a while, runs die: one file stands, whole, and nothing is left."""

import hashlib
import socket
import subprocess
import sys
import threading
import time
import uuid
from urllib.parse import urlsplit

import pytest

import transforms.storage.lease
import transforms.storage.s3
from schemas.errors import ConfigError, IntegrityError, LockedError, StoreError
from transforms.storage.folder import OutputFolder
from transforms.storage.s3 import S3Objects, _open_system

pytestmark = pytest.mark.engines
KEY = "a" * 64
NAMES = [f"tokens/part-{number:064x}.parquet" for number in range(12)]

RACER = """
import os, sys
import transforms.storage.s3
from schemas.errors import IntegrityError
from transforms.storage.folder import OutputFolder
transforms.storage.s3.PART_BYTES = 5 << 20
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
    return OutputFolder(f"s3://cppmill-tests/{uuid.uuid4()}/out")


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


def uploads(out):
    """The uploads in parts below an output folder that are neither complete nor aborted."""
    page = S3Objects().system.call_s3("list_multipart_uploads", Bucket="cppmill-tests")
    return [upload["Key"] for upload in page.get("Uploads", ()) if upload["Key"].startswith(out.root.split("/", 3)[3])]


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
    assert uploads(out) == []


def test_a_file_may_be_made_again_once_it_is_gone(out):
    name = f"documents/part-{KEY}-00000.parquet"
    out.publish_bytes(name, b"one")
    out.publish_bytes(name, b"one")
    with pytest.raises(IntegrityError, match="another writer of the same unit"):
        out.publish_bytes(name, b"two")
    out.remove(name)
    out.publish_bytes(name, b"two")
    assert out.read_bytes(name) == b"two"


def test_what_others_wrote_over_a_file_is_not_taken_for_it(out):
    output = out.publish_bytes("tokens/part-0.parquet", b"abc")
    assert out.digest(output.path) == output.sha256
    path = out.where(output.path).removeprefix("s3://")
    S3Objects().system.pipe_file(path, b"xyz")
    assert out.digest(output.path) == hashlib.sha256(b"xyz").hexdigest()


def test_large_files_go_in_parts_and_come_back_whole(out, monkeypatch):
    monkeypatch.setattr(transforms.storage.s3, "PART_BYTES", 5 << 20)
    content = hashlib.shake_256(b"seed").digest(11 << 20)
    for name in (f"tokens/part-{KEY}.parquet", "tokens/part-0.parquet"):
        output = out.publish_bytes(name, content)
        assert S3Objects().status(out.where(name)[5:]).version.endswith('-3"'), "the tag tells three parts"
        assert (out.hash(name), out.digest(name)) == (output.sha256, output.sha256)
    assert uploads(out) == []


def test_uploads_that_a_dead_run_left_are_aborted_below_out_alone(out):
    system = S3Objects().system
    prefix = out.root.split("/", 3)[3]
    for key in (f"{prefix}/tokens/a", f"{prefix}/b", f"{prefix}-other/c"):
        system.call_s3("create_multipart_upload", Bucket="cppmill-tests", Key=key)
    out.store.clear_temporary()
    assert uploads(out) == [f"{prefix}-other/c"]


def test_lists_go_on_past_a_page(out):
    names = [f"documents/{number:04d}" for number in range(1_005)]
    S3Objects().system.pipe({f"{out.root}/{name}": b"" for name in names})
    assert list(out.files("documents")) == names
    assert out.store.present([*names, "documents/x"]) == set(names)


class Proxy:
    """Hands connections through to a store, except those that it is told to spoil."""

    def __init__(self, endpoint):
        url = urlsplit(endpoint)
        self._store = (url.hostname, url.port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.refuse, self.cut, self.refused = 0, 0, 0
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
                client.sendall(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                client.shutdown(socket.SHUT_WR)
                while client.recv(1 << 16):
                    pass
                return
            head, _, body = request.partition(b"\r\n\r\n")
            store.sendall(head + b"\r\nConnection: close\r\n\r\n" + body)
            threading.Thread(target=self._pass_on, args=(client, store), daemon=True).start()
            left = self.cut or None
            self.cut = 0
            while data := store.recv(1 << 16):
                client.sendall(data[:left])
                left = None if left is None else left - len(data)
                if left is not None and left <= 0:
                    break
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
    monkeypatch.setenv("AWS_ENDPOINT_URL", made.endpoint)
    _open_system.cache_clear()
    yield made
    _open_system.cache_clear()
    made.close()


def test_a_store_that_refuses_for_a_while_is_asked_again(out, proxy):
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


def test_retries_have_an_end_that_names_the_file(out, proxy, monkeypatch):
    monkeypatch.setitem(transforms.storage.s3._CONFIG, "retries", {"mode": "standard", "total_max_attempts": 2})
    proxy.refuse = 1_000_000
    with pytest.raises(StoreError, match=f"{out.root}/a: the object store failed after all retries"):
        out.read_bytes("a")
    assert proxy.refused == 2
    with pytest.raises(ConfigError, match=f"--out {out.root}: cannot be written"):
        out.store.lock()


def test_a_bucket_that_is_not_there_cannot_be_written(object_store):
    with pytest.raises(ConfigError, match="--out s3://no-such-bucket/out: cannot be written"):
        OutputFolder("s3://no-such-bucket/out").store.lock()


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
