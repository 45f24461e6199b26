"""The filters on a document's content: which ledger column and reason a document gets.

They apply in the order of the enum of reasons, and the first match counts; what can be decided by name and listed size
(extension, sample, limit, the size of unread files) is decided earlier, in `input_units` and the readers. Duplicates
are chosen afterwards, among the documents that pass here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.metadata import version
from typing import NamedTuple

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

_ORDER = {reason: place for place, reason in enumerate(Filtered)}

Finder = Callable[[bytes, str | None], str | None]


class Verdict(NamedTuple):
    """The ledger's column, the reason within it, and a few words for people."""

    column: Column
    reason: str = ""
    detail: str = ""


KEPT = Verdict(Column.KEPT)


ContentFilter = Callable[[bytes, str | None], Verdict]
"""All filters on content in one: takes a document's bytes and the licence that its source names."""


def make_content_filter(options: IngestOptions, benchmark: Benchmark | None = None) -> ContentFilter:
    r"""Return the filters that are on, as one; made once per worker.

    Raises:
        ConfigError: If a filter needs a library that is not installed.

    Example:
        >>> make_content_filter(IngestOptions())(b"int a;\0", None).reason
        <Filtered.BINARY: 'binary'>
    """
    finders = sorted(_finders(options, benchmark), key=lambda item: _ORDER[item[0]])

    def content_filter(content: bytes, license_name: str | None) -> Verdict:
        if not content:
            return Verdict(Column.EMPTY)
        for reason, find in finders:
            detail = find(content, license_name)
            if detail is not None:
                return Verdict(Column.FILTERED, reason, detail)
        return KEPT

    return content_filter


def filter_versions(options: IngestOptions, benchmark: Benchmark | None) -> dict[str, str]:
    """Return what decides in the filters that are on, besides options: versions of libraries, digest of a benchmark."""
    deciding = {licenses.PACKAGE: bool(options.allowed_licenses), secrets.PACKAGE: options.drop_secrets}
    versions = {package: version(package) for package, is_on in deciding.items() if is_on}
    if options.allowed_licenses:
        versions["licenses"] = READING
    return versions if benchmark is None else {**versions, "benchmark": benchmark.digest}


def _finders(options: IngestOptions, benchmark: Benchmark | None) -> Iterator[tuple[Filtered, Finder]]:
    """Yield the filters that are on: each says why a document is dropped, in a few words, or None if it is not."""
    yield Filtered.SIZE, lambda content, _: "" if len(content) > options.max_document_bytes else None
    if options.drop_binary:
        yield Filtered.BINARY, lambda content, _: "" if b"\0" in content else None
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
