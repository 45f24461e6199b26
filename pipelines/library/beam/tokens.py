"""Rows of tokens: documents encoded, and written as Parquet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apache_beam as beam
import cppmill_core
import pyarrow as pa
from apache_beam.coders import RowCoder
from apache_beam.coders import registry as coder_registry
from cppmill_core.manifests import MANIFEST

from pipelines.library.beam.arguments import check_number, check_threads
from pipelines.library.beam.batches import ToBatches
from pipelines.library.beam.rows import TokenFile
from pipelines.library.commands import read_table
from pipelines.library.options import PlaceText, TokenizeKeys
from pipelines.library.places import check_place
from pipelines.stages.given import no_tokenizer
from schemas.digests import HEX_DIGEST
from schemas.errors import ConfigError
from schemas.options import TokenizeOptions
from transforms.records.versions import follow_current
from transforms.storage.folder import OutputFolder
from transforms.tokens.shards import facts_of
from transforms.tokens.token_files import Facts, encode_table, split_rows, write_rows
from transforms.tokens.tokenizer import load_pinned, manifest_digest, read_manifest

_READ_DIGEST = "the pipeline was made with {digest}; it changed since then: make the pipeline again"
_GIVEN_DIGEST = "Encode was given digest={digest}; give that of the tokenizer in this place, or the right place"


@dataclass(kw_only=True)
class Encode(beam.PTransform[beam.PCollection[Any], beam.PCollection[pa.RecordBatch]]):
    """Encode documents to token ids.

    In: batches or rows with `content` (text or bytes). The columns `project`, `path`, `platform_ids` and
    `platform_info` are passed on, if they are there; other columns are dropped. Out: `pyarrow.RecordBatch` with the
    schema of token shards, `tokens_schema`: doc_id (SHA-256 of the text), project, path, num_bytes, num_tokens,
    token_ids (list of uint16, or of uint32 above 65,536 ids), platform_ids, platform_info. The metadata of the schema
    names the tokenizer. The ids are the same as from `cppmill run` with this tokenizer.

    Workers receive the path and the digest of the tokenizer. Each loads it once, and refuses one with another digest.

    Args:
        tokenizer: Its directory, a path or a URL that every worker can read.
        digest: Its digest; needed only if the process that constructs the pipeline cannot read the tokenizer.
        tokenize: Options of tokenizing by their keys, as for `cppmill.run`: `{"bos": False}`.
        threads: Threads per worker.

    Raises:
        ConfigError: While you construct the pipeline, if there is no tokenizer, or for an option that cannot be used.
        IntegrityError: In a worker, if the tokenizer has another digest.
        BadInputError: In a worker, for documents without text.
    """

    tokenizer: PlaceText
    digest: str | None = None
    tokenize: TokenizeKeys = field(default_factory=TokenizeKeys)
    threads: int = 1

    def expand(self, documents: beam.PCollection[Any]) -> beam.PCollection[pa.RecordBatch]:
        """Send the place and the digest to the workers."""
        threads = check_threads(self.threads)
        if self.digest is not None and not (isinstance(self.digest, str) and HEX_DIGEST.fullmatch(self.digest)):
            raise ConfigError(f"digest = {self.digest!r}: not allowed; it takes a SHA-256 in lower-case digits")
        place = _open_place(self.tokenizer)
        digest = self.digest or _read_digest(place)
        options = read_table(TokenizeOptions, "tokenize", self.tokenize)
        otherwise = _GIVEN_DIGEST if self.digest else _READ_DIGEST
        encode = beam.ParDo(_EncodeFn(place, digest, otherwise, options, threads))
        encode = encode.with_output_types(pa.RecordBatch)
        encoded: beam.PCollection[pa.RecordBatch] = documents | "Batch" >> ToBatches() | "Encode" >> encode
        return encoded


class _EncodeFn(beam.DoFn):
    """Encodes batches with a tokenizer that each process loads once."""

    def __init__(
        self, place: OutputFolder, digest: str, otherwise: str, options: TokenizeOptions, threads: int
    ) -> None:
        self._place, self._digest, self._otherwise = place, digest, otherwise
        self._options, self._threads = options, threads
        self._tokenizer: cppmill_core.AnyTokenizer | None = None

    def process(self, documents: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield rows of tokens; the tokenizer is not loaded in `setup`, where an error makes Spark hang."""
        if self._tokenizer is None:
            self._tokenizer = load_pinned(self._place, self._digest, otherwise=self._otherwise)
        yield encode_table(documents, self._tokenizer, self._options, threads=self._threads)


