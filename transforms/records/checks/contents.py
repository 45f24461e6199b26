"""Whether documents are what a run says of them: content by its digest, and ids by encoding a sample again.

Decoding proves that ids stand for the bytes of a document; there are many such ids. Only encoding again shows that they
are those that the tokenizer gives. The sample is chosen by the digests of contents, so it is the same for everyone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.util import find_spec
from typing import Any

import cppmill_core
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from schemas.digests import HEX_DIGEST, choose_share
from schemas.licenses import PACKAGE
from schemas.options import FIND_LICENSES, IngestOptions, alters_content
from schemas.reasons import Column
from schemas.tables import LICENSE_SOURCE, LICENSE_SOURCES, NO_EVIDENCE, REDACTED_COLUMNS, SOURCE_DOC_ID
from transforms.filters.license_texts import HEAD_BYTES
from transforms.filters.licenses import find_tags, names_license
from transforms.filters.redaction import WORDS
from transforms.filters.verdicts import ContentFilter, make_content_filter
from transforms.sources.wide_text import wide_forms
from transforms.storage.footers import check_footer
from transforms.storage.folder import naming_damage
from transforms.tokens.shards import take_rows
from transforms.tokens.tokenize import encode_documents
from transforms.tokens.tokenizer import TokenizeSettings, open_tokenizer
from transforms.units.batches import list_column, read_row_groups

Detect = Callable[[pa.RecordBatch], pa.RecordBatch]
_BY_CONTENT = (
    *("max_document_bytes", "drop_binary", "drop_generated"),
    *("max_line_bytes", "min_unique_line_ratio", "drop_minified"),
)
"""Options of filters that decide by a document's bytes alone, whatever is installed."""

_BY_LICENSE = ("allowed_licenses", "unlicensed", "find_licenses")
"""Options of the filter that decides by a document's licence, and needs a library."""


