"""The typed options of every stage, as they enter unit keys and the receipt.

They say what is made, never how fast or where: engine, threads and paths are not here. Each model refuses unknown
keys and is frozen; `model_dump(mode="json")` is its canonical form.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

MEBIBYTE = 1 << 20

DEFAULT_EXTENSIONS = (
    "c",
    "c++",
    "cc",
    "cpp",
    "cppm",
    "cu",
    "cuh",
    "cxx",
    "h",
    "h++",
    "hh",
    "hip",
    "hpp",
    "hxx",
    "inl",
    "ipp",
    "ixx",
    "tcc",
    "tpp",
    "txx",
)
"""Extensions of C++ source, without regard to case."""

DistinctiveShape = Literal["double_underscore", "screaming_case", "api_prefix", "compound"]
"""What can make a name distinctive (`tokenizer_build.shapes`)."""

DISTINCTIVE_SHAPES: tuple[DistinctiveShape, ...] = ("double_underscore", "screaming_case", "api_prefix", "compound")
"""All of them."""

Unlicensed = Literal["drop", "keep"]
"""What becomes of documents that tell no licence where there is an allow-list."""

VocabularyKind = Literal["bpe", "sentencepiece-bpe", "sentencepiece-unigram"]
"""What a build learns."""

NEAR_DUPLICATE_OPTIONS = ("near_duplicate_similarity", "near_duplicate_tokens", "near_duplicate_permutations")
"""The options of ingest that decide which near-duplicates are dropped, and nothing that a reader finds."""

Fraction = Annotated[float, Field(ge=0.0, le=1.0)]


MAX_JSON_INTEGER = (1 << 53) - 1
"""The largest number that canonical JSON (RFC 8785) keeps exact; options are part of unit keys and receipts."""


class Options(BaseModel):
    """Base of the options: frozen, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def to_json(self) -> dict[str, Any]:
        """Return the options as JSON values."""
        return self.model_dump(mode="json")


BENCHMARK_DIGEST = "sha256:"
"""What the digest of a benchmark begins with that stands in a receipt in place of its paths."""