@dataclass(kw_only=True)
class WriteTokens(beam.PTransform[beam.PCollection[Any], beam.PCollection[TokenFile]]):
    """Write rows of tokens as Parquet files with the columns of a token shard.

    In: the output of `Encode`; or, with `tokenizer`, rows with these columns. Out: a `TokenFile` for each file: path,
    sha256, num_bytes, documents, tokens.

    A file has the documents whose CRC-32 of `doc_id`, modulo `shards`, is its number, sorted by project, path and
    doc_id, so it has the same bytes on every runner. It is written under a temporary name, and published under a name
    with the SHA-256 of its bytes. A repeated attempt publishes the same file, so nothing is there twice.

    Args:
        out: The folder, or gs:// or s3://BUCKET/PREFIX; it must not contain files yet.
        shards: Number of files; a worker holds the rows of one in memory. Use one per 64 MB or so of text.
        tokenizer: The directory of the tokenizer, for rows that do not record which tokenizer made their ids.

    Raises:
        ConfigError: While you construct the pipeline, if the folder has files, or there is no tokenizer.
        IntegrityError: In a worker, if ids are of several tokenizers or not in the vocabulary.
        BadInputError: In a worker, if a column is missing, or nothing says which tokenizer the ids are of.
    """

    out: PlaceText
    shards: int = 1
    tokenizer: PlaceText | None = None

    def expand(self, rows: beam.PCollection[Any]) -> beam.PCollection[TokenFile]:
        """Split batches by shard, and write each shard."""
        out, shards = OutputFolder(check_place("out", self.out)), check_number("shards", self.shards)
        if Path(out.root).exists() and not Path(out.root).is_dir():
            raise ConfigError(f"out: {out.root} is no folder; give a folder without files")
        if found := next(iter(out.files()), None):
            raise ConfigError(f"out: {out.where(found)} is there; give a folder without files")
        facts = {} if self.tokenizer is None else _read_facts(_open_place(self.tokenizer))
        coder_registry.register_coder(TokenFile, RowCoder)
        split = beam.FlatMap(split_rows, shards=shards).with_output_types(tuple[int, pa.RecordBatch])
        written: beam.PCollection[TokenFile] = (
            rows
            | "Batch" >> ToBatches()
            | "Split" >> split
            | "Group" >> beam.GroupByKey()
            | "Write" >> beam.Map(write_shard, out=out, facts=facts).with_output_types(TokenFile)
        )
        return written


def write_shard(grouped: tuple[int, Iterable[pa.RecordBatch]], out: OutputFolder, facts: Facts) -> TokenFile:
    """Publish the rows of a shard."""
    shard, batches = grouped
    written = write_rows(shard, list(batches), out, facts)
    output = written.output
    return TokenFile(output.path, output.sha256, output.num_bytes, output.rows, written.tokens)


def _open_place(tokenizer: PlaceText) -> OutputFolder:
    return OutputFolder(follow_current(check_place("tokenizer", tokenizer)))


def _read_digest(place: OutputFolder) -> str:
    """Return the digest of a tokenizer; ConfigError if there is none."""
    try:
        digest = manifest_digest(place, MANIFEST)
    except OSError as error:
        raise ConfigError(f"tokenizer: {place.root}: cannot be read ({error.strerror or error})") from error
    if not digest:
        raise no_tokenizer(place.root)
    return digest


def _read_facts(place: OutputFolder) -> Facts:
    """Return what the footers of all files of a tokenizer have in common."""
    digest = _read_digest(place)
    return facts_of(digest, int(read_manifest(place, MANIFEST)["vocab_size"]))