@dataclass(kw_only=True)
class ContentCheck:
    """Checks the documents shard of a token shard.

    Attributes:
        settings: Tokenizer and policy.
        ingest: The options of ingest that the receipt records.
        reencode: The part of the documents to encode again, 0 to 1; above 0 at least one of a shard.
        filters: What would have dropped a document, looked at for the same part; None for runs of other versions.
        detect: Finds platforms, as of `write_documents`, for the same part; None if they cannot be found again.
        control_text: How often the text of each control token occurs, counted by `check`.
    """

    settings: TokenizeSettings
    ingest: Mapping[str, Any]
    reencode: float
    filters: ContentFilter | None = None
    detect: Detect | None = None
    control_text: Counter[str] = field(default_factory=Counter)

    def check(self, shard: str, documents: str) -> Iterator[str]:
        """Yield what is wrong with a shard's documents and their ids.

        Args:
            shard: The token shard, relative to OUT, whose rows are those of the documents shard.
            documents: The documents shard.
        """
        out, where = self.settings.out, self.settings.out.where(documents)
        tokenizer = open_tokenizer(self.settings)
        with (
            naming_damage(where),
            out.open_local(documents) as path,
            pq.ParquetFile(path) as sources,
            out.open_local(shard) as beside,
            pq.ParquetFile(beside) as tokens,
        ):
            yield from check_footer(path, sources, where)
            yield from check_footer(beside, tokens, out.where(shard))
            chosen, start = self._choose(sources), 0
            for rows in read_row_groups(sources):
                yield from self._check_rows(rows, f"{where}, from row {start}")
                self.control_text.update(tokenizer.count_control(rows.column("content")))
                inside = chosen[(chosen >= start) & (chosen < start + rows.num_rows)]
                if len(inside):
                    picked = rows.take(inside - start)
                    again = encode_documents(picked, tokenizer, self.settings.options, threads=self.settings.threads)
                    yield from _compare(again, take_rows(tokens, inside), inside, out.where(shard))
                    yield from self._check_filters(picked, where)
                    yield from self._check_platforms(picked, where)
                start += rows.num_rows

    def _choose(self, sources: pq.ParquetFile) -> npt.NDArray[np.int64]:
        """Return the rows to encode again."""
        ids: list[Any] = sources.read(columns=["doc_id"]).column("doc_id").to_pylist()
        return np.array(choose_share(ids, self.reencode), np.int64)

    def _check_rows(self, rows: pa.RecordBatch, where: str) -> Iterator[str]:
        content: Any = rows.column("content")  # the stubs know no binary columns of a batch
        digests: list[Any] = cppmill_core.digest_contents(content, self.settings.threads).column("doc_id").to_pylist()
        sizes: list[Any] = pc.binary_length(content).to_pylist()
        named = zip(*(rows.column(name).to_pylist() for name in ("path", "doc_id", "num_bytes")), strict=True)
        for found, size, (path, doc_id, num_bytes) in zip(digests, sizes, named, strict=True):
            if (found, size) != (doc_id, num_bytes):
                said = f"{num_bytes} and {doc_id}"
                yield f"{where}: {path} has {size} bytes of content with SHA-256 {found}, not {said}"
            if num_bytes > self.ingest["max_document_bytes"]:
                yield f"{where}: {path} has {num_bytes} bytes, the options allow {self.ingest['max_document_bytes']}"
        yield from self._check_licenses(rows, where)
        if not self.ingest["detect_platforms"] and _has_platforms(rows):
            yield f"{where}: there are platforms, and by the options none were searched for"
        yield from self._check_sources(rows, where)

    def _check_licenses(self, rows: pa.RecordBatch, where: str) -> Iterator[str]:
        """Check where licences are said to be from: a place that the options name; a tag is in the document."""
        has_column, finds = self.ingest.get("license_column") is not None, self.ingest.get("find_licenses")
        licenses: list[Any] = rows.column("license").to_pylist()
        if not finds:
            if not has_column and any(name is not None for name in licenses):
                yield f"{where}: there are licences, and by the options no column was read for them"
            return
        places = {"none", *LICENSE_SOURCES[1 : 2 + FIND_LICENSES.index(finds)], *(["source"] if has_column else [])}
        content, paths = rows.column("content"), rows.column("path")
        for row, (name, source) in enumerate(zip(licenses, rows.column(LICENSE_SOURCE.name).to_pylist(), strict=True)):
            if source not in places or (source == "none") != (name is None):
                yield f"{where}: {paths[row]} has the licence {name!r} from {source!r}, which the options do not give"
            elif source != "source":
                tag = find_tags(bytes(memoryview(content[row].as_buffer())[:HEAD_BYTES]))
                if (source == "tag") != names_license(tag) or (source == "tag" and name != tag):
                    yield f"{where}: {paths[row]} has the licence {name!r} from {source!r}, and its tags say {tag!r}"

    def _check_filters(self, rows: pa.RecordBatch, where: str) -> Iterator[str]:
        """Yield the documents that the options would have dropped by their content."""
        if self.filters is None:
            return
        columns = (rows.column(name).to_pylist() for name in ("path", "content", "license"))
        for path, content, name in zip(*columns, strict=True):
            column, reason, _ = self.filters(content, name)
            if column != Column.KEPT:
                yield f"{where}: {path} is kept, and by the options it is {column} {reason}".rstrip()

    def _check_platforms(self, rows: pa.RecordBatch, where: str) -> Iterator[str]:
        """Yield the documents whose platforms are not those that are found."""
        if self.detect is None:
            return
        found = self.detect(rows.select(["path", "content"]))
        for name in found.schema.names:
            pairs = zip(rows.column(name).to_pylist(), found.column(name).to_pylist(), strict=True)
            for path, (said, again) in zip(rows.column("path").to_pylist(), pairs, strict=True):
                if said != again:
                    yield f"{where}: {path} has {name} {said}, and its content gives {again}"

    def _check_sources(self, rows: pa.RecordBatch, where: str) -> Iterator[str]:
        """Check the digests of what was altered: they are there only if an option alters content, and are others."""
        has_sources = "source_doc_id" in rows.schema.names
        if has_sources != alters_content(self.ingest):
            said = "content is altered" if alters_content(self.ingest) else "no content is altered"
            yield f"{where}: by the options {said}, and source_doc_id {'is' if has_sources else 'is not'} there"
        elif has_sources:
            named = zip(*(rows.column(name).to_pylist() for name in ("path", "doc_id", "source_doc_id")), strict=True)
            for path, doc_id, source in named:
                if source is not None and (source == doc_id or not HEX_DIGEST.fullmatch(source)):
                    yield f"{where}: {path} has source_doc_id {source!r}, which is no SHA-256 of other bytes"
            yield from self._check_altered(rows, where)

    def _check_altered(self, rows: pa.RecordBatch, where: str) -> Iterator[str]:
        """Check that documents were altered as it is said: converted from wide text, or redacted in so many places."""
        kinds, redact = tuple(WORDS.items()), self.ingest.get("redact") or ()
        has_words = self.ingest.get("redact_with", "words") == "words"
        nothing = [0] * rows.num_rows
        columns = [
            rows.column(field.name).to_pylist() if redact and field.name in rows.schema.names else nothing
            for field in REDACTED_COLUMNS
        ]
        content, paths, sources = (rows.column(name) for name in ("content", "path", SOURCE_DOC_ID))
        for row, counts in enumerate(zip(*columns, strict=True)):
            source = sources[row].as_py()
            if source is None and not any(counts):
                continue
            text = content[row].as_py()
            if not any(counts) and source not in self._wide_digests(text):
                yield f"{where}: {paths[row]} has source_doc_id {source!r}, of no text that could be converted to it"
            for (kind, word), number in zip(kinds, counts, strict=True):
                if number and kind not in redact:
                    yield f"{where}: {paths[row]} has {number} places of {kind}, which the options do not redact"
                elif number and has_words and source is None and kind != "secret":
                    yield f"{where}: {paths[row]} has {number} places of {kind}, and no source_doc_id"
                elif number and has_words and self.filters is not None and text.count(word) < number:
                    yield f"{where}: {paths[row]} has {number} places of {kind}, and its content does not"

    def _wide_digests(self, text: bytes) -> set[str]:
        """Return the digests of the wide texts that are converted to a text; none if no text is converted."""
        forms = wide_forms(text) if self.ingest.get("convert_wide_text") else ()
        return {sha256(form).hexdigest() for form in forms}


