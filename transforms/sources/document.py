"""What every reader of ingest yields: one `Document` per file, member or row, with its names.

No reader holds an archive in memory; only the content of the current document. Nothing is ever written under a name
from an archive.
"""

from __future__ import annotations

import hashlib
import posixpath
import time
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple
from urllib.parse import quote_from_bytes, unquote_to_bytes

from schemas.digests import path_fraction
from schemas.logs import module_logger
from schemas.options import DEFAULT_CONTENT_COLUMN, IngestOptions
from schemas.reasons import REASONS, Column, Dead, Filtered

logger = module_logger(__name__)

TEXT = "text"
"""The column that a text is in where nothing says otherwise, and there is no `content`."""

MAX_NAME_BYTES = 4096
"""Longer paths are cut in the middle, with a hash in place of what was cut."""

_DENSE_EXPANSION = 100
"""How many times its size an archive may grow whatever its size; sources are compressed to a twentieth at best."""

_ARCHIVE_FLOOR_BYTES = 1 << 30
_ROW_OVERHEAD_BYTES = 64
_BYTES_PER_SECOND = 100_000
_ROWS_FLOOR = 1 << 18
"""Any file may have so many rows; a longer table takes a byte of its file for each, even if most say the same."""
_MAX_LABEL_BYTES = 256
_NAMING_OPTIONS = ("path_column", "project_column", "license_column")
_warned = set[tuple[str, str]]()
"""Options and columns of which was said that a file has no such column; others would say the same."""


class Document(NamedTuple):
    """One document, or the ledger's entry in its place.

    Attributes:
        project: The project, UTF-8.
        path: The path, UTF-8.
        num_bytes: Its size; of damaged input, the bytes that were read.
        content: The exact bytes; None if they are not looked at (`column` and `reason` then say why).
        column: The ledger's column; `kept` while the content filters are still to come.
        reason: The reason within the column.
        detail: A few words on the reason, for people; nothing that differs from machine to machine.
        license: The licence that the source names.
        terms: The licences that it gives as something other than text, for the filter alone.
    """

    project: str
    path: str
    num_bytes: int
    content: bytes | None
    column: Column = Column.KEPT
    reason: str = ""
    detail: str = ""
    license: str | None = None
    terms: str | None = None

    @property
    def named_license(self) -> str | None:
        """What the source says about the licence, in whatever form."""
        return self.license or self.terms


class DamageError(Exception):
    """Damage that ends the reading of an archive and cuts no member; becomes one dead document."""

    def __init__(self, reason: Dead, detail: str) -> None:
        """Keep the ledger's reason and a few words."""
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


