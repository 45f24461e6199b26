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
    """Engine that runs the stages; local is this machine."""

    beam_options: Sequence[str] | None
    """Options for Beam, passed on unchanged."""

    memory_bytes: int | None
    """Memory per process for the tables of a scan; what does not fit goes to temporary files."""

    rehash: bool | None
    """Read and hash every input again, even if its size and time are unchanged."""

    profile: str | None
    """Named set of defaults. For C++: hybrid-64k and hybrid-64k-superwords (both also with -2 or -3 at the end),
    hybrid-16k-2, hybrid-32k-2, hybrid-128k-superwords (also with -3), sentencepiece-32k, demo. For prose: text-16k,
    text-32k, text-sentencepiece-1k.
    """

    tokenizer: PlaceText | None
    """Tokenize with this tokenizer, and build none: a tokenizer directory (local, gs://… or s3://…), or what
    `cppmill adopt` accepts.
    """

    rebuild_tokenizer: bool | None
    """Build a new tokenizer even if OUT has one. Learned ids move. Without this flag a run keeps the tokenizer."""

    vocab: PlaceText | None
    """Build with your own vocabulary, a folder made by cppmill vocab init (local, gs://… or s3://…)."""

    platforms: PlaceText | None
    """Also find the platforms that this TOML file defines: their labels, their ids (113 or higher) and their rules."""

    max_dead_fraction: float | None
    """End with exit code 3 if more than this share of the documents is unreadable or damaged."""


class IngestKeys(TypedDict, total=False):
    """Keys of the table `ingest`."""

    extensions: Sequence[str] | None
    """File extensions to read, lower case, without the dot."""

    max_document_bytes: int | None
    """Drop documents with more bytes than this."""

    drop_binary: bool | None
    """Drop documents with a NUL byte."""

    convert_wide_text: bool | None
    """Convert UTF-16 and UTF-32 text with a byte-order mark to UTF-8; otherwise it is dropped as binary."""

    redact: Sequence[Literal["email", "ip", "secret"]] | None
    """Replace personal data and credentials in documents, such as email,ip,secret (secret: what drop_secrets finds)."""

    redact_with: Literal["words", "same-length"] | None
    """Form of the replacement: words such as REDACTED_EMAIL, or text of the same length."""

    find_licenses: Literal["tags", "texts", "folders"] | None
    """If the source names no licence, look in SPDX tags; `texts`: also in comments; `folders`: also in licence
    files.
    """

    drop_duplicates: bool | None
    """Keep only one of several documents with equal bytes."""

    drop_generated: bool | None
    """Drop files that name a code generator in their first lines."""

    max_line_bytes: int | None
    """Drop documents with a longer line."""

    min_unique_line_ratio: float | None
    """Drop documents with a smaller share of distinct lines."""

    allowed_licenses: Sequence[str] | None
    """Drop documents unless their licence is one of these SPDX identifiers, such as MIT,Apache-2.0."""

    unlicensed: Literal["drop", "keep"] | None
    """What to do with documents without a licence, if allowed_licenses is set."""

    drop_minified: bool | None
    """Drop machine-packed files and tables of numbers."""

    drop_secrets: bool | None
    """Drop documents with private keys or tokens of services."""

    decontaminate: Sequence[PlaceText] | None
    """Drop documents that share runs of words with these benchmarks (files and folders)."""

    decontaminate_ngram_words: int | None
    """Number of consecutive words that are compared as one run."""

    decontaminate_min_ngrams: int | None
    """Drop a document if it shares at least this many different runs of words."""

    filters: Mapping[str, Mapping[str, Any]] | None
    """Filters from other packages, by name, each with a table of its options."""

    withdrawn: PlaceText | None
    """Drop the documents in this list, which cppmill withdraw makes."""

    near_duplicate_similarity: float | None
    """Keep only one of several documents that have at least this share of their code in common, such as 0.8."""

    near_duplicate_tokens: int | None
    """Code tokens per shingle."""

    near_duplicate_permutations: Literal[64, 128, 256, 512, 1024] | None
    """Permutations per MinHash signature, one byte each."""

    open_archives: bool | None
    """Read archives, Parquet and JSONL files in folders; otherwise they are left out (`filtered[extension]`)."""

    readers: Sequence[str] | None
    """Also read files with these extensions, each with a reader from another package (docs/how-to/filters.md)."""

    document_separator: str | None
    """Also read `.txt` files, of any size, and cut them into documents wherever this text occurs."""

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
    """Take at most N documents from each source and archive."""

    unit_bytes: int | None
    """Target size of a unit of work and of a shard, in bytes of source."""

    max_expansion: int | None
    """Stop reading an archive that expands to more than 1 GiB and more than this many times its size."""

    max_dense_bytes: int | None
    """Stop reading an archive that expands to more than this many bytes and more than a hundred times its size."""

    max_rows_per_byte: int | None
    """Stop reading a table or archive with over 262,144 rows or members and over this many per byte of its size."""

    max_input_seconds: int | None
    """Stop reading a table or archive that takes longer than this (plus one second per 100 kB of it)."""

    detect_platforms: bool | None
    """Fill the column `platform_ids`."""


