"""S3 as `Objects`: entity tags, conditional writes, uploads in parts, retries.

Everything goes through s3fs, and so through botocore, which takes credentials, region and endpoint from the environment
(AWS_ACCESS_KEY_ID, AWS_PROFILE, AWS_REGION, AWS_ENDPOINT_URL_S3, …), or `aws_keys` from a secret.
"""

from __future__ import annotations

import os
from functools import lru_cache
from http import HTTPStatus
from pathlib import Path
from typing import Any

from transforms.storage.aws_keys import load_aws_keys
from transforms.storage.protocol import ConflictError, Status

PART_BYTES = 16 << 20
"""Files of twice this size are uploaded in parts, larger ones than this are downloaded in parts."""

_PARTS_AT_ONCE = 4
_CONFIG = {
    "retries": {"mode": "standard", "total_max_attempts": 10},
    "connect_timeout": 10,
    "read_timeout": 60,
    "max_pool_connections": 32,
}
"""botocore retries on 5xx, throttling and lost connections, after up to 1, 2, 4, 8, 16, then 20 s: for a minute."""

_ROUNDS = 2
"""s3fs's own retries, around botocore's: they repeat a read that breaks in the middle of a body."""

_SHA256 = "sha256"


@lru_cache(maxsize=1)
def _open_system(process: int) -> Any:  # noqa: ANN401 - s3fs has no annotations
    """Return the file system of a process; all its threads share the connections."""
    load_aws_keys()
    import fsspec  # it loads asyncio, which local files do not need

    system = fsspec.filesystem(
        "s3",
        config_kwargs=_CONFIG,
        use_listings_cache=False,
        skip_instance_cache=True,
        max_concurrency=1,  # with more, `cat_file` would ask for the size before each read
    )
    system.retries = _ROUNDS
    system.s3.meta.events.register_first("needs-retry.s3", _name_throttling)
    return system


def _name_throttling(response: tuple[Any, dict[str, Any]] | None, **_: object) -> None:
    """Give status 429 the code that AWS has for it, before botocore decides on a retry; other stores have others."""
    if response is not None and response[0].status_code == HTTPStatus.TOO_MANY_REQUESTS:
        response[1].setdefault("Error", {})["Code"] = "SlowDown"


class S3Objects:
    """Objects of S3, and of stores with the same API, by their paths (`bucket/key`)."""

    @property
    def system(self) -> Any:  # noqa: ANN401 - s3fs has no annotations
        """The s3fs file system."""
        return _open_system(os.getpid())

    def status(self, path: str) -> Status | None:
        """Return size, entity tag, and the digest in the object's metadata; one request."""
        try:
            found = self._call("head_object", path)
        except FileNotFoundError:
            return None
        return Status(found["ContentLength"], found["ETag"], found.get("Metadata", {}).get(_SHA256))

    def download(self, path: str, file: Path) -> None:
        """Download an object; one that breaks off is read on."""
        self.system.get_file(path, os.fspath(file), chunksize=PART_BYTES, max_concurrency=_PARTS_AT_ONCE)

    def upload(self, path: str, file: Path, *, sha256: str, create: bool) -> None:
        """Upload a file with its digest in the metadata; s3fs aborts an upload in parts that fails.

        Raises:
            FileExistsError: If it is to be created and exists.
            ConflictError: If others write it at the same time: try again.
        """
        try:
            self.system.put_file(
                os.fspath(file),
                path,
                mode="create" if create else "overwrite",
                chunksize=PART_BYTES,
                max_concurrency=_PARTS_AT_ONCE,
                Metadata={_SHA256: sha256},
                ContentType="application/octet-stream",
            )
        except OSError as error:
            if isinstance(error, FileExistsError) or (create and _http_status(error) == 412):
                raise FileExistsError(17, "Exists", path) from error
            if create and _http_status(error) == 409:
                raise ConflictError(path) from error
            raise

    def write(self, path: str, data: bytes, *, expected: str | None) -> str:
        """Write an object if it has the expected entity tag (None: if there is none); return the new one.

        Raises:
            ConflictError: If it has not.
        """
        condition = {"IfNoneMatch": "*"} if expected is None else {"IfMatch": expected}
        try:
            return str(self._call("put_object", path, Body=data, **condition)["ETag"])
        except OSError as error:
            gone = expected is not None and isinstance(error, FileNotFoundError)
            if gone or isinstance(error, FileExistsError) or _http_status(error) in (409, 412):
                raise ConflictError(path) from error
            raise

    def abort_uploads(self, below: str) -> None:
        """Abort the unfinished uploads in parts below a path."""
        bucket, prefix, _ = self.system.split_path(below)
        marker = dict[str, str]()
        while True:
            page = self.system.call_s3("list_multipart_uploads", Bucket=bucket, Prefix=f"{prefix}/", **marker)
            for upload in page.get("Uploads", ()):
                self.system.abort_mpu(bucket, upload["Key"], upload["UploadId"])
            if not page.get("IsTruncated"):
                return
            marker = {"KeyMarker": page["NextKeyMarker"], "UploadIdMarker": page["NextUploadIdMarker"]}

    def explain(self, error: Exception) -> str | None:
        """Return what to do about missing or refused credentials, None for other errors."""
        name = type(error).__name__
        if name == "NoCredentialsError":
            return (
                "no AWS credentials were found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or "
                "for a public bucket FSSPEC_S3_ANON=true"
            )
        if name in ("PartialCredentialsError", "ProfileNotFound", "TokenRetrievalError", "UnauthorizedSSOTokenError"):
            return f"the AWS credentials cannot be used: {error}"
        return None

    def _call(self, method: str, path: str, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401 - S3's own
        bucket, key, _ = self.system.split_path(path)
        answer: dict[str, Any] = self.system.call_s3(method, Bucket=bucket, Key=key, **arguments)
        return answer


def _http_status(error: BaseException) -> int:
    """Return the HTTP status behind an error of s3fs; 0 if there is none."""
    response = getattr(error.__cause__, "response", None) or {}
    return int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
