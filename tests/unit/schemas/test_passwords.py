"""Passwords in URLs stay out of files and messages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from configs.runs import load_run_config
from pipelines.console.events import open_log
from schemas.errors import ConfigError
from schemas.passwords import (
    QUERIES,
    VARIABLE,
    find_conflict,
    hide_passwords,
    hide_secrets,
    redacted,
    url_identity,
    user_of,
    with_password,
    with_query,
)
from transforms.storage.folder import OutputFolder

URL = "sftp://me:h%40mlet@host:22/folder/*.cpp"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "{}")
    monkeypatch.setenv(QUERIES, "{}")


def test_a_hidden_password_comes_back_for_who_opens_the_url() -> None:
    plain = hide_passwords(URL)
    assert plain == "sftp://host:22/folder/*.cpp"
    assert with_password("sftp://host:22/folder") == "sftp://me:h%40mlet@host:22/folder"
    assert user_of(plain) == ("me", "h%40mlet")
    assert with_password("sftp://other/folder") == "sftp://other/folder"
    chained = "zip://*.cpp::https://me:secret@host/a.zip"
    assert with_password(hide_passwords(chained)) == chained


@pytest.mark.parametrize("value", ["", "x", "null", "1", "[1]"])
def test_what_another_program_put_into_the_variables_is_passed_over(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in (VARIABLE, QUERIES):
        monkeypatch.setenv(variable, value)
    assert user_of("http://host/a") is None
    assert with_query("http://host/a") == with_password("http://host/a") == "http://host/a"


def test_a_repository_is_no_password() -> None:
    assert hide_passwords("github://org:repo@main/src") == "github://org:repo@main/src"
    assert redacted("github://org:repo@main/src") == "github://org:repo@main/src"


def test_no_password_is_in_a_configuration_and_none_may_be_in_its_output() -> None:
    config = load_run_config(flags={"SOURCE": (URL.replace("sftp", "https"),), "--out": "/tmp/out"}, needs_sources=True)
    assert "mlet" not in repr(config)
    with pytest.raises(ConfigError) as found:
        load_run_config(flags={"--out": "s3://me:secret@bucket/run"})
    assert "a password does not belong here" in str(found.value)
    assert "secret" not in str(found.value)


@pytest.mark.parametrize(
    "command", [["verify"], ["status"], ["report", "--out", "page.html"]], ids=lambda words: words[0]
)
def test_no_password_may_be_in_the_place_of_a_run(cppmill: Any, command: list[str]) -> None:
    done = cppmill(command[0], "s3://me:secret@bucket/run", *command[1:], check=False)
    assert done.returncode == 2
    assert "a password does not belong here" in " ".join(done.stderr.split())
    assert "secret" not in done.stdout + done.stderr


@pytest.mark.parametrize("mark", "#?/")
def test_a_password_with_a_mark_of_urls_goes_to_its_server(mark: str) -> None:
    plain = hide_secrets(f"http://me:ham{mark}let@host:80/a?b=c#d")
    assert plain == "http://host:80/a"
    assert user_of(plain) == ("me", f"ham{mark}let")
    assert with_query(plain) == "http://host:80/a?b=c"


def test_a_password_that_should_be_encoded_is_one_too() -> None:
    url = "sftp://me:ham/mlet?@host:22/folder"
    assert redacted(f"no {url} here") == "no sftp://me:***@host:22/folder here"
    assert with_password(hide_passwords(url)) == url
    for other in ("http://host:80/a@b", "zip://*::https://host/a@b", "hf://datasets/org/name@main/a:b"):
        assert redacted(other) == other


def test_no_password_is_in_the_event_log(out: OutputFolder) -> None:
    with pytest.raises(ValueError, match="h%40mlet"), open_log(out, engine="local", threads=1):
        raise ValueError(URL)
    (name,) = out.files(".cache/events")
    ended = [json.loads(line) for line in out.read_bytes(name).splitlines()][-1]
    assert ended["event"] == "run_ended"
    assert b"mlet" not in out.read_bytes(name)


SIGNED = {
    "AWS": "X-Amz-Algorithm=A&X-Amz-Credential=me%2F2026&X-Amz-Signature=mlet",
    "Google": "X-Goog-Date=1&X-Goog-Signature=mlet",
    "CloudFront": "Expires=1&Signature=mlet&Key-Pair-Id=K",
    "Azure": "sv=2026&se=1&sp=r&sig=mlet",
}


@pytest.mark.parametrize("query", SIGNED.values(), ids=SIGNED)
def test_a_signature_comes_back_for_who_opens_the_url_and_says_nothing_of_the_file(query: str) -> None:
    url = f"https://me:secret@host/a.zip?{query}"
    plain = hide_secrets(url)
    assert plain == "https://host/a.zip"
    assert with_query(plain) == f"{plain}?{query}"
    assert url_identity(plain) == url_identity(hide_secrets("https://me:another@host/a.zip"))
    assert with_password(hide_secrets(f"zip://*.cpp::{url}")) == f"zip://*.cpp::{url}"
    assert redacted(f"GET {url}, no") == "GET https://me:***@host/a.zip?*** no"


def test_the_rest_of_a_query_says_which_file_it_is() -> None:
    names = set()
    for query in ("versionId=1&X-Amz-Signature=a", "X-Amz-Signature=b&versionId=1", "versionId=2&X-Amz-Signature=a"):
        names.add(url_identity(hide_secrets(f"https://host/a.zip?{query}")))
    assert len(names) == 2
    assert url_identity(hide_secrets("https://host/b.zip?sp=r"))
    assert redacted("https://example.com/?q=1") == "https://example.com/?q=1"


def test_the_user_says_which_file_it_is_and_a_password_or_a_token_does_not() -> None:
    users = ["me:1@", "me:2@", "you:1@", "", "t0ken@"]
    found = [url_identity(hide_secrets(f"https://{user}{number}.host/a.zip")) for number, user in enumerate(users)]
    assert found[0] == found[1] != found[2]
    assert found[3:] == ["", ""]
    assert url_identity(hide_secrets("tar://*.h::https://me:1@c.host/a.tar")) == found[0]


def test_a_hidden_query_is_redacted_beside_a_password_too() -> None:
    url = "https://me:secret@host/a.jsonl?b=hush"
    hide_secrets(url)
    assert "hush" not in redacted(f"no {url}: it is not there")


def test_a_signature_is_redacted_whatever_the_scheme() -> None:
    assert redacted("abfs://c@host/a.jsonl?sv=1&sig=hush") == "abfs://c@host/a.jsonl?***"


@pytest.mark.parametrize(
    "url",
    [
        "https://secret@host/a",
        "zip://p::https://secret@host:80/a.zip",
        "https:/me:secret@host/a",
        "https://host/a?token=secret",
        "https://host/a?b=1&X-Api-Key=secret",
        "hf://datasets/org/name?access_token=secret",
        "abfs://folder@host/a?sv=1&sig=secret",
        "http:///me:secret@host/a",
        "http:////me:secret#1@host/a",
        "abfs://folder@me:secret@host/a",
        "http://me:secret#1@host/a",
        "http://me:secret?1@host/a?x=2",
    ],
)
def test_a_token_is_redacted_like_a_password(url: str) -> None:
    assert "secret" not in redacted(f"no {url}, no")


def test_a_token_in_the_place_of_the_user_comes_back_for_who_opens_the_url() -> None:
    url = "https://secret@host:80/a.zip?b=1"
    plain = hide_passwords(url)
    assert plain == "https://host:80/a.zip?b=1"
    assert with_password(plain) == url


@pytest.mark.parametrize(
    "text",
    [
        "https://host/a?revision=main",
        "sftp://me@host/a",
        "abfs://folder@host/a",
        "see http://host/@a and b@c",
        "see http://h:80, b@c",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redacted(text) == text


def test_an_address_of_ipv6_is_a_host() -> None:
    url = "https://me:secret@[2001:db8::1]:9/a.zip?token=hush"
    plain = hide_secrets(url)
    assert plain == "https://[2001:db8::1]:9/a.zip"
    assert user_of(plain) == ("me", "secret")
    assert with_password(hide_secrets(f"zip://*.cpp::{url}")) == f"zip://*.cpp::{url}"
    assert redacted(url) == "https://me:***@[2001:db8::1]:9/a.zip?***"
    assert redacted("https://[2001:db8:1:2:3:4:5:6]/a@b") == "https://[2001:db8:1:2:3:4:5:6]/a@b"


def test_white_space_in_a_password_hides_none_of_it(tmp_path: Path) -> None:
    plain = hide_secrets("sftp://me:ham mlet\t@host:22/a b")
    assert plain == "sftp://host:22/a b"
    assert with_password(plain) == "sftp://me:ham%20mlet%09@host:22/a b"
    with pytest.raises(ConfigError) as caught:
        load_run_config(
            flags={"SOURCE": ["nosuch://me:ham mlet@host/a"], "--out": str(tmp_path / "out")}, needs_sources=True
        )
    assert "mlet" not in redacted(str(caught.value))


def test_a_long_name_is_no_scheme_from_each_of_its_letters() -> None:
    name = "a" * 100_000
    assert redacted(f"{name}:/x {name}") == f"{name}:/x {name}"
    assert hide_secrets(name) == name


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://host/a?rev=1", "http://host/a?rev=2"),
        ("http://host/a?rev=1", "http://host/a"),
        ("zip://x::http://host/a?rev=1", "zip://y::http://host/a?rev=2"),
        ("http://bob:1@host/a", "http://amy:2@host/b"),
        ("http://bob:1@host/a", "http://host/b"),
        ("http://token@host/a", "http://host/b"),
        ("sftp://bob:1@host/a", "sftp://bob:2@host/a"),
    ],
)
def test_two_urls_of_which_only_one_could_be_opened_as_given_are_refused(one, other):
    for urls in ((one, other), (other, "/data", one)):
        assert find_conflict(urls) == (urls[0], urls[-1])
        with pytest.raises(ConfigError, match="of which only one would be used"):
            load_run_config(flags={"SOURCE": urls, "--out": "out"}, needs_sources=True)


def test_urls_that_can_be_opened_beside_each_other_are_taken():
    urls = [
        "http://bob:1@host/a?b=1",
        "http://bob:1@host/b?b=2",
        "http://host:81/a",
        "https://host/a",
        "http://bob:1@host/a?b=1",
    ]
    assert find_conflict(urls) is None
    assert find_conflict(["github://me:one@main/a", "github://me:two@main/a", "/data/a?b", "/data/a"]) is None