@dataclass
class Archive:
    """One archive, Parquet or JSONL file while it is read: its names, its limits, and what was left alone in it.

    Attributes:
        path: Its path relative to the source; surrogate escapes allowed.
        num_bytes: Its size.
        project: The project of its documents: its stem.
        options: The options of ingest.
        is_timed: Whether it may take only so long to read.
    """

    path: str
    num_bytes: int
    project: str
    options: IngestOptions
    is_timed: bool = True
    _started: float = field(default_factory=lambda: time.monotonic(), init=False)
    _grown_bytes: int = field(default=0, init=False)
    _rows: int = field(default=0, init=False)
    _links: int = field(default=0, init=False)

    def with_text_column(self, columns: Mapping[str, bool]) -> Archive:
        """Return it with the column that its text is in.

        That is the one that the options name. If they name none, and there is neither a `content` nor a path, it is
        `text`, or else the only column of text that is not said to be something else.

        Args:
            columns: Whether each column holds text, by name.
        """
        options = self.options
        if options.content_column in columns or options.content_column != DEFAULT_CONTENT_COLUMN:
            return self
        if options.path_column in columns:
            return self  # rows with paths are files, whose content has a name
        others = (options.project_column, options.license_column)
        texts = [name for name, is_text in columns.items() if is_text and name not in others]
        found = [TEXT] if TEXT in columns else texts
        if len(found) != 1:
            return self
        logger.info("%s: the text is in %r", display_path(self.path), found[0])
        return replace(self, options=options.model_copy(update={"content_column": found[0]}))

    @property
    def max_grown_bytes(self) -> int:
        """The size to which it may expand."""
        most = max(self.options.max_expansion * self.num_bytes, _ARCHIVE_FLOOR_BYTES)
        return min(most, max(_DENSE_EXPANSION * self.num_bytes, self.options.max_dense_bytes))

    def grow(self, num_bytes: int) -> None:
        """Count bytes that came out of it.

        Raises:
            DamageError: When they are more than an honest archive holds.
        """
        self._grown_bytes += num_bytes
        if self._grown_bytes > self.max_grown_bytes:
            raise DamageError(Dead.EXPANSION, f"expands to more than {self.max_grown_bytes} bytes")

    def grow_row(self, num_bytes: int = 0) -> None:
        """Count the bytes of a row of a table, whose bookkeeping costs something even if it is empty.

        Raises:
            DamageError: When there is more in the rows than an honest file holds.
        """
        self.grow(num_bytes + _ROW_OVERHEAD_BYTES)

    @property
    def rows_left(self) -> int:
        """How many rows there may still be."""
        return max(self.options.max_rows_per_byte * self.num_bytes, _ROWS_FLOOR) - self._rows

    def count_row(self, rows: int = 1) -> None:
        """Count a row, line or member, or several that are left, whether they become documents or not.

        Raises:
            DamageError: When there are more than an honest file holds, or reading them took too long.
        """
        self._rows += rows
        if self.rows_left < 0:
            raise DamageError(Dead.EXPANSION, f"more than {self._rows - 1} rows in {self.num_bytes} bytes")
        if self.is_timed and time.monotonic() - self._started > self.max_seconds:
            raise self.timeout

    @property
    def max_seconds(self) -> int:
        """How long it may take to read."""
        return self.options.max_input_seconds + self.num_bytes // _BYTES_PER_SECOND

    @property
    def timeout(self) -> DamageError:
        """What ends it when that is over."""
        return DamageError(Dead.TIMEOUT, f"takes more than {self.max_seconds} seconds to read")

    def document(
        self,
        member: str,
        content: bytes,
        *,
        project: str | None = None,
        license_name: str | None = None,
        terms: str | None = None,
    ) -> Document:
        """Return a member that was read whole."""
        name = self.name(member)
        return Document(project or self.project, name, len(content), content, license=license_name, terms=terms)

    def dead(self, member: str, reason: Dead, detail: str, *, num_bytes: int) -> Document:
        """Return the entry of a member that could not be used."""
        return Document(self.project, self.name(member), num_bytes, None, Column.DEAD, reason, detail)

    def entry(self, reason: str, detail: str, *, num_bytes: int = 0) -> Document:
        """Return an entry for the archive itself: damage to it, or where reading ended."""
        return Document(self.project, display_path(self.path), num_bytes, None, column_of(reason), reason, detail)

    def filtered(self, member: str, reason: Filtered, num_bytes: int, *, detail: str = "") -> Document:
        """Return the entry of a member that a filter drops by its name or size, unread."""
        return Document(self.project, self.name(member), num_bytes, None, Column.FILTERED, reason, detail)

    def name(self, member: str) -> str:
        """Return the path of a member: archive name / member."""
        return display_path(f"{self.path}/{normalise(member)}")

    def drops(self, member: str, *, has_extension: bool = True) -> Filtered | None:
        """Return the filter that drops a member by its name alone, if any.

        Args:
            member: The member's name as the archive gives it.
            has_extension: False for rows without a path, which have no extension to look at.
        """
        if has_extension and not accepts_extension(member, self.options):
            return Filtered.EXTENSION
        if self.options.sample >= 1.0:
            return None  # most runs take all, and a name takes as long as the rest of a short document
        return None if in_sample(self.name(member), self.options.sample) else Filtered.SAMPLE

    def leave_alone(self, member: str, find_target: Callable[[], str | None]) -> None:
        """Count a link or special file.

        Args:
            member: Its name as the archive gives it.
            find_target: Returns the name of the member that a link leads to; None if that is outside, or for no link.
        """
        self._links += 1

    def warn_of_missing(self, columns: Container[str]) -> None:
        """Say which columns that options name are not there, the first time in this process.

        Args:
            columns: The columns with text, or what may stand in its place.
        """
        for option in _NAMING_OPTIONS:
            column = getattr(self.options, option)
            is_named = column != IngestOptions.model_fields[option].default
            if is_named and column not in columns and (option, column) not in _warned:
                _warned.add((option, column))
                said = display_path(self.path), column, option
                logger.warning("%s: there is no text in a column %r, which ingest.%s names", *said)

    def log(self) -> None:
        """Say what was left alone."""
        if self._links:
            logger.info("%s: %d links and special files left alone", display_path(self.path), self._links)


