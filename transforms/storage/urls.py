"""The kinds of object stores, and opening any fsspec URL: one file system per process, errors that say what to do."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from http import HTTPStatus
from typing import Any, cast
from urllib.parse import unquote

from schemas.errors import ConfigError, CppmillError, IntegrityError, StoreError
from schemas.passwords import NO_PASSWORD, has_password, redacted, user_of, with_password, with_query
from schemas.places import missing_package
from transforms.storage.gcs import GcsObjects
from transforms.storage.protocol import ConflictError, Objects
from transforms.storage.s3 import S3Objects

OBJECTS: dict[str, Callable[[], Objects]] = {"s3": S3Objects, "gs": GcsObjects}
"""The kinds of object stores, by the scheme of their URLs; `schemas.places` has the package that each needs."""

HUB = "hf"
"""The scheme of the Hugging Face Hub, which can be read, not written."""

_KEPT_COPIES = ("CachingFileSystem", "WholeFileCacheFileSystem", "SimpleCacheFileSystem")
"""Classes of fsspec that keep a copy of what they read; an instance, and its copies, lasts as long as the process."""

_DAMAGED = "FlexibleChecksumError"
"""How botocore names an error for bytes that do not fit the checksum that the store has of an object."""

_LIBRARIES = ("aiobotocore", "aiohttp", "botocore", "gcsfs", "google", "huggingface_hub", "requests")
"""The packages whose exceptions are failures of a store."""

_HAS_SCHEME = re.compile(r"/*[A-Za-z][A-Za-z0-9+.-]*:")
"""With which no relative link begins; fsspec joins all links but those of `http:` to that of their page."""

_MOST_DEPTH, _MOST_PAGES = 64, 100_000
_ENDLESS = (
    f"its web server has folders in more than {_MOST_DEPTH} others, or more than {_MOST_PAGES:,}; if pages link to "
    "themselves, give a pattern or the folders below"
)
"""How far pages are followed, and what is said of more: a page may be that of each folder that it names."""

_GONE = (404, 410)
"""What a web server answers for what it does not have."""

_LATER = (400, 401, 408, 429)
"""Statuses below 500 that say nothing about an object: of requests that the store does not take, as with old keys."""

_KEYS = ("ExpiredToken", "InvalidAccessKeyId", "InvalidToken", "RequestTimeTooSkewed", "SignatureDoesNotMatch")
"""What S3 answers to keys that it does not take, with the status of an object that may not be read."""


def open_url(url: str) -> tuple[Any, str]:
    """Return the fsspec file system of a URL and the path in it.

    Raises:
        ConfigError: If there is no such kind of URL, its package is not installed, or an object store's has a password.
    """
    missing = missing_package(url)
    if missing:
        raise ConfigError(f"{url}: {missing}")
    scheme, _, path = url.partition("://")
    if scheme in OBJECTS:
        if has_password(url):  # it would be the bucket's name, which errors of a store's library quote
            raise ConfigError(f"{url}: {NO_PASSWORD}")
        return OBJECTS[scheme]().system, path
    if is_web(url):  # there a path is the whole URL, which may have a `::` in its host, and would have the password
        from transforms.storage.web import WebFileSystem  # it loads aiohttp, which takes a while

        of_web: Any = WebFileSystem
        system, path = of_web(client_kwargs=_web_client(url)), url
    elif scheme == HUB:
        if redacted(url) != url:  # a query would be part of a file's name, which errors of the library quote
            raise ConfigError(f"{redacted(url)}: {NO_PASSWORD}")
        system, path = _open_hub(url)
    elif "::" in url:
        system, path = _open_archive(with_password(url))
    else:
        system, path = _url_to_fs(with_password(url))
    return system, str(path)


def open_file(root: str, path: str) -> tuple[Any, str]:
    """Return the fsspec file system of the URL of a folder, and the path in it of a file below the folder.

    Raises:
        ConfigError: As `open_url` does.
    """
    system, base = open_url(root)
    return system, with_query(f"{base}/{path}")


def _open_hub(url: str) -> tuple[Any, str]:
    from transforms.storage.hub import open_hub  # its library takes a while to load

    system: Any = open_hub()
    return system, system._strip_protocol(url)


@lru_cache(maxsize=8)
def _open_archive(url: str) -> tuple[Any, str]:
    """Return the file system in an archive; fsspec closes the archive when nobody has it any more.

    Raises:
        ConfigError: If there is no archive, or fsspec cannot open it.
    """
    try:
        system, path = _url_to_fs(url)
    except FileNotFoundError as error:
        if store_failure(error) is not None:
            raise
        raise ConfigError(f"{redacted(url)}: the archive does not exist") from error
    except Exception as error:
        if _is_of_archive(error):
            raise _archive_error(url, error) from error
        raise
    return system, str(path)


def _is_of_archive(error: Exception) -> bool:
    """Return whether an error is one that fsspec and what it reads archives with raise for an archive."""
    import lzma  # these take a while to load, and few runs need them
    import tarfile
    import zipfile
    import zlib
    from gzip import BadGzipFile

    of_archives = (tarfile.TarError, zipfile.BadZipFile, BadGzipFile, EOFError, lzma.LZMAError, zlib.error)
    return isinstance(error, (*of_archives, KeyError, ValueError))


def _archive_error(url: str, error: Exception) -> ConfigError:
    said = f"the archive cannot be read in this way ({type(error).__name__}); give the archive itself"
    return ConfigError(f"{redacted(url)}: {said}")


def forget_archives() -> None:
    """Forget the archives that this process has opened, and copies that fsspec keeps: others may be there by now."""
    _open_archive.cache_clear()
    cached = sys.modules.get("fsspec.implementations.cached")
    for system in filter(None, (getattr(cached, name, None) for name in _KEPT_COPIES)):
        system.clear_instance_cache()


def _url_to_fs(url: str) -> tuple[Any, Any]:
    from fsspec.core import url_to_fs  # it loads asyncio, which local files do not need

    found: tuple[Any, Any] = url_to_fs(url)
    return found


def is_web(url: str) -> bool:
    """Return whether a URL is of a web server, where a path has its scheme and host."""
    return url.startswith(("http://", "https://"))


def path_below(root: str, name: str) -> str:
    """Return the path of a file of a store relative to a folder, which may begin with an empty part.

    Example:
        >>> path_below("bucket/src", "bucket/src/a.cpp"), path_below("bucket/src", "bucket/src//a.cpp")
        ('a.cpp', '/a.cpp')
    """
    return name[len(root) :].removeprefix("/")


def walk_folder(
    system: Any,  # noqa: ANN401 - fsspec has no annotations
    root: str,
    enters: Callable[[str], bool],
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the paths of all files below a folder, and what is known of them.

    A listed folder that does not exist is yielded too, as a file of unknown size. fsspec's own walk takes every folder
    that it cannot list for an empty one.

    Args:
        system: The file system.
        root: The folder, without a slash at the end.
        enters: Whether a folder, a path relative to this one, is looked into.

    Raises:
        FileNotFoundError: If there is no such folder.
        StoreError: If pages of a web server seem to have no end.
        Exception: Whatever the store's library raises if a folder cannot be listed.
    """
    folders, num_pages, of_web = [root], 0, is_web(root)
    while folders:
        folder = folders.pop()
        try:
            listed = _list_page(system, folder) if of_web else system.ls(folder, detail=True)
        except FileNotFoundError:
            if folder == root:
                raise
            yield folder, {"type": "file", "size": None}
            continue
        for info in listed:
            name = info["name"]
            if of_web:
                if _HAS_SCHEME.match(name, len(folder) + 1):
                    continue  # a link to somewhere else, taken for one below the page
                name = name.replace("/./", "/")
            path = name.rstrip("/")
            relative = path_below(root, path)
            if path == folder or ".." in (unquote(relative) if of_web else relative).split("/"):
                continue
            if info["type"] != "directory":
                yield name, info
            elif enters(relative):
                num_pages += 1
                if of_web and (relative.count("/") >= _MOST_DEPTH or num_pages > _MOST_PAGES):
                    raise StoreError(f"{path}: {_ENDLESS}")
                folders.append(path)


