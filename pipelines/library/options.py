"""The options as keyword arguments: their names and types. Made by `pipelines.library.option_types`, not to be edited.

None stands for an option that is not given.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

PlaceText = str | os.PathLike[str]
"""A path, or the URL of a place on an object store."""


class RunKeys(TypedDict, total=False):
    """Keys of the table `run`."""

    threads: int | None
    """Number of threads per process."""

    engine: Literal["local", "flink", "spark", "prism", "dataflow"] | None
    """Where the Beam stages run."""

    beam_options: Sequence[str] | None
    """Options for Beam, passed on unchanged."""

    memory_bytes: int | None
    """Memory for the tables of a scan per process; more goes to temporary files."""

    rehash: bool | None
    """Read and hash every input again, even if its size and time are unchanged."""

    profile: str | None
    """Set of defaults: hybrid-64k, hybrid-64k-superwords, either with -2 or -3, hybrid-16k-2, hybrid-32k-2,
    hybrid-128k-superwords, the same with -3, sentencepiece-32k or demo; for prose text-16k, text-32k or
    text-sentencepiece-1k.
    """

    tokenizer: PlaceText | None
    """Tokenize with this tokenizer directory, local or gs://… or s3://…, or with what `adopt` takes; build none."""

    rebuild_tokenizer: bool | None
    """Build a new tokenizer even if OUT has one, which a run keeps otherwise; learned ids move."""

    vocab: PlaceText | None
    """Build with a vocabulary of your own, a folder that cppmill vocab init made, local or gs://… or s3://…."""

    platforms: PlaceText | None
    """Find platforms of your own too: a TOML file of labels, with ids from 113 on, and rules to find them."""

    max_dead_fraction: float | None
    """End with exit code 3 if more than this share of the documents is unreadable or damaged."""


class IngestKeys(TypedDict, total=False):
    """Keys of the table `ingest`."""

    extensions: Sequence[str] | None
    """File extensions to read, lower case, without the dot."""

    max_document_bytes: int | None
    """Drop larger documents."""

    drop_binary: bool | None
    """Drop documents with a NUL byte."""

    convert_wide_text: bool | None
    """Convert text of UTF-16 and UTF-32, by its byte-order mark, to UTF-8; otherwise it is dropped as binary."""

    redact: Sequence[Literal["email", "ip", "secret"]] | None
    """Replace what is found of these in documents, such as email,ip,secret: addresses, and what drop_secrets finds."""

    redact_with: Literal["words", "same-length"] | None
    """Replace it by words such as REDACTED_EMAIL, or by text of the same length."""

    find_licenses: Literal["tags", "texts", "folders"] | None
    """Look for the licence of documents of which the source names none: tags, texts or folders."""

    drop_duplicates: bool | None
    """Keep one copy of documents with equal bytes."""

    drop_generated: bool | None
    """Drop files that name a generator in their first lines."""

    max_line_bytes: int | None
    """Drop documents with a longer line."""

    min_unique_line_ratio: float | None
    """Drop documents with a smaller share of distinct lines."""

    allowed_licenses: Sequence[str] | None
    """Drop documents under other licences than these SPDX identifiers, such as MIT,Apache-2.0."""

    unlicensed: Literal["drop", "keep"] | None
    """What happens to documents without a licence, where some licences are allowed."""

    drop_minified: bool | None
    """Drop machine-packed files and tables of numbers."""

    drop_secrets: bool | None
    """Drop documents with private keys or tokens of services."""

    decontaminate: Sequence[PlaceText] | None
    """Drop documents that share words with these benchmarks, files and folders."""

    decontaminate_ngram_words: int | None
    """Words in a row that a document and a benchmark share."""

    decontaminate_min_ngrams: int | None
    """Drop a document that shares at least this many different runs of words."""

    filters: Mapping[str, Mapping[str, Any]] | None
    """Filters that other distributions have, by name, each with a table of its options."""

    withdrawn: PlaceText | None
    """Drop the documents of this list, which cppmill withdraw makes."""

    near_duplicate_similarity: float | None
    """Keep one of the documents that have at least this share of their code in common, such as 0.8."""

    near_duplicate_tokens: int | None
    """Code tokens per shingle."""

    near_duplicate_permutations: Literal[64, 128, 256, 512, 1024] | None
    """Bytes per MinHash signature."""

    open_archives: bool | None
    """Read archives, Parquet and JSONL files in folders; otherwise they are `filtered[extension]`."""

    readers: Sequence[str] | None
    """Read files with these extensions too, each by the reader of another distribution (docs/how-to/filters.md)."""

    document_separator: str | None
    """Read `.txt` files too, of any size, and cut them into documents at this text."""

    content_column: str | None
    """Column or key of the text in Parquet and JSONL."""

    path_column: str | None
    """Column or key of the path in Parquet and JSONL."""

    project_column: str | None
    """Column or key of the project in Parquet and JSONL."""

    license_column: str | None
    """Column or key of the licence in Parquet and JSONL."""

    sample: float | None
    """Take this share of the documents, chosen by the hash of the path."""

    limit: int | None
    """Take at most N documents of each source and archive."""

    unit_bytes: int | None
    """Target size of a unit of work and of a shard, in bytes of source."""

    max_expansion: int | None
    """Stop reading an archive that grows beyond this many times its size (and 1 GiB)."""

    max_dense_bytes: int | None
    """Stop reading an archive at this many bytes where they are more than a hundred times its size."""

    max_rows_per_byte: int | None
    """Stop reading a table or archive with more rows or members than this for each byte of it (and 262,144)."""

    max_input_seconds: int | None
    """Stop reading a table or archive that takes longer than this (and one second for each 100 kB of it)."""

    detect_platforms: bool | None
    """Fill the column `platform_ids`."""


