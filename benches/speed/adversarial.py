"""Inputs that are hard on an encoder, beside normal text: how many times as long a byte takes.

Text is hard if it is one long word or if no word occurs twice: then neither a cache nor a short merge helps.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from string import ascii_lowercase, digits, punctuation
from typing import Any

import cppmill_core
import pyarrow as pa

from benches.lib.encoders import Vocabulary
from benches.lib.harness import Candidate, Comparison, RunResult, compare
from benches.lib.peers import OURS, read_sample

SIZE = 1_000_000
LINE_SIZE = 200_000_000
SEED = 6


def hard_inputs() -> Iterator[tuple[str, bytes]]:
    """Yield the inputs by name, each about `SIZE` bytes but the long line."""
    random_ = random.Random(SEED)
    wide = "漢字仮名交じり文語彙😀🎉👩‍💻"
    yield "spaces", b" " * SIZE
    yield "newlines", b"\n" * SIZE
    yield "one letter", b"a" * SIZE
    yield "ab repeated", b"ab" * (SIZE // 2)
    yield "lines of one letter", b"a\n" * (SIZE // 2)
    alphabets = {"letters": ascii_lowercase, "digits": digits, "punctuation": punctuation, "CJK and emoji": wide}
    for name, alphabet in alphabets.items():
        yield f"random {name}", "".join(random_.choices(alphabet, k=SIZE)).encode()[:SIZE]
    yield "random bytes", random_.randbytes(SIZE)
    yield "one line of words", _line_of_words(random_)


def measure_adversarial(vocabularies: list[Vocabulary], sample: Path, *, rounds: int) -> Iterator[Comparison]:
    """Measure the native encoder on hard inputs, one thread, cold, as multiples of the sample's time a byte."""
    for vocabulary in vocabularies:
        candidate = Candidate(name=OURS, prepare=partial(load, vocabulary, sample), run=encode_all)
        yield compare(f"hard inputs, {vocabulary.name}", [candidate], input_bytes=LINE_SIZE, rounds=rounds)


def load(vocabulary: Vocabulary, sample: Path) -> tuple[Path, pa.Array[Any]]:
    """Load the sample; a tokenizer is loaded anew for each input."""
    return vocabulary.folder, read_sample(sample)["content"]


def encode_all(normal: tuple[Path, pa.Array[Any]]) -> RunResult:
    """Encode the sample and every input, each with a tokenizer that has seen nothing."""
    folder, contents = normal
    usual = seconds_a_byte(folder, contents)
    return RunResult(
        shares={f"x normal: {name}": seconds_a_byte(folder, pa.array([text])) / usual for name, text in hard_inputs()}
    )


def seconds_a_byte(folder: Path, documents: pa.Array[Any]) -> float:
    """Return what a byte of documents takes a new tokenizer."""
    tokenizer = cppmill_core.Tokenizer.from_dir(folder)
    start = time.perf_counter()
    tokenizer.encode_batch(documents)
    return (time.perf_counter() - start) / documents.nbytes


def _line_of_words(random_: random.Random) -> bytes:
    words = [bytes(random_.choices(ascii_lowercase.encode(), k=random_.randint(1, 12))) for _ in range(50_000)]
    line = b" ".join(random_.choices(words, k=SIZE))
    return (line * (LINE_SIZE // len(line) + 1))[:LINE_SIZE]
