"""The program of `cppmill vocab propose`: names and morphemes that a run's text would gain from, as TOML to paste."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import cppmill_core
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from configs import VOCABULARY
from configs.execution import usable_threads
from pipelines.stages.vocabulary import recorded_digest
from pipelines.tokenizers.codec import load_tokenizer
from pipelines.tokenizers.texts import documents_shards, read_shards
from schemas.options import BuildOptions, ScanOptions
from schemas.printing import count
from schemas.tables import WORDS, token_type
from tokenizer_build.decisions import Corpus
from tokenizer_build.lint import load_vocabulary
from tokenizer_build.proposals import Proposals, find_gaps, propose, scanner_config
from transforms.records.receipts import check_named, find_intact_receipt
from transforms.records.versions import follow_current
from transforms.scan.kinds import Family
from transforms.scan.tables import count_projects
from transforms.storage.folder import OutputFolder
from transforms.storage.scratch import scratch_folder
from transforms.tokens.tokenizer import check_tokenizer

NAMES = 100
"""How many names are proposed."""

MORPHEMES = 9
"""How many morphemes are proposed: the band has so many ids that cppmill does not use."""

_WORDS = "counts/words/"

Documents = Callable[[], Iterable[pa.RecordBatch]]
"""Opens documents: batches with the columns project and content."""


def propose_for_run(run: str, *, vocab: Path | None = None, names: int = NAMES, morphemes: int = MORPHEMES) -> str:
    """Return what is proposed for a vocabulary from a finished run, as TOML with a comment before it.

    Args:
        run: The folder of the run, or its URL; its documents are read once, and twice if it has no counts.
        vocab: The vocabulary folder that it is for; None for the one that the run's tokenizer was built with.
        names: How many names at most.
        morphemes: How many morphemes at most.

    Raises:
        ConfigError: If there is no tokenizer, or no documents.
    """
    out = OutputFolder(follow_current(run))
    folder, shards = documents_shards(out.root, argument="RUN")
    receipt = find_intact_receipt(out)
    if receipt is not None:
        check_tokenizer(out, receipt)
    configs = (receipt or {}).get("configs", {})
    scan, build = (dict(configs.get(name, {})) for name in ("scan", "build"))
    pattern = str(scan.get("pattern", ScanOptions().pattern))

    def documents() -> Iterator[pa.RecordBatch]:
        return read_shards(folder, shards, ["project", "content"])

    with out.open_local_folder("tokenizer") as tokenizer:
        proposals, corpus = propose_names(
            _words(out, receipt, documents, pattern),
            documents,
            tokenizer=load_tokenizer(tokenizer, argument="RUN"),
            vocab=vocab or (tokenizer if recorded_digest(out) else VOCABULARY),
            pattern=pattern,
            options=BuildOptions(**build),
            names=names,
            morphemes=morphemes,
        )
    return f"{_comment(run, corpus, proposals)}{proposals.to_toml()}"


def propose_names(
    words: Iterable[pa.RecordBatch],
    documents: Documents,
    *,
    tokenizer: cppmill_core.AnyTokenizer,
    vocab: Path,
    pattern: str,
    options: BuildOptions,
    names: int = NAMES,
    morphemes: int = MORPHEMES,
    of_documents: int = 0,
) -> tuple[Proposals, Corpus]:
    """Return what is proposed for a vocabulary from counts of words and the documents, and what was counted.

    Args:
        words: Counts of the words (`schemas.tables.WORDS`), read once.
        documents: Opens the documents, which are counted for the names that cost most.
        tokenizer: What the documents were tokenized with.
        vocab: The vocabulary folder.
        pattern: The pattern of the words.
        options: The thresholds of the build.
        names: How many names at most.
        morphemes: How many morphemes at most.
        of_documents: How many documents there are in all, if these are only the new ones: a name in many of the new
            ones is not generic if it is in few of all.
    """
    threads = usable_threads()

    def count_tokens(texts: Sequence[bytes]) -> list[int]:
        encoded = tokenizer.encode_batch(list(texts), threads=threads)
        counted: list[int] = pc.list_value_length(encoded).to_pylist()
        return counted

    vocabulary, lock = load_vocabulary(vocab)
    gaps = find_gaps(words, vocabulary, count_tokens, names=names, morphemes=morphemes)
    counts, projects = _scan(documents(), scanner_config(gaps, pattern))
    statistics: dict[str, int] = dict(zip(*counts["statistics"].to_pydict().values(), strict=True))
    corpus = Corpus(max(statistics["documents"], of_documents), len(projects))
    tables = {
        family: count_projects(pa.Table.from_batches([counts[family]]), family)
        for family in (Family.TERMS, Family.MORPHEMES)
    }
    rows = propose(
        gaps,
        tables[Family.TERMS],
        tables[Family.MORPHEMES],
        corpus=corpus,
        options=options,
        id_bytes=token_type(tokenizer.vocab_size).bit_width // 8,
    )
    return Proposals.of(rows, vocabulary, lock, names=names, morphemes=morphemes), corpus


def count_words(documents: Iterable[pa.RecordBatch], pattern: str) -> Iterable[pa.RecordBatch]:
    """Return the words of documents (`schemas.tables.WORDS`), counted by the native scanner."""
    words: Iterable[pa.RecordBatch] = _scan(documents, scanner_config([], pattern))[0]["words"]
    return words


def _scan(documents: Iterable[pa.RecordBatch], config: str) -> tuple[dict[str, Any], set[str]]:
    """Return what the native scanner counts in documents, and the names of their projects."""
    scanner = cppmill_core.Scanner(config, usable_threads(), spill_dir=scratch_folder())
    projects = set[Any]()
    for batch in documents:
        projects.update(batch["project"].to_pylist())
        scanner.add(batch)
    return scanner.finish(), projects


def _words(
    out: OutputFolder, receipt: dict[str, Any] | None, documents: Documents, pattern: str
) -> Iterator[pa.RecordBatch]:
    """Yield the words that the run counted; where it kept a tokenizer and counted none, they are counted.

    Raises:
        IntegrityError: If the files of words are not those that the receipt names.
    """
    merged = sorted(name for name in (receipt or {}).get("files", ()) if name.startswith(_WORDS))
    if receipt is None:
        merged = [name for name in out.files("counts") if name.startswith(_WORDS)]
    else:
        check_named(out, receipt, merged)
    if not merged:
        yield from count_words(documents(), pattern)
    for name in merged:
        with out.open_local(name) as path, pq.ParquetFile(path) as file:
            yield from file.iter_batches(columns=WORDS.names)


def _comment(run: str, corpus: Corpus, proposals: Proposals) -> str:
    what = f"{count(len(proposals.names), 'name')} and {count(len(proposals.morphemes), 'morpheme')}"
    where = f"{count(corpus.documents, 'document')} of {count(corpus.projects, 'project')}"
    return (
        f"# `cppmill vocab propose {run}`: {what}, from {where}.\n"
        "# Save this as a file of a vocabulary of your own (`cppmill vocab init DIR`), or at the end of DIR/own.toml.\n"
        "# Bytes saved are those of token ids in the token shards; of a morpheme they are the most that it can save.\n"
    )