def _list_page(system: Any, folder: str) -> list[dict[str, Any]]:  # noqa: ANN401
    """Return what the page of a folder has links to; its URL ends with a slash on most servers, on some it must not."""
    try:
        return list(system.ls(f"{folder}/", detail=True))
    except FileNotFoundError:
        return list(system.ls(folder, detail=True))


def lists_at_once(system: Any) -> bool:  # noqa: ANN401
    """Return whether a store lists all files below a folder itself; others are asked folder by folder."""
    from fsspec.asyn import AsyncFileSystem
    from fsspec.spec import AbstractFileSystem

    if isinstance(system, AsyncFileSystem):
        return type(system)._find is not AsyncFileSystem._find
    return type(system).find is not AbstractFileSystem.find


def _web_client(url: str) -> dict[str, Any]:
    """Return the options of aiohttp for a URL: further attempts, limits, notes, and the user that it has."""
    from transforms.storage import web

    user, options = user_of(url), {"timeout": web.timeout(), "trace_configs": (web.NOTING,)}
    return {"middlewares": (web.try_again,), **options, **({} if user is None else _sign_in(url, *user))}


def _sign_in(url: str, user: str, password: str) -> dict[str, Any]:
    """Return what signs in on the server of a URL, and on no other one to which it redirects or has links."""
    from aiohttp import BasicAuth

    return {"auth": BasicAuth(unquote(user), unquote(password)), "base_url": f"{'/'.join(url.split('/')[:3])}/"}