class IngestOptions(Options):
    """What ingest reads and which filters are on.

    The filters from `allowed_licenses` to `decontaminate_min_ngrams` are no part of the canonical form while they are
    off, which is then that of runs from before there were any.

    Attributes:
        extensions: Accepted file extensions, lower case, without the dot.
        max_document_bytes: Larger documents are `filtered[size]`.
        drop_binary: Drop documents with a NUL byte.
        drop_duplicates: Keep one copy of documents with equal bytes.
        drop_generated: Drop files that a marker in their first lines names as generated.
        max_line_bytes: Drop documents with a longer line; off by default.
        min_unique_line_ratio: Drop documents whose share of distinct lines is lower; off by default.
        allowed_licenses: SPDX identifiers; documents under other licences are dropped. Off if empty.
        unlicensed: What becomes of documents that tell no licence, where some are allowed.
        drop_minified: Drop machine-packed files and tables of numbers (`transforms.filters.minified`).
        drop_secrets: Drop documents with private keys, or tokens of services (`transforms.filters.secrets`).
        decontaminate: Files and folders of benchmarks; documents that share words with them are dropped. Off if empty.
            Unit keys and receipts have what is in them, not these paths.
        decontaminate_ngram_words: Words in a row that are shared.
        decontaminate_min_ngrams: Different runs of them that a document has at least which is dropped.
        near_duplicate_similarity: Keep one of documents that are estimated to have at least this share of their
            shingles in common (Jaccard); off by default. Without it the options of near-duplicates are no part of the
            canonical form.
        near_duplicate_tokens: Code tokens of a shingle.
        near_duplicate_permutations: Bytes of a MinHash signature.
        open_archives: Read archives, Parquet and JSONL files that stand in folders; off counts them as
            `filtered[extension]`.
        content_column: Column or key of the text in Parquet and JSONL.
        path_column: Column or key of the path in Parquet and JSONL.
        project_column: Column or key of the project; the archive's stem by default.
        license_column: Column or key of the licence; none by default.
        sample: Share of the documents to take, chosen by the hash of the path.
        limit: At most so many documents of each source and of each archive.
        unit_bytes: Target size of a unit and of a documents shard, in bytes.
        max_expansion: An archive that grows beyond this many times its size (and 1 GiB) is read no further.
        detect_platforms: Fill `platform_ids`.
    """

    extensions: tuple[str, ...] = DEFAULT_EXTENSIONS
    max_document_bytes: Annotated[int, Field(ge=1, le=1 << 30)] = 64 * MEBIBYTE
    drop_binary: bool = True
    drop_duplicates: bool = True
    drop_generated: bool = False
    max_line_bytes: Annotated[int, Field(ge=1)] | None = None
    min_unique_line_ratio: Fraction | None = None
    allowed_licenses: tuple[str, ...] = ()
    unlicensed: Unlicensed = "drop"
    drop_minified: bool = False
    drop_secrets: bool = False
    decontaminate: tuple[str, ...] = ()
    decontaminate_ngram_words: Annotated[int, Field(ge=4, le=1024)] = 13
    decontaminate_min_ngrams: Annotated[int, Field(ge=1, le=MAX_JSON_INTEGER)] = 1
    near_duplicate_similarity: Annotated[float, Field(ge=0.5, le=1.0)] | None = None
    near_duplicate_tokens: Annotated[int, Field(ge=1, le=100)] = 5
    near_duplicate_permutations: Literal[64, 128, 256, 512, 1024] = 256
    open_archives: bool = True
    content_column: str = "content"
    path_column: str = "path"
    project_column: str | None = None
    license_column: str | None = None
    sample: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0
    limit: Annotated[int, Field(ge=1)] | None = None
    unit_bytes: Annotated[int, Field(ge=1 << 16, le=1 << 31)] = 64 * MEBIBYTE
    max_expansion: Annotated[int, Field(ge=2)] = 1000
    detect_platforms: bool = True

    @model_serializer(mode="wrap")
    def _serialize(self, values: SerializerFunctionWrapHandler) -> dict[str, Any]:
        unused = [] if self.allowed_licenses else ["allowed_licenses", "unlicensed"]
        decontaminate = ("decontaminate", "decontaminate_ngram_words", "decontaminate_min_ngrams")
        unused += [] if self.decontaminate else decontaminate
        unused += [name for name in ("drop_minified", "drop_secrets") if not getattr(self, name)]
        unused += NEAR_DUPLICATE_OPTIONS if self.near_duplicate_similarity is None else []
        return _leave_out(values(self), unused)


