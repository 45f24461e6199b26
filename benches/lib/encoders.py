"""The encoders that are compared, each on its best interface, and the vocabularies that they run.

Every encoder gets the documents in its best form and gives flat ids with the start of each document, without a Python
object per token; `tokenizers` has no such interface, so it ends with its own Encodings in native memory. Reading the
input, loading the vocabulary and looking at the ids is outside the clock.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cppmill_core
import numpy as np
from cppmill_core.adoption import find_source, program_of, write_directory
from cppmill_core.byte_alphabet import CHARACTERS
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

from benches.lib.foreign import count_cl100k
from benches.lib.harness import BenchmarkError, RunResult
from benches.lib.peers import OURS, THEIRS, read_sample, read_texts
from benches.lib.references import IdArray, digest_documents, split_ids
from benches.lib.vocabularies import merge_ours, spell_merges
from pipelines.console.progress import MEGABYTE
from pipelines.engines.cache import engine_path
from tokenizer_build.compare.candidates import CandidateTokenizer, HuggingFace, Native, Ranks, set_rayon_threads
from tokenizer_build.compare.published_patterns import CL100K

PUBLISHED = ("gpt2", "cl100k", "llama3.1", "qwen2.5")
"""The published tokenizers that encoders are compared on, by their short names."""

Result = Callable[[], Iterable[IdArray]]
"""Makes the ids of each document, outside the clock, of what an encoder gave."""

Encode = Callable[[], Result]
"""Encodes all documents; inside the clock."""


@dataclass(frozen=True)
class Vocabulary:
    """A vocabulary that encoders load: a folder with a tokenizer.json.

    Attributes:
        name: For the rows.
        folder: A tokenizer directory, of ours or adopted.
    """

    name: str
    folder: Path

    @property
    def tokenizer_json(self) -> Path:
        """The file that all but tiktoken and ours load."""
        return self.folder / "tokenizer.json"


def make_cl100k(contents: Iterable[str], folder: Path, *, vocab_size: int, threads: int) -> Vocabulary:
    """Train a vocabulary with the cl100k pattern and write its tokenizer.json.

    The native trainer gives the merges that the trainer of `tokenizers` gives for the same words.
    """
    merges = spell_merges(merge_ours(count_cl100k(contents), vocab_size, threads))
    tokens = dict.fromkeys((*CHARACTERS, *(left + right for left, right in merges)))
    made = Tokenizer(models.BPE(vocab={token: number for number, token in enumerate(tokens)}, merges=merges))
    split = pre_tokenizers.Split(Regex(CL100K), "isolated")
    spelled = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    made.pre_tokenizer = pre_tokenizers.Sequence([split, spelled])
    made.decoder = decoders.ByteLevel()
    return _adopt("cl100k", json.loads(made.to_str()), folder, folder.with_name("cl100k-source"))


def adopt_published(folder: Path) -> Iterator[Vocabulary]:
    """Adopt the published tokenizers that `make engines NAME=tokenizers` fetches, without a normaliser.

    Raises:
        ConfigError: If they have not been fetched.
    """
    for name in PUBLISHED:
        source = folder / "source" / name
        shutil.copytree(engine_path("tokenizers") / name, source)
        rules = json.loads((source / "tokenizer.json").read_bytes())
        yield _adopt(f"{name}, published", {**rules, "normalizer": None}, folder / name, source)


def _adopt(name: str, rules: Mapping[str, Any], folder: Path, source: Path) -> Vocabulary:
    """Write rules into the folder `source`, and adopt it."""
    folder.mkdir(parents=True, exist_ok=True)
    source.mkdir(parents=True, exist_ok=True)
    (source / "tokenizer.json").write_text(json.dumps(rules), encoding="utf-8")
    write_directory(find_source(source), folder)
    return Vocabulary(name, folder)


def load_ours(vocabulary: Vocabulary, sample: Path, threads: int) -> Encode:
    """Ours: Arrow bytes to Arrow lists."""
    tokenizer = cppmill_core.load_tokenizer(vocabulary.folder)
    if not isinstance(tokenizer, cppmill_core.Tokenizer):
        raise BenchmarkError(f"{vocabulary.name}: run by {program_of(tokenizer)}")
    return _encode(Native(tokenizer), sample, threads)


def load_tokenizers(vocabulary: Vocabulary, sample: Path, threads: int) -> Encode:
    """`tokenizers`, with its fast batch call; control tokens in text are ordinary text, as for us."""
    return _encode(HuggingFace(vocabulary.tokenizer_json), sample, threads)


def load_tiktoken(vocabulary: Vocabulary, sample: Path, threads: int) -> Encode:
    """Tiktoken: one NumPy array per document, in threads as its own batch call does it."""
    if "published" in vocabulary.name:
        raise BenchmarkError("only ranks with the cl100k pattern are made here")
    return _encode(Ranks(vocabulary.name, _ranks(vocabulary), CL100K), sample, threads)


def load_gigatoken(vocabulary: Vocabulary, sample: Path, threads: int) -> Encode:
    """Gigatoken: a source of bytes to an Awkward array."""
    import awkward
    import gigatoken

    tokenizer = gigatoken.Tokenizer(str(vocabulary.tokenizer_json))
    contents: list[Any] = read_sample(sample)["content"].to_pylist()
    source = gigatoken.BytesSource(contents)

    def encode() -> Result:
        encoded = tokenizer.encode_batch(source, parallel=threads > 1)
        offsets = np.concatenate([[0], np.cumsum(awkward.to_numpy(awkward.num(encoded)))])
        return lambda: split_ids(awkward.to_numpy(awkward.flatten(encoded)), offsets)

    return encode


def load_fastokens(vocabulary: Vocabulary, sample: Path, threads: int) -> Encode:
    """Fastokens: texts to flat ids; control tokens in text are ordinary text."""
    import fastokens

    tokenizer = fastokens.Tokenizer.from_file(str(vocabulary.tokenizer_json))
    texts = read_texts(sample)
    return lambda: _flat(tokenizer.encode_batch_flat(texts, False, True))


def load_snaptokens(vocabulary: Vocabulary, sample: Path, threads: int) -> Encode:
    """Snaptokens: texts to flat ids."""
    import snaptokens

    tokenizer = snaptokens.Tokenizer.from_file(str(vocabulary.tokenizer_json))
    texts = read_texts(sample)
    return lambda: _flat(tokenizer.encode_batch_flat(texts, False))


LOADERS: dict[str, Callable[[Vocabulary, Path, int], Encode]] = {
    OURS: load_ours,
    "gigatoken": load_gigatoken,
    "fastokens": load_fastokens,
    "snaptokens": load_snaptokens,
    "tiktoken": load_tiktoken,
    THEIRS: load_tokenizers,
}
"""The encoders by the names of their packages."""


def prepare(encoder: str, vocabulary: Vocabulary, sample: Path, threads: int, *, warm: bool) -> Encode:
    """Load a vocabulary and the documents, and encode them once before the clock if the row is of a warm encoder."""
    set_rayon_threads(threads)
    os.environ["FASTOKENS_BPE_THREADS"] = str(threads)  # its own pool has a thread per processor otherwise
    encode = LOADERS[encoder](vocabulary, sample, threads)
    if warm:
        encode()
    return encode


def run(num_bytes: int, encode: Encode) -> RunResult:
    """Encode all documents."""
    result = encode()
    return RunResult({"MB": num_bytes / MEGABYTE}, lambda: digest_documents(result()))


def _encode(candidate: CandidateTokenizer, sample: Path, threads: int) -> Encode:
    encode = candidate.encoder(read_sample(sample)["content"], threads)

    def run() -> Result:
        result = encode()
        return lambda: result().split()

    return run


def _flat(encoded: Sequence[bytes]) -> Result:
    ids, offsets = np.frombuffer(encoded[0], np.uint32), np.frombuffer(encoded[1], np.uint64).astype(np.int64)
    return lambda: split_ids(ids, offsets)


def _ranks(vocabulary: Vocabulary) -> dict[bytes, int]:
    """Return the tokens of a tokenizer.json as tiktoken takes them.

    Raises:
        BenchmarkError: If the ids are not in the order of the merges, which is all that tiktoken knows.
    """
    model: dict[str, Any] = json.loads(vocabulary.tokenizer_json.read_bytes())["model"]
    made = [model["vocab"][left + right] for left, right in model["merges"]]
    if made != sorted(made):
        raise BenchmarkError(f"{vocabulary.tokenizer_json}: its ids are not in the order of its merges")
    byte_of = {character: byte for byte, character in enumerate(CHARACTERS)}
    return {bytes(byte_of[character] for character in token): number for token, number in model["vocab"].items()}
