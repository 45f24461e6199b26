"""The typed options of every stage, as they enter unit keys and the receipt.

They say what is made, never how fast or where: engine, threads and paths are not here. Each model refuses unknown
keys and is frozen; `model_dump(mode="json")` is its canonical form. A field also declares its TOML key and its flag
(`schemas.declarations`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

from schemas.declarations import FILTER, READING, TOKENS, VOCABULARY, Option

MEBIBYTE = 1 << 20

_EXTENSIONS = "c c++ cc cpp cppm cu cuh cxx h h++ hh hip hpp hxx inl ipp ixx tcc tpp txx"
DEFAULT_EXTENSIONS = tuple(_EXTENSIONS.split())
"""Extensions of C++ source, without regard to case."""

DistinctiveShape = Literal["double_underscore", "screaming_case", "api_prefix", "compound"]
"""What can make a name distinctive (`tokenizer_build.decisions`)."""

DISTINCTIVE_SHAPES: tuple[DistinctiveShape, ...] = ("double_underscore", "screaming_case", "api_prefix", "compound")
"""All of them."""

FILTER_NAME = r"^[a-z][a-z0-9_]{0,63}$"
"""What a filter can be called: its name is a key of TOML and a reason in ledgers."""

Unlicensed = Literal["drop", "keep"]
"""What happens to documents without a licence where there is an allow-list."""

VocabularyKind = Literal["bpe", "sentencepiece-bpe", "sentencepiece-unigram"]
"""What a build learns."""

HfTemplate = Literal["none", "bos", "bos-eos"]
"""What `tokenizers` and `transformers` put around a text (`tokenizer_build.templates`)."""

FindLicenses = Literal["tags", "texts", "folders"]
"""Where licences are looked for; each goes further than those before it."""

FIND_LICENSES: tuple[FindLicenses, ...] = get_args(FindLicenses)
"""All of them, in this order."""

Redacted = Literal["email", "ip", "secret"]
"""What can be replaced in documents (`transforms.filters.redaction`)."""

ALTERING_OPTIONS = ("convert_wide_text", "redact")
"""The options of ingest by which the content of a document may differ from the bytes of the source."""

NEAR_DUPLICATE_OPTIONS = ("near_duplicate_similarity", "near_duplicate_tokens", "near_duplicate_permutations")
"""The options of ingest that decide which near-duplicates are dropped; they do not change what the readers find."""

PrefixForm = Literal["labels", "categories"]
"""How a document's platforms are written in the comment before it."""

Fraction = Annotated[float, Field(ge=0.0, le=1.0)]


REENCODED = 0.01
"""The share of the documents that `verify` encodes again by default."""

MAX_JSON_INTEGER = (1 << 53) - 1
"""The largest number that canonical JSON (RFC 8785) keeps exact; options are part of unit keys and receipts."""


