"""The filters on a document's content: which ledger column and reason a document gets.

They apply in the order of the enum of reasons, and the first match counts; what can be decided by name and listed size
(extension, sample, limit, the size of unread files) is decided earlier, in `input_units` and the readers. Duplicates
are chosen afterwards, among the documents that pass here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from schemas.errors import PluginError
from schemas.options import IngestOptions
from schemas.plugins.entry_points import (
    FILTERS_GROUP,
    READERS_GROUP,
    Find,
    describe_filter,
    find_filter,
    find_reader,
    plugin_code,
)
from schemas.reasons import Column, Filtered
from schemas.tables import FILTER_INPUT
from transforms.filters.decontamination import Benchmark
from transforms.filters.license_texts import found_licenses_version
from transforms.filters.redaction import REDACTION
from transforms.sources.batches import is_equal, to_batch
from transforms.sources.document import Document

_MOST_DETAIL = 4096
"""The most characters of what a filter says of a document."""

_VERSION_KEYS = {str(Filtered.LICENSE): "licenses"}
"""The keys of versions that had a name before filters had entry points."""


class Verdict(NamedTuple):
    """The ledger's column, the reason within it, and a few words for people."""

    column: Column
    reason: str = ""
    detail: str = ""


KEPT = Verdict(Column.KEPT)


@dataclass(frozen=True, kw_only=True)
class ContentFilter:
    """All filters on content in one; made once per worker.

    Attributes:
        max_bytes: Larger documents are dropped.
        drop_binary: Whether documents with a NUL byte are.
        finders: The filters that read the text, by name, in order.
    """

    max_bytes: int
    drop_binary: bool
    finders: Mapping[str, Find]

    @property
    def reads_text(self) -> bool:
        """Whether digest, size and NUL bytes of a document are not enough to decide about it."""
        return bool(self.finders)

    def __call__(self, content: bytes, license_name: str | None) -> Verdict:
        """Return what becomes of a document, by its bytes and the licence that its source names."""
        document = Document("", "", len(content), content, license=license_name)
        return dict(self.judge(to_batch([document], keep=True))).get(0, KEPT)

    def judge(self, documents: pa.RecordBatch) -> Iterator[tuple[int, Verdict]]:
        """Yield row and verdict of the documents that are not kept, among those of a batch that were looked at.

        Args:
            documents: A batch of READ, or of READ_DIGESTS if no filter reads the text.
        """
        num_bytes = documents.column("num_bytes").to_numpy()
        has_nul, is_wide = (documents.column(name).to_numpy(zero_copy_only=False) for name in ("has_nul", "is_wide"))
        looked_at = ~is_equal(documents.column("doc_id"), "")
        dropped = looked_at & ((num_bytes == 0) | (num_bytes > self.max_bytes) | (has_nul & self.drop_binary))
        for row in np.flatnonzero(dropped).tolist():
            yield row, self._by_bytes(int(num_bytes[row]), bool(is_wide[row]))
        if self.reads_text:
            yield from self._by_text(documents, np.flatnonzero(looked_at & ~dropped))

    def _by_bytes(self, num_bytes: int, is_wide: bool) -> Verdict:
        """Return why a document is dropped by its size or its NUL bytes."""
        if not num_bytes:
            return Verdict(Column.EMPTY)
        if num_bytes > self.max_bytes:
            return Verdict(Column.FILTERED, Filtered.SIZE)
        return Verdict(Column.FILTERED, Filtered.WIDE_TEXT if is_wide else Filtered.BINARY)

    def _by_text(self, documents: pa.RecordBatch, rows: npt.NDArray[np.intp]) -> Iterator[tuple[int, Verdict]]:
        """Yield what the filters on text drop of some rows of a batch; each sees what those before it left."""
        left = _filter_input(documents, rows)
        for name, find in self.finders.items():
            details = find_details(name, find, left)
            is_dropped = pc.is_valid(details).to_numpy(zero_copy_only=False)
            if is_dropped.any():
                words: list[Any] = details.drop_null().to_pylist()
                for row, detail in zip(rows[is_dropped].tolist(), words, strict=True):
                    yield row, Verdict(Column.FILTERED, name, detail)
                rows, left = rows[~is_dropped], left.filter(pa.array(~is_dropped))


def _filter_input(documents: pa.RecordBatch, rows: npt.NDArray[np.intp]) -> pa.RecordBatch:
    """Return rows of a batch of READ as a batch of FILTER_INPUT."""
    columns: dict[str, Any] = {name: documents.column(name) for name in FILTER_INPUT.names}
    is_named = pc.fill_null(pc.not_equal(columns["license"], pa.scalar("")), pa.scalar(False))
    columns["license"] = pc.if_else(is_named, columns["license"], documents.column("terms"))
    found = pa.RecordBatch.from_arrays(list(columns.values()), schema=FILTER_INPUT)
    return found if len(rows) == documents.num_rows else found.take(rows)


