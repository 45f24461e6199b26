"""The filters on a document's content: which ledger column and reason a document gets.

They apply in the order of the enum of reasons, and the first match counts; what can be decided by name and listed size
(extension, sample, limit, the size of unread files) is decided earlier, in `input_units` and the readers. Duplicates
are chosen afterwards, among the documents that pass here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from schemas import licenses
from schemas.options import IngestOptions
from schemas.reasons import Column, Filtered
from transforms.filters import secrets
from transforms.filters.decontamination import Benchmark, BenchmarkFilter
from transforms.filters.generated import find_generated
from transforms.filters.licenses import READING, AllowList
from transforms.filters.lines import find_long_line, find_repeated_lines
from transforms.filters.minified import find_minified
from transforms.filters.secrets import SecretDetectors
from transforms.sources.batches import is_equal
from transforms.sources.wide_text import WIDE_MARKS

_ORDER = {reason: place for place, reason in enumerate(Filtered)}

Finder = Callable[[bytes, str | None], str | None]


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
        finders: The filters that read the text, in order.
    """

    max_bytes: int
    drop_binary: bool
    finders: tuple[tuple[Filtered, Finder], ...]

    @property
    def reads_text(self) -> bool:
        """Whether digest, size and NUL bytes of a document are not enough to decide about it."""
        return bool(self.finders)

    def __call__(self, content: bytes, license_name: str | None) -> Verdict:
        """Return what becomes of a document, by its bytes and the licence that its source names."""
        has_nul = b"\0" in content
        is_wide = has_nul and content.startswith(WIDE_MARKS)
        return self._by_bytes(len(content), has_nul, is_wide) or self._by_text(content, license_name)

    def judge(self, documents: pa.RecordBatch) -> Iterator[tuple[int, Verdict]]:
        """Yield row and verdict of the documents that are not kept, among those of a batch that were looked at.

        Args:
            documents: A batch of READ, or of READ_DIGESTS if no filter reads the text.
        """
        num_bytes = documents.column("num_bytes").to_numpy()
        has_nul, is_wide = (documents.column(name).to_numpy(zero_copy_only=False) for name in ("has_nul", "is_wide"))
        judged = ~is_equal(documents.column("doc_id"), "")
        if not self.reads_text:
            judged &= (num_bytes == 0) | (num_bytes > self.max_bytes) | (has_nul & self.drop_binary)
        for row in np.flatnonzero(judged).tolist():
            verdict = self._by_bytes(int(num_bytes[row]), bool(has_nul[row]), bool(is_wide[row]))
            if verdict is None:
                license_name = documents.column("license")[row].as_py() or documents.column("terms")[row].as_py()
                verdict = self._by_text(documents.column("content")[row].as_py(), license_name)
            if verdict is not KEPT:
                yield row, verdict

    def _by_bytes(self, num_bytes: int, has_nul: bool, is_wide: bool) -> Verdict | None:
        if not num_bytes:
            return Verdict(Column.EMPTY)
        if num_bytes > self.max_bytes:
            return Verdict(Column.FILTERED, Filtered.SIZE)
        if not (has_nul and self.drop_binary):
            return None
        return Verdict(Column.FILTERED, Filtered.WIDE_TEXT if is_wide else Filtered.BINARY)

    def _by_text(self, content: bytes, license_name: str | None) -> Verdict:
        for reason, find in self.finders:
            detail = find(content, license_name)
            if detail is not None:
                return Verdict(Column.FILTERED, reason, detail)
        return KEPT


def make_content_filter(options: IngestOptions, benchmark: Benchmark | None = None) -> ContentFilter:
    r"""Return the filters that are on, as one.

    Raises:
        ConfigError: If a filter needs a library that is not installed.

    Example:
        >>> make_content_filter(IngestOptions())(b"int a;\0", None).reason
        <Filtered.BINARY: 'binary'>
    """
    return ContentFilter(
        max_bytes=options.max_document_bytes,
        drop_binary=options.drop_binary,
        finders=tuple(sorted(_finders(options, benchmark), key=lambda item: _ORDER[item[0]])),
    )


def filter_versions(options: IngestOptions, benchmark: Benchmark | None) -> dict[str, str]:
    """Return what decides in the filters that are on, besides options: versions of libraries, digest of a benchmark."""
    deciding = {licenses.PACKAGE: bool(options.allowed_licenses), secrets.PACKAGE: options.drop_secrets}
    versions = {package: version(package) for package, is_on in deciding.items() if is_on}
    if options.allowed_licenses:
        versions["licenses"] = READING
    return versions if benchmark is None else {**versions, "benchmark": benchmark.digest}


def _finders(options: IngestOptions, benchmark: Benchmark | None) -> Iterator[tuple[Filtered, Finder]]:
    """Yield the filters on text that are on: each says why a document is dropped, or None if it is not."""
    if options.drop_generated:
        yield Filtered.GENERATED, lambda content, _: find_generated(content)
    if (longest := options.max_line_bytes) is not None:
        yield Filtered.LONG_LINES, lambda content, _: find_long_line(content, longest)
    if (least := options.min_unique_line_ratio) is not None:
        yield Filtered.UNIQUE_LINES, lambda content, _: find_repeated_lines(content, least)
    if options.allowed_licenses:
        yield Filtered.LICENSE, AllowList(options.allowed_licenses, unlicensed=options.unlicensed).find_forbidden
    if options.drop_minified:
        yield Filtered.MINIFIED, lambda content, _: find_minified(content)
    if options.drop_secrets:
        detectors = SecretDetectors()
        yield Filtered.SECRET, lambda content, _: detectors.find_secret(content)
    if benchmark is not None:
        shared = BenchmarkFilter(benchmark, least=options.decontaminate_min_ngrams)
        yield Filtered.CONTAMINATED, lambda content, _: shared.find_contamination(content)