class Options(BaseModel):
    """Base of the options: frozen, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    def to_json(self) -> dict[str, Any]:
        """Return the options as JSON values."""
        return self.model_dump(mode="json")


DEFAULT_CONTENT_COLUMN = "content"
"""The default column of the text; other columns are only tried if this is the name of the column."""

FILE_DIGEST = "sha256:"
"""How a receipt names a benchmark or a list: this prefix and the digest of the contents, instead of paths."""


_BOUNDS = {"max_dense_bytes": 256 * MEBIBYTE, "max_rows_per_byte": 1, "max_input_seconds": 600}
"""Bounds on inputs. They are left out of the canonical form while they have these values, because they were not
always options."""


class IngestOptions(Options):
    """What ingest reads and which filters are on.

    Filters from `allowed_licenses` on are left out of the canonical form while they are off, so that runs from before
    these filters existed have the same form.
    """

    extensions: Annotated[tuple[str, ...], READING] = DEFAULT_EXTENSIONS
    """File extensions to read, lower case, without the dot."""

    max_document_bytes: Annotated[int, Field(ge=1, le=1 << 30), FILTER] = 64 * MEBIBYTE
    """Drop documents with more bytes than this."""

    drop_binary: Annotated[bool, FILTER] = True
    """Drop documents with a NUL byte."""

    convert_wide_text: Annotated[bool, READING] = False
    """Convert UTF-16 and UTF-32 text with a byte-order mark to UTF-8; otherwise it is dropped as binary.

    The column `source_doc_id` then has the SHA-256 of the bytes that were converted.
    """

    redact: Annotated[tuple[Redacted, ...], READING] = ()
    """Replace personal data and credentials in documents, such as email,ip,secret (secret: what drop_secrets finds).

    While it is off, this option and the next one are left out of the canonical form.
    """

    redact_with: Annotated[Literal["words", "same-length"], READING] = "words"
    """Form of the replacement: words such as REDACTED_EMAIL, or text of the same length."""

    find_licenses: Annotated[
        FindLicenses | None, Field(examples=["folders"]), Option(heading=READING.heading, default="none")
    ] = None
    """If the source names no licence, look in SPDX tags; `texts`: also in comments; `folders`: also in licence files.

    `tags` reads SPDX tags; `texts` also reads licence texts in the first comments; `folders` also reads the licence
    file of the nearest folder. The column `license_source` then says where a licence is from. While this option is
    off, it is left out of the canonical form.
    """

    drop_duplicates: Annotated[bool, FILTER] = True
    """Keep only one of several documents with equal bytes."""

    drop_generated: Annotated[bool, FILTER] = False
    """Drop files that name a code generator in their first lines."""

    max_line_bytes: Annotated[int | None, Field(ge=1, le=MAX_JSON_INTEGER, examples=[10_000]), FILTER] = None
    """Drop documents with a longer line."""

    min_unique_line_ratio: Annotated[float | None, Field(ge=0.0, le=1.0, examples=[0.2]), FILTER] = None
    """Drop documents with a smaller share of distinct lines."""

    allowed_licenses: Annotated[tuple[str, ...], FILTER] = ()
    """Drop documents unless their licence is one of these SPDX identifiers, such as MIT,Apache-2.0."""

    unlicensed: Annotated[Unlicensed, FILTER] = "drop"
    """What to do with documents without a licence, if allowed_licenses is set."""

    drop_minified: Annotated[bool, FILTER] = False
    """Drop machine-packed files and tables of numbers."""

    drop_secrets: Annotated[bool, FILTER] = False
    """Drop documents with private keys or tokens of services."""

    decontaminate: Annotated[tuple[str, ...], Option(heading=FILTER.heading, metavar="PATH,PATH", places=True)] = ()
    """Drop documents that share runs of words with these benchmarks (files and folders).

    Unit keys and receipts record their contents, not these paths.
    """

    decontaminate_ngram_words: Annotated[int, Field(ge=4, le=1024), FILTER] = 13
    """Number of consecutive words that are compared as one run."""

    decontaminate_min_ngrams: Annotated[int, Field(ge=1, le=MAX_JSON_INTEGER), FILTER] = 1
    """Drop a document if it shares at least this many different runs of words."""

    filters: dict[Annotated[str, Field(pattern=FILTER_NAME)], dict[str, Any]] = {}
    """Filters from other packages, by name, each with a table of its options.

    They apply after the filters above, in the order of their names. While there are none, the key is left out of the
    canonical form.
    """

    withdrawn: Annotated[
        str | None, Field(examples=["withdrawn.json"]), Option(heading=FILTER.heading, metavar="FILE", places=True)
    ] = None
    """Drop the documents in this list, which cppmill withdraw makes.

    Unit keys and receipts record its contents, not its path. While there is no list, the key is left out of the
    canonical form.
    """

    near_duplicate_similarity: Annotated[float | None, Field(ge=0.5, le=1.0, examples=[0.8]), FILTER] = None
    """Keep only one of several documents that have at least this share of their code in common, such as 0.8.

    The share is an estimate of the Jaccard similarity of their shingles. While this option is off, the options of
    near-duplicates are left out of the canonical form.
    """

    near_duplicate_tokens: Annotated[int, Field(ge=1, le=100), FILTER] = 5
    """Code tokens per shingle."""

    near_duplicate_permutations: Annotated[Literal[64, 128, 256, 512, 1024], FILTER] = 256
    """Permutations per MinHash signature, one byte each."""

    open_archives: Annotated[bool, READING] = True
    """Read archives, Parquet and JSONL files in folders; otherwise they are left out (`filtered[extension]`)."""

    readers: tuple[Annotated[str, Field(pattern=r"^[a-z0-9_]+$")], ...] = ()
    """Also read files with these extensions, each with a reader from another package (docs/how-to/filters.md).

    While there are none, the key is left out of the canonical form.
    """

    document_separator: Annotated[
        str | None,
        Field(min_length=1, examples=["<|endoftext|>"]),
        Option(heading=READING.heading, metavar="TEXT", default="none"),
    ] = None
    """Also read `.txt` files, of any size, and cut them into documents wherever this text occurs.

    No document contains the separator, or a line feed right after it. While there is no separator, the key is left out
    of the canonical form.
    """

    content_column: Annotated[str, READING] = DEFAULT_CONTENT_COLUMN
    """Column or key of the text in Parquet and JSONL.

    If there is neither a column `content` nor a path, the text is in `text`, or in the only text column besides project
    and licence.
    """

    path_column: Annotated[str, READING] = "path"
    """Column or key of the path in Parquet and JSONL."""

    project_column: Annotated[
        str | None,
        Field(examples=["repository"]),
        Option(heading=READING.heading, default="the file's name without extension"),
    ] = None
    """Column or key of the project in Parquet and JSONL."""

    license_column: Annotated[
        str | None, Field(examples=["license"]), Option(heading=READING.heading, default="none")
    ] = None
    """Column or key of the licence in Parquet and JSONL."""

    sample: Annotated[float, Field(gt=0.0, le=1.0), Option(default="{}, all")] = 1.0
    """Take this share of the documents, chosen by the hash of the path."""

    limit: Annotated[int | None, Field(ge=1, le=MAX_JSON_INTEGER, examples=[1_000]), Option(default="all")] = None
    """Take at most N documents from each source and archive."""

    unit_bytes: Annotated[int, Field(ge=1 << 16, le=1 << 31), Option(default="the profile's; {} in hybrid-64k")] = (
        64 * MEBIBYTE
    )
    """Target size of a unit of work and of a shard, in bytes of source.

    With smaller units, an interrupted run loses less, and needs less memory.
    """

    max_expansion: Annotated[int, Field(ge=2, le=MAX_JSON_INTEGER), READING] = 1000
    """Stop reading an archive that expands to more than 1 GiB and more than this many times its size."""

    max_dense_bytes: Annotated[int, Field(ge=1, le=MAX_JSON_INTEGER), READING] = _BOUNDS["max_dense_bytes"]
    """Stop reading an archive that expands to more than this many bytes and more than a hundred times its size.

    Few sources compress so well, and a bomb of 2 MB would hold up a run for minutes. The default is left out of the
    canonical form.
    """

    max_rows_per_byte: Annotated[int, Field(ge=1, le=1 << 20), READING] = _BOUNDS["max_rows_per_byte"]
    """Stop reading a table or archive with over 262,144 rows or members and over this many per byte of its size.

    The default is left out of the canonical form.
    """

    max_input_seconds: Annotated[int, Field(ge=1, le=MAX_JSON_INTEGER), READING] = _BOUNDS["max_input_seconds"]
    """Stop reading a table or archive that takes longer than this (plus one second per 100 kB of it).

    The rest is `dead[timeout]`, and the next run reads it again. The default is left out of the canonical form.
    """

    detect_platforms: Annotated[bool, TOKENS] = True
    """Fill the column `platform_ids`."""

    @property
    def alters_content(self) -> bool:
        """Whether content may differ from the bytes of the source."""
        return alters_content(vars(self))

    @model_serializer(mode="wrap")
    def _serialize(self, values: SerializerFunctionWrapHandler) -> dict[str, Any]:
        unused = [] if self.allowed_licenses else ["allowed_licenses", "unlicensed"]
        decontaminate = ("decontaminate", "decontaminate_ngram_words", "decontaminate_min_ngrams")
        unused += [] if self.decontaminate else decontaminate
        unused += [name for name in ("drop_minified", "drop_secrets", *ALTERING_OPTIONS) if not getattr(self, name)]
        unused += [name for name in ("withdrawn", "find_licenses") if getattr(self, name) is None]
        unused += NEAR_DUPLICATE_OPTIONS if self.near_duplicate_similarity is None else []
        unused += [name for name, default in _BOUNDS.items() if getattr(self, name) == default]
        unused += [] if self.redact else ["redact_with"]
        unused += [name for name in ("filters", "readers") if not getattr(self, name)]
        unused += ["document_separator"] if self.document_separator is None else []
        return leave_out(values(self), unused)


class ScanOptions(Options):
    """What the scan counts.

    If there is no unit pattern, its key is left out of the canonical form, so that runs that are older than this option
    have the same form.
    """

    pattern: Annotated[str, VOCABULARY] = "cpp-words-1"
    """Pattern that cuts text into words (pre-tokens), which are counted."""

    unit_pattern: Annotated[
        str | None, Field(examples=["cpp-lines-1"]), Option(heading=VOCABULARY.heading, default="none")
    ] = None
    """Pattern that cuts text into lines; if set, lines are counted too, and superwords are learned from them.

    The lines consist of the words of `pattern`.
    """

    word_partitions: Annotated[int, Field(ge=1, le=1024)] = 16
    """Number of files in `counts/words/`, and in `counts/units/`."""

    partition_by_project: bool = False
    """Distribute words and lines over these files by project, not by their own hash.

    Then a build can limit the influence of one project (`build.project_cap`). Several projects may share a file. While
    this option is off, it is left out of the canonical form.
    """

    @model_serializer(mode="wrap")
    def _serialize(self, values: SerializerFunctionWrapHandler) -> dict[str, Any]:
        unused = () if self.unit_pattern else ("unit_pattern",)
        return leave_out(values(self), unused if self.partition_by_project else (*unused, "partition_by_project"))


_LATER_RULES = (
    "min_distinctive_hits",
    "generic_word_project_share",
    "min_morpheme_hits",
    "min_fixed_use",
    "project_cap",
)
"""Options of a build that are left out of its canonical form while they are off."""


class BuildOptions(Options):
    """Which vocabulary is built: its size, and which candidates of the domain band keep their id.

    The reason for each default is in `docs/how-to/vocabulary/choosing-a-vocabulary.md`.
    """

    profile: str = "hybrid-64k"
    """Name of the profile, recorded in the manifest."""

    kind: Annotated[VocabularyKind, VOCABULARY] = "bpe"
    """What is learned: BPE with the fixed tokens of the vocabulary files, or a SentencePiece model.

    A SentencePiece model has only the control tokens of these files, and of the other options only the size applies.
    `bpe` is left out of the canonical form.
    """

    specials: Annotated[tuple[str, ...] | None, Field(min_length=1, examples=[["<|endoftext|>"]]), VOCABULARY] = None
    """Learn a vocabulary for prose: these control tokens get the first ids, and no other ids are fixed.

    Then the scan's findings about C++ have no effect. While there are none, the key is left out of the canonical form.
    """

    vocab_size: Annotated[int, Field(ge=1, le=1 << 20), Option(default="the profile's; {} in hybrid-64k")] = 1 << 16
    """Number of ids of the tokenizer."""

    distinctive_shapes: tuple[DistinctiveShape, ...] = DISTINCTIVE_SHAPES
    """Shapes that protect a name from `generic_document_share`."""

    generic_document_share: Fraction = 0.02
    """Cut candidates in more than this share of the documents, unless they have a distinctive shape."""

    compound_document_share: Fraction = 0.1
    """The same threshold for a compound of several words; at least `generic_document_share`."""

    compound_parts: Annotated[int, Field(ge=2, le=MAX_JSON_INTEGER)] = 2
    """Fewest words in a compound."""

    min_hits: Annotated[int, Field(ge=0, le=MAX_JSON_INTEGER), VOCABULARY] = 10
    """Keep a candidate library token only if the sources use it at least this often."""

    min_distinctive_hits: Annotated[int | None, Field(ge=0, le=MAX_JSON_INTEGER, examples=[1])] = None
    """Cut candidates with a distinctive shape only if they have fewer hits than this, or if their category is cut.

    They also stay if generic words have most hits of their category. While this option is off, they need `min_hits`.
    This option and the next two are left out of the canonical form while they are off.
    """

    generic_word_project_share: Annotated[float | None, Field(ge=0.0, le=1.0, examples=[0.33])] = None
    """Cut candidates that are one plain word (`stride`, `Message`) if at least this share of the projects use them.

    The share refers to the largest number of projects in which any candidate occurs. A word of two projects stays.
    """

    min_morpheme_hits: Annotated[float | None, Field(ge=0, le=MAX_JSON_INTEGER, examples=[4_000])] = None
    """Cut morphemes that have fewer hits than this per million documents in each of their positions."""

    min_fixed_use: Annotated[float | None, Field(ge=0, le=MAX_JSON_INTEGER, examples=[1.0])] = None
    """Leave out fixed tokens that are rarer in the text than this multiple of the last learned token's count.

    This is for small vocabularies without superwords. The build learns twice, first with all fixed tokens. Control
    tokens, keywords and single bytes stay, and no id moves. While this option is off, it is left out of the canonical
    form.
    """

    min_category_hits_per_name: Annotated[float, Field(ge=0, le=MAX_JSON_INTEGER)] = 64.0
    """Cut a category if its remaining names have fewer hits than this, per proposed name and per million documents."""

    min_category_projects: Annotated[int, Field(ge=0, le=MAX_JSON_INTEGER)] = 2
    """Cut a category if none of its remaining names occurs in this many projects.

    The threshold is at most the number of projects in which any candidate occurs.
    """

    min_category_hit_share: Fraction = 0.2
    """Cut a category if its remaining names have a smaller share of its hits than this."""

    max_token_bytes: Annotated[
        int | None,
        Field(ge=2, le=MAX_JSON_INTEGER, examples=[64]),
        Option(heading=VOCABULARY.heading, default="no limit"),
    ] = None
    """Do not learn tokens of more bytes than this."""

    project_cap: Annotated[float | None, Field(ge=0.0, le=1000.0, examples=[1.0])] = None
    """Limit how often a pair of tokens counts in one project, as a multiple of its share in the other projects.

    The square root of its count in the project is added to this limit. So no single project dominates what is learned.
    The scan must count by project (`scan.partition_by_project`). While this option is off, it is left out of the
    canonical form.
    """

    superwords_after: Annotated[float | None, Field(ge=0.1, le=0.99, examples=[0.5]), VOCABULARY] = None
    """Learn tokens of several words (superwords) after this share of the ids: with 0.75, in the last quarter.

    The scan needs a unit pattern. While this option is off, it and the bounds of superwords are left out of the
    canonical form.
    """

    max_superword_words: Annotated[int, Field(ge=2, le=MAX_JSON_INTEGER)] = 6
    """Most words in a superword."""

    max_superword_bytes: Annotated[int, Field(ge=2, le=MAX_JSON_INTEGER)] = 64
    """Most bytes in a superword."""

    max_held_tokens: Annotated[int, Field(ge=1 << 16, le=1 << 31)] = 1 << 28
    """Limit on the tokens in all distinct words, or in all lines, when training begins: about 20 bytes of memory each.

    Above it, training drops rare words and thins out rare lines, and the findings say so.
    """

    hf_template: Annotated[HfTemplate, VOCABULARY] = "none"
    """What `tokenizers` and `transformers` put around a text: nothing, `<BOS>`, or `<BOS>` and `<EOS>`.

    The ids of the dataset do not depend on it. It must not add tokens that documents do not have. `none` is left out of
    the canonical form.
    """

    @model_serializer(mode="wrap")
    def _serialize(self, values: SerializerFunctionWrapHandler) -> dict[str, Any]:
        superwords = ("superwords_after", "max_superword_words", "max_superword_bytes")
        unused = list(superwords) if self.superwords_after is None else []
        unused += ["kind"] if self.kind == "bpe" else []
        unused += ["hf_template"] if self.hf_template == "none" else []
        unused += ["specials"] if self.specials is None else []
        unused += [name for name in _LATER_RULES if getattr(self, name) is None]
        return leave_out(values(self), unused)


class TokenizeOptions(Options):
    """How documents become rows of token shards."""

    bos: Annotated[bool, TOKENS] = True
    """Put `<BOS>` before each document."""

    eos: Annotated[bool, TOKENS] = True
    """Put `<EOS>` after each document."""

    eos_token: Annotated[
        str | None,
        Field(min_length=1, examples=["<|endoftext|>"]),
        Option(heading=TOKENS.heading, default="the document separator, if one is set"),
    ] = None
    """End each document with this control token instead of `<EOS>`, if the tokenizer has it.

    While there is none, the key is left out of the canonical form.
    """

    platform_prefix: Annotated[bool, TOKENS] = False
    """Encode the line `// platform: …` into the column `prefix_token_ids`."""

    platform_prefix_form: Annotated[PrefixForm, TOKENS] = "labels"
    """Form of that line: `// platform: cuda, linux`, or with `categories` `// platform: os=linux gpu=cuda std=c++20`.

    `labels` is left out of the canonical form.
    """

    @model_serializer(mode="wrap")
    def _serialize(self, values: SerializerFunctionWrapHandler) -> dict[str, Any]:
        unused = ["platform_prefix_form"] if self.platform_prefix_form == "labels" else []
        unused += ["eos_token"] if self.eos_token is None else []
        return leave_out(values(self), unused)


class RunOptions(Options):
    """All options that affect the bytes of a run; only its sources are missing."""

    ingest: IngestOptions = Field(default_factory=IngestOptions)
    scan: ScanOptions = Field(default_factory=ScanOptions)
    build: BuildOptions = Field(default_factory=BuildOptions)
    tokenize: TokenizeOptions = Field(default_factory=TokenizeOptions)
    max_dead_fraction: Fraction = 0.01


def alters_content(ingest: Mapping[str, Any]) -> bool:
    """Return whether content may differ from the bytes of the source, by options of ingest in their canonical form."""
    return any(ingest.get(name) for name in ALTERING_OPTIONS)


def leave_out(values: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return the values without those of some names: what a canonical form is without options that are off."""
    return {name: value for name, value in values.items() if name not in names}