def find_details(name: str, find: Find, documents: pa.RecordBatch) -> pa.Array[Any]:
    """Return what a filter says of each document of a batch of FILTER_INPUT: a text, or null for what is kept.

    Raises:
        PluginError: If the filter raises, or does not say it of each document; it names filter and documents.
    """
    if not documents.num_rows:
        return pa.array([], pa.string())
    with plugin_code(lambda: _place(name, documents)):
        found = find(documents)
        if isinstance(found, pa.Array):
            found.validate(full=True)
            details = pa.array(found, pa.string())
        else:  # one that never ends would take all memory
            details = pa.array(islice(found, documents.num_rows + 1), pa.string())
    if len(details) != documents.num_rows:
        number = "more" if len(details) > documents.num_rows else len(details)
        raise PluginError(f"{_place(name, documents)}: it returned {number} values")
    return pc.utf8_slice_codeunits(details, 0, _MOST_DETAIL)


def _place(name: str, documents: pa.RecordBatch) -> str:
    """Return which filter failed on which documents."""
    first = " ".join(str(documents.column(column)[0]) for column in ("project", "path"))
    return f"{describe_filter(name)}, on {documents.num_rows} documents from {first} on"


def make_content_filter(options: IngestOptions, benchmark: Benchmark | None = None) -> ContentFilter:
    r"""Return the filters that are on, as one.

    Raises:
        ConfigError: If a filter is not installed, refuses its options, or needs a library that is not installed.
        PluginError: If a filter cannot be imported.

    Example:
        >>> make_content_filter(IngestOptions())(b"int a;\0", None).reason
        <Filtered.BINARY: 'binary'>
    """
    return ContentFilter(
        max_bytes=options.max_document_bytes,
        drop_binary=options.drop_binary,
        finders={name: _make(name, table) for name, table in _chosen(options, benchmark)},
    )


def _make(name: str, table: Mapping[str, Any]) -> Find:
    found = find_filter(name)
    with plugin_code(lambda: f"{describe_filter(name)}: it cannot start"):
        return found.make(found.read_options(name, table))


def filter_versions(options: IngestOptions, benchmark: Benchmark | None) -> dict[str, str]:
    """Return what decides in the filters that are on, besides options: their versions, those of libraries, a benchmark.

    Raises:
        ConfigError: If a filter is not installed.
    """
    versions = _versions(name for name, _ in _chosen(options, benchmark))
    if benchmark is not None:
        versions["benchmark"] = benchmark.digest
    if options.redact:
        versions["redaction"] = REDACTION
    if options.find_licenses:
        versions["found_licenses"] = found_licenses_version(options.find_licenses)
    if "secret" in options.redact:
        versions |= find_filter(Filtered.SECRET).versions()
    return versions


def plugin_versions(options: IngestOptions) -> dict[str, str]:
    """Return the versions of the filters and readers of other distributions, and of what decides in the filters."""
    readers = {f"{READERS_GROUP}:{name}": find_reader(name).version for name in options.readers}
    return _versions(options.filters) | readers


def _versions(names: Iterable[str]) -> dict[str, str]:
    versions = dict[str, str]()
    for name in names:
        found = find_filter(name)
        versions |= found.versions()
        if found.version:
            versions[_VERSION_KEYS.get(name, f"{FILTERS_GROUP}:{name}")] = found.version
    return versions


def _chosen(options: IngestOptions, benchmark: Benchmark | None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the filters on text that are on with their options, in order: those of cppmill, then the others by name."""
    if options.drop_generated:
        yield Filtered.GENERATED, {}
    if options.max_line_bytes is not None:
        yield Filtered.LONG_LINES, {"longest": options.max_line_bytes}
    if options.min_unique_line_ratio is not None:
        yield Filtered.UNIQUE_LINES, {"least": options.min_unique_line_ratio}
    if options.allowed_licenses:
        found = options.find_licenses is not None
        yield (
            Filtered.LICENSE,
            {"allowed_licenses": options.allowed_licenses, "unlicensed": options.unlicensed, "are_found": found},
        )
    if options.drop_minified:
        yield Filtered.MINIFIED, {}
    if options.drop_secrets:
        yield Filtered.SECRET, {}
    if benchmark is not None:
        yield Filtered.CONTAMINATED, {"benchmark": benchmark, "least": options.decontaminate_min_ngrams}
    yield from sorted(options.filters.items())
