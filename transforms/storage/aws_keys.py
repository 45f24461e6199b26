"""The credentials of `s3://`, where a secret of Google's Secret Manager has them.

A process on Google Cloud asks for the secret when it first opens S3: what is in no image, job option or log cannot be
read there. `CPPMILL_S3_SECRET` names the secret. Dataflow's workers have no environment of one's own, so the jobs of a
launcher that has the variable name the secret in an option for Beam (`pipelines.engines.dataflow`).
"""

from __future__ import annotations

import os
import re
import sys
from typing import Any

from schemas.digests import parse_json
from schemas.errors import ConfigError

SECRET_VARIABLE = "CPPMILL_S3_SECRET"
SECRET_OPTION = "s3_secret"
"""The option for Beam with which a worker learns the name."""

_ENDPOINT_VARIABLE = "CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER"
"""Names another endpoint, as gcloud takes it; one without TLS is on this machine, and is asked without credentials."""

_PREFIX = "AWS_"
_NAME = re.compile(r"projects/[^/\s\"]+/secrets/[^/\s\"]+(/versions/[^/\s\"]+)?")
_SECONDS = 60.0


def secret_name() -> str | None:
    """Return the name of the secret that this process is to use, if there is one."""
    beam = sys.modules.get("apache_beam.options.value_provider")  # every worker has loaded it; no command needs to
    given = beam.RuntimeValueProvider.get_value(SECRET_OPTION, str, None) if beam else None
    return os.environ.get(SECRET_VARIABLE) or given


def load_aws_keys() -> None:
    """Put the variables of the secret, if one is named, into the environment of this process.

    Raises:
        ConfigError: If the variable names no secret (it may hold one, so it is not shown), or the secret cannot be read
            or is no JSON object of AWS's variables.
    """
    name = secret_name()
    if name and not _NAME.fullmatch(name):
        raise ConfigError(f"{SECRET_VARIABLE}: not the name of a secret, which is as projects/PROJECT/secrets/NAME")
    if name:
        os.environ.update(parse_secret(_read(name), name))


def parse_secret(payload: bytes, name: str) -> dict[str, str]:
    """Return the variables in a secret: `{"AWS_ACCESS_KEY_ID": "…", "AWS_SECRET_ACCESS_KEY": "…"}`, and others of AWS.

    Raises:
        ConfigError: If it is something else; nothing of its content is in the message.

    Example:
        >>> parse_secret(b'{"AWS_REGION": "eu-central-1"}', "projects/p/secrets/s")
        {'AWS_REGION': 'eu-central-1'}
    """
    try:
        found = parse_json(payload)
    except ValueError:
        found = None  # an error of the parser would quote the secret
    if isinstance(found, dict) and found and all(_is_variable(key, value) for key, value in found.items()):
        return found
    raise ConfigError(
        f"{name}: the secret is no JSON object of variables that begin with {_PREFIX}; add a version such as "
        '{"AWS_ACCESS_KEY_ID": "…", "AWS_SECRET_ACCESS_KEY": "…", "AWS_REGION": "…"}'
    )


def _is_variable(key: str, value: object) -> bool:
    return key.startswith(_PREFIX) and isinstance(value, str)


def _read(name: str) -> bytes:
    """Return the version of a secret that is named, or else the newest."""
    try:
        from google.api_core.exceptions import GoogleAPIError
        from google.auth.exceptions import GoogleAuthError
        from google.cloud.secretmanager import SecretManagerServiceClient
    except ImportError as error:
        raise ConfigError(
            f"{name}: reading a secret needs Google's packages: pip install 'cppmill[dataflow]'"
        ) from error
    version = name if "/versions/" in name else f"{name}/versions/latest"
    try:
        client = SecretManagerServiceClient(transport="rest", **_endpoint())
        data: bytes = client.access_secret_version(name=version, timeout=_SECONDS).payload.data
    except (GoogleAPIError, GoogleAuthError, OSError) as error:
        reason = " ".join(str(error).split())
        raise ConfigError(
            f"{version}: the secret cannot be read: {reason}; it takes projects/PROJECT/secrets/NAME, and an account "
            "with roles/secretmanager.secretAccessor on it"
        ) from error
    return data


def _endpoint() -> dict[str, Any]:
    """Return what leads the client elsewhere than to Google, if anything does."""
    from google.auth.credentials import AnonymousCredentials

    endpoint = os.environ.get(_ENDPOINT_VARIABLE, "").rstrip("/")
    options: dict[str, Any] = {"client_options": {"api_endpoint": endpoint}} if endpoint else {}
    return options | ({"credentials": AnonymousCredentials()} if endpoint.startswith("http://") else {})