class ScanOptions(Options):
    """What the scan counts.

    Without units they are no part of the canonical form, which is then that of runs from before there were any.

    Attributes:
        pattern: Name of the pre-token pattern whose words are counted.
        unit_pattern: Name of the pattern that cuts the units of superwords, made of the pattern's words; these are
            counted too. None by default.
        word_partitions: Number of files in `counts/words/`, and in `counts/units/`.
    """

    pattern: str = "cpp-words-1"
    unit_pattern: str | None = None
    word_partitions: Annotated[int, Field(ge=1, le=1024)] = 16

    @model_serializer(mode="wrap")
    def _serialize(self, values: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return _leave_out(values(self), () if self.unit_pattern else ("unit_pattern",))


class BuildOptions(Options):
    """What vocabulary is built: its size, and which candidates of the domain band keep their id.

    The reason for each default is in `docs/how-to/running.md`.

    Attributes:
        profile: Name of the profile, recorded in the manifest.
        kind: What is learned: `bpe` over the fixed tokens of the vocabulary files, or a SentencePiece model with their
            control tokens alone. Without SentencePiece it is no part of the canonical form; with it, the size alone of
            the other options counts.
        vocab_size: Number of ids.
        distinctive_shapes: Shapes that protect a name from the generic threshold; a shape that is left out protects
            nothing.
        generic_document_share: A candidate in more than this share of the documents, without a distinctive shape, is
            cut.
        compound_document_share: The same threshold for a compound of several words; never below the generic one.
        compound_parts: Words that a compound has at least.
        min_hits: A candidate with fewer hits is cut.
        min_category_hits_per_name: A category is cut whole if what the other rules leave of it has, per name that was
            proposed and per million documents, fewer hits.
        min_category_projects: A category is cut whole if nothing that is left of it occurs in so many projects; at
            most the projects that any candidate occurs in.
        min_category_hit_share: A category is cut whole if what the other rules leave has a smaller share of its hits.
        max_token_bytes: No learned token is longer; unlimited by default.
        superwords_after: Share of the ids after which tokens of several words are learned, in the units of the scan's
            unit pattern: with 0.75 the last quarter. None by default; the scan needs a unit pattern. Without it, it and
            the bounds of superwords are no part of the canonical form.
        max_superword_words: The most words of a superword.
        max_superword_bytes: The most bytes of a superword.
        max_held_tokens: The most tokens that the distinct words, or the units, may have as training begins. Past it
            rare words are dropped and rare units thinned, and the findings tell.
    """

    profile: str = "hybrid-64k"
    kind: VocabularyKind = "bpe"
    vocab_size: Annotated[int, Field(ge=1, le=1 << 20)] = 1 << 16
    distinctive_shapes: tuple[DistinctiveShape, ...] = DISTINCTIVE_SHAPES
    generic_document_share: Fraction = 0.02
    compound_document_share: Fraction = 0.1
    compound_parts: Annotated[int, Field(ge=2, le=MAX_JSON_INTEGER)] = 2
    min_hits: Annotated[int, Field(ge=0, le=MAX_JSON_INTEGER)] = 10
    min_category_hits_per_name: Annotated[float, Field(ge=0, le=MAX_JSON_INTEGER)] = 64.0
    min_category_projects: Annotated[int, Field(ge=0, le=MAX_JSON_INTEGER)] = 2
    min_category_hit_share: Fraction = 0.2
    max_token_bytes: Annotated[int, Field(ge=2, le=MAX_JSON_INTEGER)] | None = None
    superwords_after: Annotated[float, Field(ge=0.1, le=0.99)] | None = None
    max_superword_words: Annotated[int, Field(ge=2, le=MAX_JSON_INTEGER)] = 6
    max_superword_bytes: Annotated[int, Field(ge=2, le=MAX_JSON_INTEGER)] = 64
    max_held_tokens: Annotated[int, Field(ge=1 << 16, le=1 << 31)] = 1 << 28

    @model_serializer(mode="wrap")
    def _serialize(self, values: SerializerFunctionWrapHandler) -> dict[str, Any]:
        superwords = ("superwords_after", "max_superword_words", "max_superword_bytes")
        unused = superwords if self.superwords_after is None else ()
        return _leave_out(values(self), (*unused, "kind") if self.kind == "bpe" else unused)


class TokenizeOptions(Options):
    """How documents become rows of token shards.

    Attributes:
        bos: Put `<BOS>` before each document.
        eos: Put `<EOS>` after each document.
        platform_prefix: Render the `// platform: …` line into `prefix_token_ids`.
    """

    bos: bool = True
    eos: bool = True
    platform_prefix: bool = False


class RunOptions(Options):
    """All that decides the bytes of a run, besides its sources."""

    ingest: IngestOptions = IngestOptions()
    scan: ScanOptions = ScanOptions()
    build: BuildOptions = BuildOptions()
    tokenize: TokenizeOptions = TokenizeOptions()
    max_dead_fraction: Fraction = 0.01


def _leave_out(values: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in names}
