"""Any URL is opened in one way, and what keeps it from being read is one line that says what to do."""

import pytest
from botocore.exceptions import ClientError
from fsspec.exceptions import FSTimeoutError
from s3fs.errors import translate_boto_error

import schemas.places
import transforms.storage.gcs
import transforms.storage.s3
from schemas.errors import ConfigError, StoreError
from schemas.options import IngestOptions
from schemas.places import missing_package
from tests.json_server import JsonServer
from transforms.sources.listing import check_source, list_inputs
from transforms.storage.folder import OutputFolder
from transforms.storage.objects import ObjectStore
from transforms.storage.urls import OBJECTS, input_errors, open_url, store_errors


@pytest.fixture
def refusing(monkeypatch):
    """A store with Google's API that refuses callers without an account."""

    message = {"error": {"code": 401, "message": "Anonymous caller does not have storage.objects.get access."}}
    with JsonServer(lambda *_: (401, message)) as server:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{server.port}")
        transforms.storage.gcs._open_system.cache_clear()
        yield
        transforms.storage.gcs._open_system.cache_clear()


@pytest.mark.usefixtures("refusing")
def test_a_caller_without_an_account_gets_one_line_with_what_to_do(capfd):
    for read in (
        lambda: OutputFolder("gs://b/out").exists("receipt.json"),
        lambda: ObjectStore("gs://b/out").check_writable(),
        lambda: list_inputs(["gs://b/in"], IngestOptions()),
        lambda: list_inputs(["gs://b/in/*.tar"], IngestOptions()),
        lambda: check_source("gs://b/in"),
    ):
        with pytest.raises(StoreError, match="^gs://b/(in|out).*: no Google credentials were found") as caught:
            read()
        assert "\n" not in str(caught.value)
    with pytest.raises(ConfigError, match="--out gs://b/out: cannot be written: .*gcloud auth application-default"):
        OutputFolder("gs://b/out").store.lock()
    assert "Traceback" not in capfd.readouterr().err


def test_a_store_without_credentials_of_amazon_says_how_to_give_them(monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, "/dev/null")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    transforms.storage.s3._open_system.cache_clear()
    with pytest.raises(StoreError, match="^s3://b/in: no AWS credentials were found; set AWS_ACCESS_KEY_ID"):
        check_source("s3://b/in")
    transforms.storage.s3._open_system.cache_clear()


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("gs://b/x", "gs:// needs gcsfs, which is not installed: pip install 'cppmill[gs]'"),
        ("s3://b/x", "s3:// needs s3fs, which is not installed: pip install 'cppmill[s3]'"),
        ("https://h/x", "https:// needs aiohttp, which is not installed: pip install 'cppmill[web]'"),
        ("no-such://b/x", "there is no kind of URL no-such://"),
    ],
)
def test_a_url_whose_package_is_missing_names_what_to_install(url, said, monkeypatch):
    monkeypatch.setattr(schemas.places.importlib.util, "find_spec", lambda name: None)
    assert missing_package(url) == said
    with pytest.raises(ConfigError, match=f"{url}: "):
        open_url(url)
    with pytest.raises(StoreError) as caught, store_errors(url):
        raise ImportError("no module")
    assert str(caught.value) == f"{url}: {said}"


def test_a_url_of_another_kind_is_opened_by_fsspec():
    system, path = open_url("memory://folder/file")
    assert (type(system).__name__, path) == ("MemoryFileSystem", "/folder/file")
    with pytest.raises(ConfigError, match="source 'memory://no-such' does not exist"):
        check_source("memory://no-such")


@pytest.mark.parametrize("scheme", OBJECTS)
def test_a_password_in_the_place_of_a_bucket_reaches_no_library_which_would_quote_it(scheme):
    with pytest.raises(ConfigError, match=f"^{scheme}://me:\\*\\*\\*@b/x: a password does not belong here"):
        open_url(f"{scheme}://me:secret@b/x")


def test_a_token_in_a_url_of_the_hub_reaches_no_library_which_would_quote_it():
    with pytest.raises(ConfigError, match=r"^hf://datasets/a/b\?\*\*\*: a password does not belong here"):
        open_url("hf://datasets/a/b?token=secret")


def test_of_an_input_only_errors_of_the_libraries_of_stores_are_failures_of_the_store():
    failed = type("HttpError", (Exception,), {"__module__": "gcsfs.retry"})
    said = "gs://b: the object store failed after all retries: HttpError: a b; "
    with pytest.raises(StoreError, match=said), input_errors("gs://b"):
        raise failed("a\nb")
    for error in (FileNotFoundError("gone"), ValueError("not a tar")):
        with pytest.raises(type(error)), input_errors("gs://b"):
            raise error


@pytest.mark.parametrize(
    ("status", "code", "is_failure"),
    [
        *[(status, code, True) for status, code in ((500, "InternalError"), (503, "SlowDown"), (503, "503"))],
        *[(status, code, True) for status, code in ((400, "ExpiredToken"), (403, "InvalidAccessKeyId"), (400, "400"))],
        *[(status, code, False) for status, code in ((404, "NoSuchKey"), (403, "AccessDenied"), (403, "403"))],
        *[(status, code, False) for status, code in ((412, "PreconditionFailed"), (416, "InvalidRange"))],
    ],
)
def test_what_s3_answers_to_reading_an_object_is_of_the_object_or_a_failure(status, code, is_failure):
    answer = {"Error": {"Code": code, "Message": "no"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    raised = translate_boto_error(ClientError(answer, "GetObject"))
    with pytest.raises(StoreError if is_failure else type(raised)), input_errors("s3://bucket/a.tar"):
        raise raised


@pytest.mark.parametrize("error", [TimeoutError(), FSTimeoutError(), ConnectionResetError()])
def test_a_store_that_does_not_answer_is_a_failure(error):
    with pytest.raises(StoreError, match="^gs://bucket/a.tar: "), input_errors("gs://bucket/a.tar"):
        raise error