class ScanKeys(TypedDict, total=False):
    """Keys of the table `scan`."""

    pattern: str | None
    """Pre-token pattern whose words are counted."""

    unit_pattern: str | None
    """Pattern of the lines in which superwords are learned, made of the pattern's words; they are counted too."""

    word_partitions: int | None
    """Number of files in `counts/words/`, and in `counts/units/`."""

    partition_by_project: bool | None
    """Put all words and lines of a project into one of these files, and not those with the same hash."""


class BuildKeys(TypedDict, total=False):
    """Keys of the table `build`."""

    kind: Literal["bpe", "sentencepiece-bpe", "sentencepiece-unigram"] | None
    """What is learned: BPE over the fixed tokens of the vocabulary files, or a SentencePiece model."""

    specials: Sequence[str] | None
    """Learn a vocabulary for text: these control tokens have the first ids, and no others are fixed."""

    vocab_size: int | None
    """Number of ids of the tokenizer."""

    distinctive_shapes: Sequence[Literal["double_underscore", "screaming_case", "api_prefix", "compound"]] | None
    """Shapes that protect a name from the generic threshold; a shape that is left out protects nothing."""

    generic_document_share: float | None
    """Cut candidates in more than this share of the documents, unless they have a distinctive shape."""

    compound_document_share: float | None
    """The same threshold for a compound of several words; never below the generic one."""

    compound_parts: int | None
    """Fewest words in a compound."""

    min_hits: int | None
    """Cut candidates with fewer hits."""

    min_distinctive_hits: int | None
    """Cut candidates with a distinctive shape only below so many hits, or with their whole category."""

    generic_word_project_share: float | None
    """Cut candidates that are one plain word (`stride`, `Message`) if this share of the projects has them."""

    min_morpheme_hits: float | None
    """Cut morphemes with fewer hits in each of their positions, per million documents; none while it is off."""

    min_fixed_use: float | None
    """Leave out fixed tokens that the text has less often than this multiple of the last learned token's count."""

    min_category_hits_per_name: float | None
    """Cut a category whose remaining names have fewer hits, per proposed name and per million documents."""

    min_category_projects: int | None
    """Cut a category none of whose remaining names occurs in this many projects."""

    min_category_hit_share: float | None
    """Cut a category whose remaining names have a smaller share of its hits."""

    max_token_bytes: int | None
    """Learn no longer tokens."""

    project_cap: float | None
    """Count a pair of tokens in one project at most this many times as often as in the others, by their bytes."""

    superwords_after: float | None
    """Learn tokens of several words (superwords) after this share of the ids: with 0.75 the last quarter."""

    max_superword_words: int | None
    """Most words in a superword."""

    max_superword_bytes: int | None
    """Most bytes in a superword."""

    max_held_tokens: int | None
    """Most tokens that the distinct words, or the lines, may have when training begins."""

    hf_template: Literal["none", "bos", "bos-eos"] | None
    """What `tokenizers` and `transformers` put around a text: nothing, `<BOS>`, or `<BOS>` and `<EOS>`."""


class TokenizeKeys(TypedDict, total=False):
    """Keys of the table `tokenize`."""

    bos: bool | None
    """Put `<BOS>` before each document."""

    eos: bool | None
    """Put `<EOS>` after each document."""

    eos_token: str | None
    """Put this control token after each document in place of `<EOS>`, where the tokenizer has it."""

    platform_prefix: bool | None
    """Render the `// platform: …` line into the column `prefix_token_ids`."""

    platform_prefix_form: Literal["labels", "categories"] | None
    """Form of that line: `// platform: cuda, linux`, or with `categories` `// platform: os=linux gpu=cuda
    std=c++20`.
    """


class DriftKeys(TypedDict, total=False):
    """Options of drift."""

    drift: bool | None
    """Compare each version with the one before: compression, rare ids, ids that died, new API families."""

    rare_per_million: float | None
    """An id is rare with fewer occurrences per million tokens, in the first version that has its tokenizer."""

    alert_compression: float | None
    """Alert if the new text has fewer bytes per token than the version before, by more than this share of them."""

    alert_rare: float | None
    """Alert if the share of rare ids in the new text exceeds that of the version before by more than this."""

    alert_families: int | None
    """Alert if at least this many API families are new."""

    alert_died: int | None
    """Alert if at least this many learned ids died: the version before used them, this one does not."""

    alert_min_bytes: int | None
    """Alert for the compression or the rare ids of new text only if there is this much of it, in bytes."""


class Options(RunKeys, IngestKeys, ScanKeys, BuildKeys, TokenizeKeys, total=False):
    """Every option by its key, and each table of them by its name."""

    run: RunKeys | None
    ingest: IngestKeys | None
    scan: ScanKeys | None
    build: BuildKeys | None
    tokenize: TokenizeKeys | None
