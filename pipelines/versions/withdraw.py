"""The program of `cppmill withdraw`: documents that leave a store of versions, and do not come back.

Their list is `withdrawn.json` in the store (`transforms.filters.withdrawals`). Every later version obeys it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from pipelines.stages.session import locked
from schemas.digests import HEX_DIGEST
from schemas.errors import ConfigError, IntegrityError
from schemas.files import read_regular, write_file
from schemas.logs import module_logger
from schemas.places import is_remote
from schemas.printing import one_line
from transforms.filters.withdrawals import WITHDRAWN, Withdrawals, describe_counts, read_withdrawals
from transforms.records.affected import known_withdrawals, listed_doc_ids, record_affected, unmatched
from transforms.records.versions import Versions
from transforms.sources.document import display_path, is_utf8, raw_path

logger = module_logger(__name__)

_UTF16_MARKS = ("\udcff\udcfe", "\udcfe\udcff")
"""The byte-order marks of UTF-16, as bytes that are not UTF-8 are decoded."""

_BELOW = "give paths as in the column `path`, below a source"
_SHOWN_CHARACTERS = 200


def read_values(file: str) -> list[str]:
    """Return the lines of a file that are not empty, with line ends of Unix or Windows; `-` is the standard input.

    Raises:
        ConfigError: If it cannot be read.
    """
    return [line for _, line in _read_lines(file)]


def read_paths(file: str) -> list[str]:
    """Return the paths that a file lists, as `read_values` does.

    Raises:
        ConfigError: If it cannot be read, or no document can have the path of a line.
    """
    lines = list(_read_lines(file))
    for number, path in lines:
        advice = _advice(path)
        if advice:
            shown = one_line(path[:_SHOWN_CHARACTERS])
            raise ConfigError(f"--paths: {file}:{number}: {shown}: no document has it; {advice}")
    return [path for _, path in lines]


def _read_lines(file: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file that are not empty, each with its number."""
    try:
        data = sys.stdin.buffer.read() if file == "-" else read_regular(Path(file))
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}") from error
    text = data.decode("utf-8", "surrogateescape").removeprefix("\ufeff")
    for number, line in enumerate(text.split("\n"), start=1):
        value = line.removesuffix("\r")
        if value.strip():
            yield number, value


def _advice(path: str) -> str:
    """Return what to do about a path that no document can have, empty if one can.

    An empty part is no such sign, except in front: keys of object stores have some.
    """
    if "\0" in path or path.startswith(_UTF16_MARKS):
        return "save the list as UTF-8: this looks like UTF-16"
    if "\r" in path:
        return "end each line with a line feed, not with a carriage return"
    if path.startswith("/"):
        return f"{_BELOW}; a key that begins with a slash by its doc_id"
    return "" if {".", ".."}.isdisjoint(path.split("/")) else _BELOW


def make_withdrawals(
    *,
    doc_ids: Sequence[str] = (),
    paths: Sequence[str] = (),
    projects: Sequence[str] = (),
    licenses: Sequence[str] = (),
) -> Withdrawals:
    """Return the list of what a user names.

    Raises:
        ConfigError: If nothing is named, or a doc_id is none.
    """
    values: Mapping[str, Sequence[str]] = {
        # As `sha256sum` prints them: with a name behind, and a backslash in front if the name has one.
        "doc_ids": [doc_id.split()[0].removeprefix("\\") for doc_id in doc_ids],
        "paths": [path if is_utf8(raw_path(path)) else display_path(path) for path in paths],
        "projects": projects,
        "licenses": licenses,
    }
    if not any(values.values()):
        raise ConfigError("nothing to withdraw: give --doc-ids, --paths, --projects or --licenses")
    for doc_id in values["doc_ids"]:
        if not HEX_DIGEST.fullmatch(doc_id.lower()):
            raise ConfigError(f"--doc-ids: {doc_id}: not a doc_id; it is the SHA-256 of the document's bytes")
    return Withdrawals.of(values)


def is_list(target: str) -> bool:
    """Return whether a target is the file of a list, not a store."""
    return target.endswith(".json") and not is_remote(target)


def extend_list(file: Path, asked: Withdrawals) -> Iterator[str]:
    """Add to the file of a list, which `ingest.withdrawn` takes, and yield lines about it."""
    known = read_withdrawals(str(file)) if file.exists() else None
    wanted = asked if known is None else known | asked
    write_file(file, wanted.to_bytes())
    yield f"{file}: {describe_counts(wanted)}"


def check_store(store: str) -> Versions:
    """Return the versions of a store.

    Raises:
        ConfigError: If it is the folder of a run, or there is none.
    """
    versions = Versions(store)
    versions.check_place()
    if not versions.names:
        raise ConfigError(f"{store}: no version of a dataset; give the --store of `cppmill retokenize`, or FILE.json")
    return versions


def record(store: str, asked: Withdrawals, *, copies: bool) -> tuple[Withdrawals, list[str]]:
    """Add to the list of a store, and return what was added and lines about it; the store's next version obeys it.

    Args:
        store: The store.
        asked: What is withdrawn.
        copies: Withdraw the contents of the documents that are listed too, wherever else they lie.

    Raises:
        IntegrityError: If documents of the current version are missing or damaged.
        LockedError: If another run is at work in the store.
    """
    versions = check_store(store)
    with locked(versions.folder):
        if copies and versions.current is not None:
            with _naming_mend(store):
                asked |= Withdrawals.of({"doc_ids": listed_doc_ids(versions.out(versions.current), asked)})
        wanted = (known_withdrawals(versions) or Withdrawals()) | asked
        versions.folder.publish_bytes(WITHDRAWN, wanted.to_bytes())
        found = record_affected(versions, wanted)
        lines = [f"{versions.folder.where(WITHDRAWN)}: {describe_counts(wanted)}"]
        with _naming_mend(store):
            left = Withdrawals() if versions.current is None else unmatched(versions.out(versions.current), asked)
        if any(left.counts.values()):
            counts = describe_counts(left)
            logger.warning("no document of %s has these of what you named: %s", versions.current, counts)
    return asked, [*lines, *(holding.line for holding in found if holding.documents != 0)]


@contextmanager
def _naming_mend(store: str) -> Iterator[None]:
    """Say what to do where the current version is found damaged in the block."""
    try:
        yield
    except IntegrityError as error:
        raise IntegrityError(
            f"{error}; `cppmill retokenize SOURCE --store {store}` makes a whole version, then withdraw again"
        ) from error