def missing_column(name: str, columns: Iterable[str]) -> str:
    """Return what is said of a table without the column of the text.

    Example:
        >>> missing_column("content", ["id", "body"])
        "no 'content'; name the text's with --content-column: id, body"
    """
    found = ", ".join(columns).encode("utf-8", "replace").decode()  # names in JSON may be no Unicode
    return f"no {name!r}; name the text's with --content-column: {found}"


def column_of(reason: str) -> Column:
    """Return the ledger's column that a reason belongs to."""
    return Column.DEAD if reason in REASONS[Column.DEAD] else Column.FILTERED


def accepts_extension(path: str, options: IngestOptions) -> bool:
    """Return whether a path ends in one of the accepted extensions, without regard to case.

    Example:
        >>> accepts_extension("a/B.CPP", IngestOptions()), accepts_extension("a.cpp/README", IngestOptions())
        (True, False)
    """
    stem, dot, extension = path.rpartition("/")[2].rpartition(".")
    return bool(dot) and extension.lower() in options.extensions


def in_sample(path: str, share: float) -> bool:
    """Return whether a document is in a sample, by a hash of its path that has nothing to do with where units end."""
    return share >= 1.0 or path_fraction(f"sample\0{path}") < share


def link_target(path: str, target: str) -> str | None:
    """Return the path that a symbolic link leads to, by its text, within the folder that paths are relative to.

    Args:
        path: The path of the link.
        target: What it holds.

    Returns:
        The path; None if it leads out.

    Example:
        >>> link_target("p/a/LICENSE", "../LICENSE"), link_target("p/LICENSE", "../../x"), link_target("p", "/x")
        ('p/LICENSE', None, None)
    """
    found = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    return None if found.startswith(("/", "../")) or found == ".." else found


def normalise(name: str) -> str:
    """Return a member's name without root, `.` and `..`.

    Example:
        >>> normalise("../../escaped.cpp"), normalise("/abs//./x.cpp"), normalise("..")
        ('escaped.cpp', 'abs/x.cpp', '_')
    """
    if "/" not in name:
        return "_" if name in ("", ".", "..") else name
    return "/".join(part for part in name.split("/") if part not in ("", ".", "..")) or "_"


def display_path(path: str) -> str:
    r"""Return a path as UTF-8 text: percent-encoded whole if it is not UTF-8 or has a NUL, and bounded in length.

    A path that is already the percent-encoded form of such a path is encoded once more, so no two paths have one text.

    Args:
        path: A path; bytes that are not UTF-8 are surrogate escapes.

    Example:
        >>> display_path("a/b.cpp"), display_path("lat\udce9 n.cpp"), display_path("lat%E9%20n.cpp")
        ('a/b.cpp', 'lat%E9%20n.cpp', 'lat%25E9%2520n.cpp')
    """
    if path.isascii() and "\0" not in path and "%" not in path and len(path) <= MAX_NAME_BYTES:
        return path  # most are
    raw = raw_path(path)
    return bounded(quote_from_bytes(raw) if _is_encoded(raw) else raw.decode("utf-8"), MAX_NAME_BYTES)


def _is_encoded(raw: bytes) -> bool:
    """Return whether a path is shown percent-encoded: it is no text, or what another path is shown as."""
    while True:
        if b"\0" in raw or not is_utf8(raw):
            return True
        plain = unquote_to_bytes(raw)
        if plain == raw or quote_from_bytes(plain).encode() != raw:
            return False
        raw = plain


def is_utf8(raw: bytes) -> bool:
    """Return whether bytes are UTF-8."""
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def bounded(text: str, max_bytes: int) -> str:
    """Return text of at most `max_bytes` of UTF-8: what is longer keeps its ends, and a hash of the whole between."""
    raw = text.encode("utf-8")
    if len(raw) <= max_bytes:
        return text
    mark = f"~{hashlib.sha256(raw).hexdigest()[:16]}~"
    side = (max_bytes - len(mark)) // 2
    return raw[:side].decode("utf-8", "ignore") + mark + raw[-side:].decode("utf-8", "ignore")


def label(value: object) -> str | None:
    """Return a project's or licence's name as bounded UTF-8 text, None if it is not text."""
    if not isinstance(value, str) or not value:
        return None
    return bounded(value.encode("utf-8", "replace").decode("utf-8").replace("\0", ""), _MAX_LABEL_BYTES)


def raw_path(path: str) -> bytes:
    """Return the bytes of a path: UTF-8 with surrogate escapes, or with lone surrogates as JSON has them."""
    try:
        return path.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return path.encode("utf-8", "surrogatepass")
