"""Encoding beside the public encoders: ours with its vocabularies, the others with those that they take.

Each must produce the ids of `tokenizers` with the same vocabulary, on every document. Cold is a new tokenizer in
a new process, warm one that has encoded the same documents before.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import cppmill_core
import pyarrow as pa
import pyarrow.parquet as pq

from benches.lib.encoders import LOADERS, Encode, Vocabulary, prepare, run
from benches.lib.harness import BenchmarkError, Candidate, Comparison, RunResult, compare, run_in_process
from benches.lib.peers import OURS, THEIRS, read_sample
from benches.lib.references import Reference, digest_all, digest_ids
from configs.execution import usable_threads
from pipelines.console.progress import MEGABYTE, Reporter
from tokenizer_build.compare.candidates import set_rayon_threads

SLOW_SHARE = 0.1
"""The share of the documents that `tokenizers` is timed on: it keeps nothing that more of them would warm up."""

CHUNK_DOCUMENTS = 64


@dataclass(frozen=True)
class SampleText:
    """The documents of a comparison: a file of `benches.lib.corpus.write_sample`, and its bytes."""

    path: Path
    num_bytes: int

    def head(self, share: float) -> SampleText:
        """Write its first documents, about this many of its bytes, to a file beside it."""
        batch, path = read_sample(self.path), self.path.with_suffix(".head.parquet")
        sizes = [len(content.as_py()) for content in batch["content"]]
        rows, taken = 0, 0
        while rows < len(sizes) and taken < share * self.num_bytes:
            taken, rows = taken + sizes[rows], rows + 1
        pq.write_table(pa.Table.from_batches([batch.slice(0, rows)]), path)
        return SampleText(path, taken)


@dataclass(frozen=True)
class Peer:
    """An encoder with a vocabulary that it takes, the text that it is timed on, and the digest of its right ids."""

    encoder: str
    vocabulary: Vocabulary
    text: SampleText
    expected: str | None

    def candidate(self, threads: int, *, warm: bool) -> Candidate[Encode]:
        """Return the candidate of a row."""
        return Candidate(
            name=f"{self.encoder}, {self.vocabulary.name}",
            prepare=partial(prepare, self.encoder, self.vocabulary, self.text.path, threads, warm=warm),
            run=partial(run, self.text.num_bytes),
            threads=threads,
            expected=self.expected,
            input_bytes=self.text.num_bytes,
        )


def measure_encoding(
    tokenizer: Path, sample: Path, *, sample_bytes: int, threads: Iterable[int], rounds: int
) -> Iterator[Comparison]:
    """Measure encoding beside `tokenizers` on one tokenizer.json, cold, one comparison per number of threads."""
    text = SampleText(sample, sample_bytes)
    peers = [Peer(encoder, Vocabulary("plain", tokenizer), text, None) for encoder in (OURS, THEIRS)]
    for number in threads:
        yield measure_peers("encode", peers, number, warm=False, rounds=rounds)


def measure_peers(bench: str, peers: Sequence[Peer], threads: int, *, warm: bool, rounds: int) -> Comparison:
    """Measure encoders with a number of threads, cold or warm."""
    candidates = [peer.candidate(threads, warm=warm) for peer in peers]
    return compare(bench, candidates, input_bytes=peers[0].text.num_bytes, rounds=rounds)


def find_peers(vocabularies: Sequence[Vocabulary], text: SampleText, reporter: Reporter) -> Iterator[Peer]:
    """Yield every encoder with every vocabulary that it loads, ours first; say what the others refuse.

    Raises:
        BenchmarkError: If `tokenizers` does not load one, or ours one of ours.
    """
    head = text.head(SLOW_SHARE)
    for vocabulary in vocabularies:
        digests = reference_digests(vocabulary, text)
        for encoder in LOADERS:
            timed = head if encoder == THEIRS else text
            expected = digest_all(digests[: read_sample(timed.path).num_rows])
            peer = Peer(encoder, vocabulary, timed, expected)
            try:
                run_in_process(encoder, Candidate(name=encoder, prepare=partial(try_load, peer, head), run=done))
            except BenchmarkError as error:
                if encoder in (OURS, THEIRS):
                    raise
                reason = next(line for line in reversed(str(error).splitlines()) if line.strip())
                reporter.note(f"benches: {encoder} does not load {vocabulary.name}: {reason[:120]}")
            else:
                yield peer


def try_load(peer: Peer, text: SampleText) -> None:
    """Load a vocabulary."""
    prepare(peer.encoder, peer.vocabulary, text.path, 1, warm=False)


def done(state: None) -> RunResult:
    """Do nothing."""
    return RunResult()


def reference_digests(vocabulary: Vocabulary, text: SampleText) -> list[bytes]:
    """Return the digest of the ids that `tokenizers` gives for each document, made by a process a CPU."""
    contents: list[Any] = read_sample(text.path)["content"].to_pylist()
    chunks = [contents[start : start + CHUNK_DOCUMENTS] for start in range(0, len(contents), CHUNK_DOCUMENTS)]
    digest = partial(digest_chunk, vocabulary.tokenizer_json)
    with multiprocessing.get_context("spawn").Pool(usable_threads(), set_rayon_threads, (1,)) as pool:
        return [found for chunk in pool.imap(digest, chunks) for found in chunk]


def digest_chunk(tokenizer_json: Path, contents: list[bytes]) -> list[bytes]:
    """Return the digests of the ids of some documents."""
    return [digest_ids(ids) for ids in load_reference(tokenizer_json).encode(contents)]


load_reference = lru_cache(maxsize=1)(Reference)
"""Load a tokenizer.json once in a process."""


def measure_counting(vocabularies: Sequence[Vocabulary], text: SampleText, threads: int, *, rounds: int) -> Comparison:
    """Measure counting tokens without making their ids, cold, beside encoding them; all must find as many tokens."""
    candidates = [
        Candidate(
            name=f"{OURS}, {vocabulary.name}, {what}",
            prepare=partial(load_counting, vocabulary, text),
            run=partial(count, text.num_bytes, threads, only=only),
            threads=threads,
        )
        for vocabulary in vocabularies
        for what, only in (("encode_batch", False), ("count_batch", True))
    ]
    comparisons = [
        compare("count tokens", pair, input_bytes=text.num_bytes, rounds=rounds)
        for pair in (candidates[first : first + 2] for first in range(0, len(candidates), 2))
    ]
    figures = [figure for comparison in comparisons for figure in comparison.figures]
    return Comparison("count tokens", tuple(figures), tuple(n for one in comparisons for n in one.different))


def load_counting(vocabulary: Vocabulary, text: SampleText) -> tuple[cppmill_core.Tokenizer, pa.Array[Any]]:
    """Load the tokenizer and the documents."""
    return cppmill_core.Tokenizer.from_dir(vocabulary.folder), read_sample(text.path)["content"]


def count(
    num_bytes: int, threads: int, state: tuple[cppmill_core.Tokenizer, pa.Array[Any]], *, only: bool
) -> RunResult:
    """Count the tokens of each document, or encode them."""
    tokenizer, contents = state
    if only:
        counts = tokenizer.count_batch(contents, threads).to_numpy()
    else:
        counts = tokenizer.encode_batch(contents, threads).value_lengths().to_numpy()
    return RunResult({"MB": num_bytes / MEGABYTE}, lambda: str(counts.tolist()))
