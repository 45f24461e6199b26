"""The Hugging Face Hub as a file system that can be read: `hf://datasets/ORG/NAME@REVISION/PATH`.

It is `huggingface_hub`'s own. Its errors of a server are an OSError too, as are those of damaged files; here they are
a StoreError, so that no reader takes a server that fails for a document that is dead.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from typing import Any

from huggingface_hub import HfFileSystem

from schemas.errors import StoreError

_LIBRARIES = ("httpx2", "huggingface_hub")


def is_of_hub(error: BaseException) -> bool:
    """Return whether an error is one of the Hub's library, or of what it speaks HTTP with."""
    return type(error).__module__.partition(".")[0] in _LIBRARIES


def open_hub() -> HubFiles:
    """Return the file system; `HF_ENDPOINT` and `HF_TOKEN` of the environment name another Hub and who reads."""
    return HubFiles(endpoint=os.environ.get("HF_ENDPOINT"))


class HubFiles(HfFileSystem):  # type: ignore[metaclass]
    """The Hub, with files whose reading fails with a StoreError."""

    def _open(self, path: str, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - fsspec has no annotations
        file: Any = _guarded(super()._open, path)(path, *arguments, **options)
        file.read = _guarded(file.read, path)
        return file


def _guarded(function: Callable[..., Any], path: str) -> Callable[..., Any]:
    """Return a function whose failures of the server are a StoreError."""

    @wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401
        try:
            return function(*arguments, **options)
        except FileNotFoundError:
            raise
        except Exception as error:
            if not is_of_hub(error):
                raise
            reason = " ".join(str(error).split())
            raise StoreError(f"hf://{path}: the Hub failed after all retries: {reason}; run again") from error

    return call