def is_repeatable(receipt: Mapping[str, Any]) -> bool:
    """Return whether the installed version decides about documents as the run did: altered ones as they are kept."""
    return bool(receipt["code"].get("cppmill-core") == cppmill_core.__version__)


def filters_of(receipt: Mapping[str, Any]) -> ContentFilter | None:
    """Return the filters of a run that need just a document's content and licence; None if they cannot be looked at."""
    ingest = receipt["configs"]["ingest"]
    if not is_repeatable(receipt):
        return None
    names = (*_BY_CONTENT, *(_BY_LICENSE if find_spec(PACKAGE.replace("-", "_")) else ()))
    return make_content_filter(IngestOptions.model_validate({k: v for k, v in ingest.items() if k in names}))


def _has_platforms(rows: pa.RecordBatch) -> bool:
    """Return whether a document has platforms, or evidence of some."""
    ids, evidence = list_column(rows, "platform_ids").flatten(), rows.column("platform_info").to_pylist()
    return len(ids) > 0 or any(found != NO_EVIDENCE for found in evidence)


def _compare(again: pa.RecordBatch, written: pa.Table, numbers: npt.NDArray[np.int64], where: str) -> Iterator[str]:
    """Yield the rows whose ids, written, are not those that encoding again gives."""
    for name in ("token_ids", "num_tokens", "prefix_token_ids"):
        if name not in again.schema.names:
            continue
        found, expected = written.column(name).combine_chunks(), again.column(name)
        if not found.equals(expected):
            rows = [int(numbers[row]) for row in range(len(numbers)) if found[row] != expected[row]]
            yield f"{where}: encoded again, {name} of rows {', '.join(map(str, rows[:3]))} differ ({len(rows)} in all)"
