"""What Google Cloud Storage alone has: sessions of resumable uploads, which can be lost, and anonymous callers."""

import hashlib
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

import transforms.storage.gcs
from tests.stores import new_prefix
from transforms.storage.folder import OutputFolder
from transforms.storage.gcs import GcsObjects
from transforms.storage.protocol import ConflictError

CONTENT = hashlib.shake_256(b"seed").digest(11 << 20)
NAME = f"tokens/part-{64 * 'a'}.parquet"


@pytest.fixture
def store(start_store):
    return start_store("gs")


@pytest.fixture
def out(store, monkeypatch):
    monkeypatch.setattr(transforms.storage.gcs, "CHUNK_BYTES", 5 << 20)
    return OutputFolder(f"{new_prefix(store)}/out")


@pytest.fixture
def chunks(monkeypatch):
    """Each chunk of an upload, with what is done at it: called before it is sent."""
    import gcsfs.core

    sent, upload = [], gcsfs.core.upload_chunk

    async def noted(fs, location, data, offset, *rest):
        sent.append(offset)
        if noted.strike:
            noted.strike(fs, offset)
        return await upload(fs, location, data, offset, *rest)

    noted.sent, noted.strike = sent, None
    monkeypatch.setattr(gcsfs.core, "upload_chunk", noted)
    return noted


@pytest.mark.engines
def test_large_files_go_in_chunks(out, chunks):
    output = out.publish_bytes(NAME, CONTENT)
    assert chunks.sent == [0, 5 << 20, 10 << 20]
    assert out.digest(NAME) == output.sha256


@pytest.mark.engines
def test_an_upload_whose_session_is_lost_begins_again(out, chunks, store):
    def lose(fs, offset):
        if offset == 5 << 20 and len(chunks.sent) == 2:
            store.kill()  # sessions are in its memory alone
            store.restart()

    chunks.strike = lose
    output = out.publish_bytes(NAME, CONTENT)
    assert chunks.sent == [0, 5 << 20, 0, 5 << 20, 10 << 20]
    assert out.hash(NAME) == output.sha256


@pytest.mark.engines
def test_an_upload_that_fails_is_cancelled_and_leaves_nothing(out, chunks, monkeypatch):
    system = GcsObjects().system
    requests, request = [], system._request
    monkeypatch.setattr(system, "_request", lambda *args, **kw: requests.append(args) or request(*args, **kw))

    def fail(fs, offset):
        if offset:
            raise RuntimeError("disk on fire")

    chunks.strike = fail
    with pytest.raises(RuntimeError):
        GcsObjects().upload(out.where(NAME)[5:], file_of(out, CONTENT), sha256="0" * 64, create=True)
    assert [method for method, *_ in requests] == ["POST", "POST", "DELETE"]
    assert not out.exists(NAME)


def file_of(out, content):
    path = out.temporary / "content"
    path.write_bytes(content)
    return path


@pytest.mark.engines
def test_an_object_that_appears_during_an_upload_in_chunks_is_not_replaced(out, chunks):
    path = out.where(NAME)[5:]
    chunks.strike = lambda fs, offset: offset == 10 << 20 and put_from_elsewhere(out)
    with pytest.raises(FileExistsError):
        GcsObjects().upload(path, file_of(out, CONTENT), sha256="0" * 64, create=True)
    assert out.read_bytes(NAME) == b"first"


def put_from_elsewhere(out):
    code = "import sys; from transforms.storage.folder import OutputFolder; OutputFolder(sys.argv[1]).publish_bytes"
    subprocess.run([sys.executable, "-c", f"{code}(sys.argv[2], b'first')", out.root, NAME], check=True)


@pytest.mark.engines
def test_of_writers_with_the_same_expectation_one_wins(out):
    path = out.where(".lock")[5:]
    version = None
    for _ in range(3):
        outcomes = at_once(8, lambda data, version=version: GcsObjects().write(path, data, expected=version))
        (won,) = [outcome for outcome in outcomes if isinstance(outcome, str)]
        assert all(isinstance(outcome, ConflictError) for outcome in outcomes if outcome is not won)
        assert GcsObjects().status(path).version == won
        version = won
    GcsObjects().system.rm_file(path)
    with pytest.raises(ConflictError):
        GcsObjects().write(path, b"late", expected=version)


def at_once(number, act):
    """What became of each call, made from as many threads at the same moment with different bytes."""
    barrier = threading.Barrier(number)

    def call(data):
        barrier.wait()
        try:
            return act(data)
        except ConflictError as error:
            return error

    with ThreadPoolExecutor(number) as pool:
        return list(pool.map(call, [str(index).encode() for index in range(number)]))


class RefusedError(Exception):
    def __init__(self, code):
        super().__init__("Anonymous caller does not have access")
        self.code = code


@pytest.mark.parametrize(
    ("error", "credentials", "said"),
    [
        (RefusedError(401), None, "no Google credentials were found"),
        (OSError("Forbidden: b/x"), None, "no Google credentials were found"),
        (RefusedError("403"), object(), "the credentials do not allow it"),
        (RefusedError(503), None, None),
        (ValueError("x"), None, None),
    ],
)
def test_missing_credentials_are_reported_with_the_way_to_give_them(error, credentials, said, monkeypatch):
    system = SimpleNamespace(credentials=SimpleNamespace(credentials=credentials))
    monkeypatch.setattr(transforms.storage.gcs, "_open_system", lambda process: system)
    found = GcsObjects().explain(error)
    assert found is said is None or found.startswith(said)


def test_no_endpoint_is_asked_what_kind_of_bucket_it_is():
    code = "from transforms.storage.gcs import GcsObjects; print(type(GcsObjects().system).__module__)"
    environment = os.environ | {"STORAGE_EMULATOR_HOST": "http://127.0.0.1:1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "gcsfs.core\n"