class ScanKeys(TypedDict, total=False):
    """Keys of the table `scan`."""

    pattern: str | None
    """Pattern that cuts text into words (pre-tokens), which are counted."""

    unit_pattern: str | None
    """Pattern that cuts text into lines; if set, lines are counted too, and superwords are learned from them."""

    word_partitions: int | None
    """Number of files in `counts/words/`, and in `counts/units/`."""

    partition_by_project: bool | None
    """Distribute words and lines over these files by project, not by their own hash."""


class BuildKeys(TypedDict, total=False):
    """Keys of the table `build`."""

    kind: Literal["bpe", "sentencepiece-bpe", "sentencepiece-unigram"] | None
    """What is learned: BPE with the fixed tokens of the vocabulary files, or a SentencePiece model."""

    specials: Sequence[str] | None
    """Learn a vocabulary for prose: these control tokens get the first ids, and no other ids are fixed."""

    vocab_size: int | None
    """Number of ids of the tokenizer."""

    distinctive_shapes: Sequence[Literal["double_underscore", "screaming_case", "api_prefix", "compound"]] | None
    """Shapes that protect a name from `generic_document_share`."""

    generic_document_share: float | None
    """Cut candidates in more than this share of the documents, unless they have a distinctive shape."""

    compound_document_share: float | None
    """The same threshold for a compound of several words; at least `generic_document_share`."""

    compound_parts: int | None
    """Fewest words in a compound."""

    min_hits: int | None
    """Keep a candidate library token only if the sources use it at least this often."""

    min_distinctive_hits: int | None
    """Cut candidates with a distinctive shape only if they have fewer hits than this, or if their category is cut."""

    generic_word_project_share: float | None
    """Cut candidates that are one plain word (`stride`, `Message`) if at least this share of the projects use them."""

    min_morpheme_hits: float | None
    """Cut morphemes that have fewer hits than this per million documents in each of their positions."""

    min_fixed_use: float | None
    """Leave out fixed tokens that are rarer in the text than this multiple of the last learned token's count."""

    min_category_hits_per_name: float | None
    """Cut a category if its remaining names have fewer hits than this, per proposed name and per million documents."""

    min_category_projects: int | None
    """Cut a category if none of its remaining names occurs in this many projects."""

    min_category_hit_share: float | None
    """Cut a category if its remaining names have a smaller share of its hits than this."""

    max_token_bytes: int | None
    """Do not learn tokens of more bytes than this."""

    project_cap: float | None
    """Limit how often a pair of tokens counts in one project, as a multiple of its share in the other projects."""

    superwords_after: float | None
    """Learn tokens of several words (superwords) after this share of the ids: with 0.75, in the last quarter."""

    max_superword_words: int | None
    """Most words in a superword."""

    max_superword_bytes: int | None
    """Most bytes in a superword."""

    max_held_tokens: int | None
    """Limit on the tokens in all distinct words, or in all lines, when training begins: about 20 bytes of memory
    each.
    """

    hf_template: Literal["none", "bos", "bos-eos"] | None
    """What `tokenizers` and `transformers` put around a text: nothing, `<BOS>`, or `<BOS>` and `<EOS>`."""


class TokenizeKeys(TypedDict, total=False):
    """Keys of the table `tokenize`."""

    bos: bool | None
    """Put `<BOS>` before each document."""

    eos: bool | None
    """Put `<EOS>` after each document."""

    eos_token: str | None
    """End each document with this control token instead of `<EOS>`, if the tokenizer has it."""

    platform_prefix: bool | None
    """Encode the line `// platform: …` into the column `prefix_token_ids`."""

    platform_prefix_form: Literal["labels", "categories"] | None
    """Form of that line: `// platform: cuda, linux`, or with `categories` `// platform: os=linux gpu=cuda
    std=c++20`.
    """


class DriftKeys(TypedDict, total=False):
    """Options of drift."""

    drift: bool | None
    """Compare each version with the previous one: compression, rare ids, ids that died, and new API families
    (prefixes of names, and namespaces).
    """

    rare_per_million: float | None
    """Occurrences per million tokens below which an id is rare, counted in the first version with this tokenizer."""

    alert_compression: float | None
    """Alert if the bytes per token of the new text are lower than in the previous version, by more than this share."""

    alert_rare: float | None
    """Alert if the share of rare ids in the new text is higher than in the previous version, by more than this."""

    alert_families: int | None
    """Alert if at least this many API families are new."""

    alert_died: int | None
    """Alert if at least this many learned ids died: the previous version used them, and this one does not."""

    alert_min_bytes: int | None
    """Bytes of new text that an alert for compression or rare ids needs."""


class Options(RunKeys, IngestKeys, ScanKeys, BuildKeys, TokenizeKeys, total=False):
    """Every option by its key, and each table of them by its name."""

    run: RunKeys | None
    ingest: IngestKeys | None
    scan: ScanKeys | None
    build: BuildKeys | None
    tokenize: TokenizeKeys | None
