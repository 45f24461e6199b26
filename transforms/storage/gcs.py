"""Google Cloud Storage as `Objects`: generations, preconditions, resumable uploads, retries.

Everything goes through gcsfs, which takes credentials from the environment (GOOGLE_APPLICATION_CREDENTIALS, those of
`gcloud auth application-default login`, or the machine's service account) and the endpoint from STORAGE_EMULATOR_HOST.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from transforms.storage.protocol import ConflictError, Status

CHUNK_BYTES = 16 << 20
"""Larger files are uploaded in chunks of this size, a multiple of 256 KiB."""

_CONNECT_SECONDS, _READ_SECONDS = 10, 60

_SESSIONS = 4
"""How often a resumable upload begins again after the store has lost its session."""

_SHA256 = "sha256"


@lru_cache(maxsize=1)
def _open_system(process: int) -> Any:  # noqa: ANN401 - gcsfs has no annotations
    """Return the file system of a process; all its threads share the connections.

    gcsfs makes six attempts at each request, after up to 1, 2, 4, 8 and 16 s and a random part of a second.
    """
    # The class that fsspec takes otherwise asks an endpoint of its own about each bucket, for up to a minute.
    os.environ.setdefault("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")
    logging.getLogger("gcsfs").setLevel(logging.CRITICAL)  # it logs what it raises, with a traceback
    import aiohttp
    from gcsfs.core import GCSFileSystem

    timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS, sock_read=_READ_SECONDS)
    # An emulator takes anybody; without this, Google's libraries look for a machine's own account for seconds.
    anonymous = {"token": "anon"} if os.environ.get("STORAGE_EMULATOR_HOST") else {}
    return GCSFileSystem(requests_timeout=timeout, use_listings_cache=False, skip_instance_cache=True, **anonymous)


class GcsObjects:
    """Objects of Google Cloud Storage, by their paths (`bucket/key`). Versions are generations."""

    @property
    def system(self) -> Any:  # noqa: ANN401 - gcsfs has no annotations
        """The gcsfs file system."""
        return _open_system(os.getpid())

    def status(self, path: str) -> Status | None:
        """Return size, generation, and the digest in the object's metadata; one request."""
        bucket, _, key = path.partition("/")
        try:
            found = self.system.call("GET", "b/{}/o/{}", bucket, key, json_out=True)
        except FileNotFoundError:
            return None
        return Status(int(found["size"]), str(found["generation"]), found.get("metadata", {}).get(_SHA256))

    def download(self, path: str, file: Path) -> None:
        """Download an object; one that breaks off is downloaded again."""
        # With more connections gcsfs repeats its attempts at each attempt.
        self.system.get_file(path, os.fspath(file), concurrency=1)

    def upload(self, path: str, file: Path, *, sha256: str, create: bool) -> None:
        """Upload a file with its digest in the metadata; gcsfs cancels a resumable upload that fails.

        Raises:
            FileExistsError: If it is to be created and exists.
            ConflictError: If others write it at the same time: try again.
        """
        for attempt in range(_SESSIONS):
            try:
                self._put(path, file, sha256=sha256, create=create)
                return
            except Exception as error:
                if create and any(isinstance(cause, FileExistsError) for cause in _causes(error)):
                    raise FileExistsError(17, "Exists", path) from error
                if _http_status(error) == 409:
                    raise ConflictError(path) from error
                lost = isinstance(error, FileNotFoundError) or _http_status(error) == 410
                if not lost or attempt == _SESSIONS - 1:
                    raise

    def write(self, path: str, data: bytes, *, expected: str | None) -> str:
        """Write an object if it has the expected generation (None: if there is none); return the new one.

        Raises:
            ConflictError: If it has not.
            FileNotFoundError: If there is no such bucket.
        """
        bucket, _, key = path.partition("/")
        try:
            answer = self.system.call(
                "POST",
                f"{self.system.base.removesuffix('storage/v1/')}upload/storage/v1/b/{bucket}/o",
                uploadType="media",
                name=key,
                ifGenerationMatch=expected or "0",
                headers={"Content-Type": "application/octet-stream"},
                data=data,
                json_out=True,
            )
        except FileExistsError as error:
            raise ConflictError(path) from error
        except FileNotFoundError as error:
            raise FileNotFoundError(2, "No such bucket", bucket) from error
        return str(answer["generation"])

    def abort_uploads(self, below: str) -> None:
        """Do nothing: resumable uploads cannot be listed, cost nothing, and the store drops them after a week."""

    def explain(self, error: Exception) -> str | None:
        """Return what to do about missing or refused credentials, None for other errors."""
        refused = _http_status(error) in (401, 403) or (isinstance(error, OSError) and "Forbidden" in str(error))
        if refused and self.system.credentials.credentials is None:
            return (
                "no Google credentials were found, and it is not public; run `gcloud auth application-default login`, "
                "or set GOOGLE_APPLICATION_CREDENTIALS to the key file of a service account"
            )
        return "the credentials do not allow it; check the roles of the account" if refused else None

    def _put(self, path: str, file: Path, *, sha256: str, create: bool) -> None:
        self.system.put_file(
            os.fspath(file),
            path,
            mode="create" if create else "overwrite",
            chunksize=CHUNK_BYTES,
            metadata={_SHA256: sha256},
            content_type="application/octet-stream",
        )


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and those during whose handling it was raised: cancelling a failed upload can fail too."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _http_status(error: Exception) -> int:
    """Return the HTTP status of an error of gcsfs; 0 if it has none."""
    code = str(getattr(error, "code", None) or 0)
    return int(code) if code.isdecimal() else 0