def store_failure(error: OSError) -> Exception | None:
    """Return the failure of a store behind an error of reading a file of it; None if the error is about that file.

    fsspec has errors of the file system for what stores answer: FileNotFoundError for each error of a web server that
    is asked about a file, and OSError for throttling and old keys of S3.
    """
    answer = error.__cause__ or error
    status, code = _answer_of(answer)
    if isinstance(error, FileNotFoundError):
        is_web = type(answer).__module__.partition(".")[0] == "aiohttp" or isinstance(answer, TimeoutError)
        return cast(Exception, answer) if is_web and status not in _GONE else None
    is_of_library = type(error).__module__.partition(".")[0] in _LIBRARIES and status not in _GONE
    is_failure = is_of_library or status in _LATER or status >= HTTPStatus.INTERNAL_SERVER_ERROR or code in _KEYS
    return error if is_failure or isinstance(error, ConnectionError | TimeoutError) else None


def _answer_of(error: BaseException) -> tuple[int, str]:
    """Return the status of HTTP and the code of S3 that an error of a store's library has; 0 and none without."""
    response = getattr(error, "response", None)
    if isinstance(response, dict):
        found = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        return int(found or 0), str(response.get("Error", {}).get("Code", ""))
    return int(getattr(error, "status", None) or getattr(response, "status_code", None) or 0), ""


@contextmanager
def store_errors(url: str) -> Iterator[None]:
    """Turn errors of a store's library into one that names the URL; the caller handles the expected ones.

    Raises:
        IntegrityError: If an object is damaged.
        StoreError: Saying what failed and what to do, in one line.
    """
    try:
        yield
    except (FileExistsError, CppmillError, ConflictError):
        raise
    except FileNotFoundError as error:
        failure = store_failure(error)
        if failure is None:
            raise
        raise _store_error(url, failure) from error
    except Exception as error:
        raise _store_error(url, error) from error


@contextmanager
def input_errors(url: str) -> Iterator[None]:
    """Turn failures of a store into an error that names the URL; errors about the file itself and all others pass.

    Raises:
        ConfigError: If fsspec cannot read a member of an archive.
        IntegrityError: If an object is damaged.
        StoreError: Saying what failed and what to do, in one line.
    """
    try:
        yield
    except CppmillError:
        raise
    except OSError as error:
        failure = store_failure(error)
        if failure is None:
            raise
        raise _store_error(url, failure) from error
    except Exception as error:
        if "::" in url and _is_of_archive(error):
            raise _archive_error(url, error) from error
        if type(error).__module__.partition(".")[0] in _LIBRARIES:
            raise _store_error(url, error) from error
        raise


def _store_error(url: str, error: Exception) -> CppmillError:
    if type(error).__name__ == _DAMAGED:
        return IntegrityError(
            f"{url}: damaged: its bytes do not fit the checksum that the store has of it; restore it, or remove it and "
            "run again"
        )
    scheme = url.partition("://")[0]
    if isinstance(error, ImportError):
        advice = missing_package(url)
    else:
        advice = OBJECTS[scheme]().explain(error) if scheme in OBJECTS else None
    if advice:
        return StoreError(f"{url}: {advice}")
    reason = redacted(" ".join(str(error).split()))
    failed = f"failed after all retries: {type(error).__name__}: {reason}"
    if is_web(url):
        return StoreError(f"{url}: the web server {failed}; run again, or download the file")
    return StoreError(f"{url}: the object store {failed}; check credentials, endpoint and bucket, and run again")
