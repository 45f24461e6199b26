"""What S3 alone has: entity tags, and uploads in parts that can be listed and aborted."""

import hashlib

import pytest

import transforms.storage.s3
from tests.json_server import JsonServer
from tests.stores import new_prefix
from transforms.storage.folder import OutputFolder
from transforms.storage.s3 import S3Objects

KEY = "a" * 64


@pytest.fixture
def out(start_store):
    return OutputFolder(f"{new_prefix(start_store('s3'))}/out")


def uploads(out):
    """The uploads in parts below an output folder that are neither complete nor aborted."""
    bucket, prefix = out.root.removeprefix("s3://").split("/", 1)
    page = S3Objects().system.call_s3("list_multipart_uploads", Bucket=bucket)
    return [upload["Key"] for upload in page.get("Uploads", ()) if upload["Key"].startswith(prefix)]


@pytest.mark.engines
def test_large_files_go_in_parts_and_leave_no_upload(out, monkeypatch):
    monkeypatch.setattr(transforms.storage.s3, "PART_BYTES", 5 << 20)
    content = hashlib.shake_256(b"seed").digest(11 << 20)
    name = f"tokens/part-{KEY}.parquet"
    out.publish_bytes(name, content)
    assert S3Objects().status(out.where(name)[5:]).version.endswith('-3"'), "the tag tells three parts"
    with pytest.raises(FileExistsError):
        S3Objects().upload(out.where(name)[5:], big(out, content), sha256="0" * 64, create=True)
    assert uploads(out) == []


def big(out, content):
    path = out.temporary / "big"
    path.write_bytes(content)
    return path


@pytest.mark.engines
def test_a_read_is_one_request(out, monkeypatch):
    out.publish_bytes("a", b"content")
    system = S3Objects().system
    requests, call = [], system._call_s3
    monkeypatch.setattr(system, "_call_s3", lambda name, *args, **kw: requests.append(name) or call(name, *args, **kw))
    assert out.read_bytes("a") == b"content"
    assert requests == ["get_object"]


@pytest.mark.engines
def test_large_files_are_downloaded_in_parts(out, monkeypatch):
    monkeypatch.setattr(transforms.storage.s3, "PART_BYTES", 5 << 20)
    content = hashlib.shake_256(b"seed").digest(11 << 20)
    out.publish_bytes("a", content)
    system = S3Objects().system
    ranges, call = [], system._call_s3
    monkeypatch.setattr(system, "_call_s3", lambda *args, **kw: ranges.append(kw.get("Range")) or call(*args, **kw))
    with out.open_local("a") as file:
        assert file.read_bytes() == content
    assert ranges == [None, "bytes=0-5242879", "bytes=5242880-10485759", "bytes=10485760-11534335"]


@pytest.mark.engines
def test_uploads_that_a_dead_run_left_are_aborted_below_out_alone(out):
    system = S3Objects().system
    bucket, prefix = out.root.removeprefix("s3://").split("/", 1)
    for key in (f"{prefix}/tokens/a", f"{prefix}/b", f"{prefix}-other/c"):
        system.call_s3("create_multipart_upload", Bucket=bucket, Key=key)
    out.store.clear_temporary()
    assert uploads(out) == [f"{prefix}-other/c"]


def test_a_request_that_a_store_throttles_is_repeated_whatever_it_calls_that(monkeypatch):
    answers = iter([(429, {"code": "TooManyRequests"}), (200, "content")])
    with JsonServer(lambda *_: next(answers)) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.port}")
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
            monkeypatch.setenv(name, "us-east-1")
        transforms.storage.s3._open_system.cache_clear()
        try:
            assert OutputFolder("s3://bucket/prefix").read_bytes("file") == b'"content"'
        finally:
            transforms.storage.s3._open_system.cache_clear()


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ("NoCredentialsError", "no AWS credentials were found; set AWS_ACCESS_KEY_ID"),
        ("ProfileNotFound", "the AWS credentials cannot be used: "),
        ("EndpointConnectionError", None),
    ],
)
def test_missing_credentials_are_reported_with_the_way_to_give_them(error, said):
    found = S3Objects().explain(type(error, (Exception,), {})("x"))
    assert found is said is None or found.startswith(said)
