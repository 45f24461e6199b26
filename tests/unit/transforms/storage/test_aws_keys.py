"""A secret gives a process the variables of AWS, and nothing of it is ever in a message."""

import json

import pytest
from apache_beam.options.value_provider import RuntimeValueProvider

from schemas.errors import ConfigError
from transforms.storage.aws_keys import SECRET_OPTION, SECRET_VARIABLE, load_aws_keys, parse_secret, secret_name

SECRET = "projects/p/secrets/s"
KEYS = {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "hidden", "AWS_ENDPOINT_URL_S3": "https://s3.example.org"}


@pytest.fixture(autouse=True)
def nothing_named(monkeypatch):
    monkeypatch.delenv(SECRET_VARIABLE, raising=False)
    monkeypatch.setattr(RuntimeValueProvider, "runtime_options", None)


def test_the_variables_are_those_of_the_object():
    assert parse_secret(json.dumps(KEYS).encode(), SECRET) == KEYS


@pytest.mark.parametrize(
    "payload",
    [
        b"AWS_SECRET_ACCESS_KEY=hidden",
        b'"hidden"',
        b'["hidden"]',
        b"{}",
        b'{"AWS_SECRET_ACCESS_KEY": 7, "x": "hidden"}',
        b'{"LD_PRELOAD": "hidden"}',
        b"\xff hidden",
    ],
)
def test_anything_else_is_refused_without_showing_it(payload):
    with pytest.raises(ConfigError, match=f"^{SECRET}: the secret is no JSON object of variables") as refused:
        parse_secret(payload, SECRET)
    assert "hidden" not in str(refused.value)
    assert refused.value.__cause__ is None
    assert refused.value.__context__ is None


def test_a_worker_takes_the_name_from_the_options_of_its_job(monkeypatch):
    assert secret_name() is None
    monkeypatch.setattr(RuntimeValueProvider, "runtime_options", {SECRET_OPTION: SECRET})
    assert secret_name() == SECRET


def test_the_environment_comes_first(monkeypatch):
    monkeypatch.setattr(RuntimeValueProvider, "runtime_options", {SECRET_OPTION: SECRET})
    monkeypatch.setenv(SECRET_VARIABLE, "projects/q/secrets/s")
    assert secret_name() == "projects/q/secrets/s"


@pytest.mark.parametrize("value", [json.dumps(KEYS), "hidden", "projects/p/hidden", "projects/p/secrets/s/hidden"])
def test_a_secret_in_the_place_of_its_name_is_not_shown(value, monkeypatch):
    monkeypatch.setenv(SECRET_VARIABLE, value)
    with pytest.raises(ConfigError, match=f"^{SECRET_VARIABLE}: not the name of a secret") as refused:
        load_aws_keys()
    assert "hidden" not in str(refused.value)
