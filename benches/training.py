"""Training: the native core's word counts and `train_bpe` beside `tokenizers`' BpeTrainer, on one sample and pattern.

Without seeds both learn the same merges. Counting the words is in both clocks, since theirs cannot be given counts.
Ours counts with the scanner, which finds more than words: terms, namespaces, naming styles.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import cppmill_core
import pyarrow as pa
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

from benches.harness import Comparison, Contender, Outcome, compare
from benches.peers import OURS, THEIRS, read_sample, read_texts, set_rayon_threads
from pipelines.progress import MEGABYTE
from schemas.digests import sha256_json
from tokenizer_build.byte_alphabet import CHARACTERS, spell

TRAINED_IDS = 8192
NO_SEEDS: dict[str, pa.Array[Any]] = {"token": pa.array([], pa.binary()), "atomic": pa.array([], pa.bool_())}


def measure_training(sample: Path, *, pattern: str, sample_bytes: int, threads: int, rounds: int) -> Comparison:
    """Measure learning 8,192 ids from text, in MB a second.

    Args:
        sample: Documents, as `benches.corpus.write_sample` wrote them.
        pattern: Name of the pre-token pattern.
        sample_bytes: Their bytes.
        threads: Number of threads.
        rounds: Runs of each side.
    """
    megabytes = sample_bytes / MEGABYTE
    contenders: list[Contender[Any]] = [
        Contender(
            name=OURS,
            prepare=partial(read_sample, sample),
            run=partial(train_ours, pattern, threads, megabytes),
            threads=threads,
        ),
        Contender(
            name=THEIRS,
            prepare=partial(load_theirs, sample, threads),
            run=partial(train_theirs, pattern, megabytes),
            threads=threads,
        ),
    ]
    return compare("train", contenders, input_bytes=sample_bytes, rounds=rounds)


def train_ours(pattern: str, threads: int, megabytes: float, documents: pa.RecordBatch) -> Outcome:
    """Count the words and learn the merges with the native core."""
    scanner = cppmill_core.Scanner(json.dumps({"pattern": pattern}), threads)
    scanner.add(documents)
    merges = cppmill_core.train_bpe(
        list(scanner.finish()["words"]),
        seeds=pa.record_batch(NO_SEEDS),
        vocab_tokens=TRAINED_IDS - len(CHARACTERS),
        forbidden=[],
        threads=threads,
    )
    return Outcome({"MB": megabytes}, lambda: sha256_json(spell_merges(merges)))


def spell_merges(merges: pa.RecordBatch) -> list[list[str]]:
    """Return merges as tokenizer.json holds them.

    Example:
        >>> spell_merges(pa.record_batch({"left": [b" "], "right": [b"a"]}))
        [['Ġ', 'a']]
    """
    left: list[Any] = merges["left"].to_pylist()
    right: list[Any] = merges["right"].to_pylist()
    return [[spell(first), spell(second)] for first, second in zip(left, right, strict=True)]


def load_theirs(sample: Path, threads: int) -> list[str]:
    """Load the documents' text."""
    set_rayon_threads(threads)
    return read_texts(sample)


def train_theirs(pattern: str, megabytes: float, texts: list[str]) -> Outcome:
    """Count the words and learn the merges with `tokenizers`."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(cppmill_core.PATTERNS[pattern]), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=TRAINED_IDS, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    return Outcome({"MB": megabytes}, lambda: sha256_json(json.loads(tokenizer.to_str())["model"]["merges"]))
