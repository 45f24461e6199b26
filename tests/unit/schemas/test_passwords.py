"""Passwords in URLs stay out of files and messages."""

from __future__ import annotations

import json

import pytest

from configs.runs import load_run_config
from pipelines.console.events import open_log
from schemas.errors import ConfigError
from schemas.passwords import VARIABLE, hide_passwords, redacted, user_of, with_password
from transforms.storage.folder import OutputFolder

URL = "sftp://me:h%40mlet@host:22/folder/*.cpp"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "{}")


def test_a_hidden_password_comes_back_for_who_opens_the_url() -> None:
    plain = hide_passwords(URL)
    assert plain == "sftp://host:22/folder/*.cpp"
    assert with_password("sftp://host:22/folder") == "sftp://me:h%40mlet@host:22/folder"
    assert user_of(plain) == ("me", "h%40mlet")
    assert with_password("sftp://other/folder") == "sftp://other/folder"
    chained = "zip://*.cpp::https://me:secret@host/a.zip"
    assert with_password(hide_passwords(chained)) == chained


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


def test_no_password_is_in_the_event_log(out: OutputFolder) -> None:
    with pytest.raises(ValueError, match="h%40mlet"), open_log(out, engine="local", threads=1):
        raise ValueError(URL)
    (name,) = out.files(".cache/events")
    ended = [json.loads(line) for line in out.read_bytes(name).splitlines()][-1]
    assert ended["event"] == "run_ended"
    assert b"mlet" not in out.read_bytes(name)
