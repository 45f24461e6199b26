"""Tokenizers of any make behind one interface, to be compared: each is run by the library that it is made for.

Ours by the native core, a Hugging Face `tokenizer.json` by `tokenizers`, a SentencePiece model by `sentencepiece`, a
file of ranks by `tiktoken`. All get the same documents and give flat ids. Control tokens in text are ordinary text, and
none are added. Libraries that take only text get U+FFFD where a document is not UTF-8, as from any program that reads
the file as text. They then decode to something else than the document, which counts as lossy.

Preparing a library's input and reading its ids are separate from encoding, so they need not be timed.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import cppmill_core
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from cppmill_core.byte_alphabet import read_spelling
from cppmill_core.manifests import MAX_IDS
from cppmill_core.sentencepiece import piece_bytes
from cppmill_core.sentencepiece.proto import read_model

from schemas.digests import parse_json, sha256_file, sha256_json
from schemas.errors import ConfigError
from tokenizer_build.artifact import MANIFEST_JSON, TOKENIZER_JSON
from tokenizer_build.compare.published_patterns import PATTERN_OF_RANKS

if TYPE_CHECKING:
    from sentencepiece import SentencePieceProcessor
    from tiktoken import Encoding
    from tokenizers import Tokenizer

IdArray = npt.NDArray[np.uint32]

TIKTOKEN_MISSING = "tiktoken is not installed, and it runs files of ranks; pip install 'cppmill[compare]'"
_RANKS_SUFFIXES = (".tiktoken", ".tiktoken.gz")
_BYTE_PIECE = re.compile(r"<0x([0-9A-F]{2})>")
_SPACE = "\N{LOWER ONE EIGHTH BLOCK}"


@dataclass(frozen=True)
class TokenLists:
    """The ids of documents, flat, and where each document's begin; the last offset is their number."""

    ids: IdArray
    offsets: npt.NDArray[np.int64]

    def split(self) -> list[IdArray]:
        """Return the ids of each document."""
        return np.split(self.ids, self.offsets[1:-1]) if len(self.offsets) > 1 else []


Result = Callable[[], TokenLists]
"""Makes the ids of what a library gave; outside a clock."""

Encode = Callable[[], Result]
"""Encodes documents; inside a clock."""


class CandidateTokenizer(Protocol):
    """A tokenizer and the library that runs it."""

    @property
    def library(self) -> str:
        """Name and version of the library."""

    @property
    def vocab_size(self) -> int:
        """The number of ids."""

    def encoder(self, documents: pa.Array[Any], threads: int) -> Encode:
        """Convert documents (binary) for the library, and return a call that encodes them on this many threads."""

    def decode(self, lists: TokenLists, threads: int) -> pa.Array[Any]:
        """Decode the ids of each document to its bytes, with the library's own decoder."""

    def token_bytes(self) -> list[bytes | None]:
        """Return the bytes of each id; None for control tokens and ids that nothing uses."""


@dataclass(frozen=True)
class Native:
    """A tokenizer directory of ours, or one that was adopted."""

    tokenizer: cppmill_core.AnyTokenizer

    @property
    def library(self) -> str:
        """Name and version of the library."""
        return f"cppmill {version('cppmill-core')}"

    @property
    def vocab_size(self) -> int:
        """The number of ids."""
        return self.tokenizer.vocab_size

    def encoder(self, documents: pa.Array[Any], threads: int) -> Encode:
        """Arrow bytes to Arrow lists."""

        def encode() -> Result:
            encoded = self.tokenizer.encode_batch(documents, threads)
            return lambda: TokenLists(
                encoded.values.to_numpy().astype(np.uint32), encoded.offsets.to_numpy().astype(np.int64)
            )

        return encode

    def decode(self, lists: TokenLists, threads: int) -> pa.Array[Any]:
        """Decode the ids of each document."""
        offsets = pa.array(lists.offsets.astype(np.int32), pa.int32())
        ids = pa.array(lists.ids, pa.uint32())
        return self.tokenizer.decode_batch(pa.ListArray.from_arrays(offsets, ids), threads)

    def token_bytes(self) -> list[bytes | None]:
        """Return the bytes of each id."""
        return [self.tokenizer.token_bytes(number) for number in range(self.vocab_size)]


class HuggingFace:
    """A `tokenizer.json`, with the fast batch call of `tokenizers`; its settings to cut and pad texts are left out."""

    def __init__(self, path: Path) -> None:
        """Load the file."""
        import tokenizers

        self.library = f"tokenizers {tokenizers.__version__}"
        try:
            self.tokenizer: Tokenizer = tokenizers.Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises nothing narrower
            raise ConfigError(f"{path}: tokenizers cannot read it: {error}") from error
        self.tokenizer.encode_special_tokens = True
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()
        self.vocab_size = 1 + max(self.tokenizer.get_vocab().values(), default=-1)
        if self.vocab_size > MAX_IDS:
            raise ConfigError(f"{path}: its largest id is {self.vocab_size - 1}; a tokenizer may have {MAX_IDS:,} ids")

    def encoder(self, documents: pa.Array[Any], threads: int) -> Encode:
        """Texts to Encodings; how many threads there are is the environment's to say (`set_rayon_threads`)."""
        texts = _texts(documents)

        def encode() -> Result:
            encoded = self.tokenizer.encode_batch_fast(texts, add_special_tokens=False)
            return lambda: _joined(encoding.ids for encoding in encoded)

        return encode

    def decode(self, lists: TokenLists, threads: int) -> pa.Array[Any]:
        """Decode the ids of each document."""
        decoded = self.tokenizer.decode_batch([ids.tolist() for ids in lists.split()], skip_special_tokens=False)
        return _encoded(decoded)

    def token_bytes(self) -> list[bytes | None]:
        """Return the bytes of each id: of the byte-level alphabet, or as SentencePiece spells them."""
        added = self.tokenizer.get_added_tokens_decoder()
        spelled = {number: token for token, number in self.tokenizer.get_vocab().items()}
        level = "ByteLevel" in json.dumps(parse_json(self.tokenizer.to_str())["decoder"])
        read = _read_byte_level if level else _read_piece
        found: list[bytes | None] = [
            None if (token := spelled.get(number)) is None else read(token) for number in range(self.vocab_size)
        ]
        for number, one in added.items():
            found[number] = None if one.special else one.content.encode()
        return found


class SentencePiece:
    """A SentencePiece model."""

    def __init__(self, path: Path) -> None:
        """Load the file."""
        import sentencepiece

        self.library = f"sentencepiece {sentencepiece.__version__}"
        try:
            self.model: SentencePieceProcessor = sentencepiece.SentencePieceProcessor(model_file=str(path))
        except (OSError, RuntimeError) as error:
            raise ConfigError(f"{path}: sentencepiece cannot read it: {error}") from error
        self.vocab_size = int(self.model.vocab_size())
        self._pieces = read_model(path.read_bytes(), where=str(path))

    def encoder(self, documents: pa.Array[Any], threads: int) -> Encode:
        """Texts to lists of ids, with the library's own threads."""
        texts = _texts(documents)

        def encode() -> Result:
            encoded: list[list[int]] = self.model.encode(texts, out_type=int, num_threads=threads)
            return lambda: _joined(encoded)

        return encode

    def decode(self, lists: TokenLists, threads: int) -> pa.Array[Any]:
        """Decode the ids of each document."""
        return _encoded(self.model.decode([ids.tolist() for ids in lists.split()], num_threads=threads))

    def token_bytes(self) -> list[bytes | None]:
        """Return the bytes of each id; a byte token is one byte."""
        return piece_bytes(self._pieces)


class Ranks:
    """Ranks of tokens, with tiktoken."""

    def __init__(self, name: str, ranks: dict[bytes, int], regex: str) -> None:
        """Hand them to the library."""
        try:
            import tiktoken
        except ModuleNotFoundError:
            raise ConfigError(f"{name}: {TIKTOKEN_MISSING}") from None
        self.library = f"tiktoken {tiktoken.__version__}"
        self.ranks = ranks
        self.vocab_size = 1 + max(ranks.values())
        self.encoding: Encoding = tiktoken.Encoding(name, pat_str=regex, mergeable_ranks=ranks, special_tokens={})

    def encoder(self, documents: pa.Array[Any], threads: int) -> Encode:
        """Encode texts to one NumPy array per document, in threads as the library's batch call does it."""
        texts = _texts(documents)
        one = partial(self.encoding.encode_to_numpy, disallowed_special=())

        def encode() -> Result:
            if threads == 1:
                found = [one(text) for text in texts]
            else:
                with ThreadPoolExecutor(threads) as pool:
                    found = list(pool.map(one, texts))
            return lambda: _joined(found)

        return encode

    def decode(self, lists: TokenLists, threads: int) -> pa.Array[Any]:
        """Decode the ids of each document."""
        return pa.array([self.encoding.decode_bytes(ids.tolist()) for ids in lists.split()], pa.binary())

    def token_bytes(self) -> list[bytes | None]:
        """Return the bytes of each id."""
        token_of = {rank: token for token, rank in self.ranks.items()}
        return [token_of.get(number) for number in range(self.vocab_size)]


def open_candidate(path: Path, *, pattern: str | None = None) -> CandidateTokenizer:
    """Open a tokenizer by what it is.

    Args:
        path: A tokenizer directory, a folder with a `tokenizer.json` or that file, a SentencePiece `.model`, or a
            `.tiktoken` file of ranks, `.gz` too.
        pattern: The pattern of a file of ranks: the name of a published vocabulary or a regular expression; by default
            what the name of the file says.

    Raises:
        ConfigError: If it is another file, or its library cannot read it or is not installed.
    """
    if (path / MANIFEST_JSON).is_file():
        return Native(cppmill_core.load_tokenizer(path))
    if (path / TOKENIZER_JSON).is_file():
        return HuggingFace(path / TOKENIZER_JSON)
    if path.is_file():
        if path.name.endswith(_RANKS_SUFFIXES):
            return Ranks(str(path), read_ranks(path), pattern_of(path, pattern))
        if path.suffix == ".model":
            return SentencePiece(path)
        if path.suffix == ".json":
            return HuggingFace(path)
    raise ConfigError(
        f"TOKENIZER {path}: no tokenizer; give a directory with manifest.json or tokenizer.json, a tokenizer.json, a "
        "SentencePiece .model, or a .tiktoken file of ranks"
    )


def tokenizer_digest(path: Path, *, pattern: str | None = None) -> str:
    """Return the digest of a tokenizer, as `open_candidate` takes it.

    That of the manifest of a tokenizer directory, else the SHA-256 of the file; of ranks also of their pattern.
    """
    for name in (MANIFEST_JSON, TOKENIZER_JSON):
        if (path / name).is_file():
            return sha256_file(path / name)
    if path.name.endswith(_RANKS_SUFFIXES):
        return sha256_json({"ranks": sha256_file(path), "pattern": pattern_of(path, pattern)})
    return sha256_file(path)


def set_rayon_threads(threads: int) -> None:
    """Let `tokenizers` use this many threads in this process; call it before anything is encoded."""
    os.environ.update(TOKENIZERS_PARALLELISM="true", RAYON_NUM_THREADS=str(threads))


def read_ranks(path: Path) -> dict[bytes, int]:
    """Read a file of ranks: a line per token, base64 and the rank.

    Raises:
        ConfigError: If it is no such file.
    """
    try:
        data = path.read_bytes()
        lines = (gzip.decompress(data) if path.suffix == ".gz" else data).splitlines()
        rows = [(base64.b64decode(token, validate=True), int(rank)) for token, rank in map(bytes.split, lines)]
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: not a file of ranks: {error}; a line has a token in base64 and its rank") from error
    if not rows:
        raise ConfigError(f"{path}: not a file of ranks: it is empty")
    ranks = dict(rows)
    if b"" in ranks or not len(rows) == len(ranks) == len(set(ranks.values())):
        raise ConfigError(f"{path}: not a file of ranks: a token is empty, or a token or a rank is there twice")
    if min(ranks.values()) < 0 or max(ranks.values()) >= MAX_IDS:
        raise ConfigError(f"{path}: not a file of ranks: a rank is below 0 or not below {MAX_IDS:,}")
    return ranks


def pattern_of(path: Path, pattern: str | None) -> str:
    r"""Return the regular expression for a file of ranks: the given one, or the one that belongs to the file's name.

    Raises:
        ConfigError: If none was given and no published vocabulary has this name.

    Example:
        >>> pattern_of(Path("o200k_base.tiktoken"), None) == PATTERN_OF_RANKS["o200k_base"]
        True
        >>> pattern_of(Path("mine.tiktoken"), r"\w+|\W+")
        '\\w+|\\W+'
    """
    if pattern is not None:
        return PATTERN_OF_RANKS.get(pattern, pattern)
    name = path.name.partition(".")[0]
    if name not in PATTERN_OF_RANKS:
        raise ConfigError(
            f"{path}: its pattern is not known; give --pattern, one of {', '.join(PATTERN_OF_RANKS)} or a regular "
            "expression"
        )
    return PATTERN_OF_RANKS[name]


def _texts(documents: pa.Array[Any]) -> list[str]:
    contents: list[Any] = documents.to_pylist()
    return [content.decode("utf-8", "replace") for content in contents]


def _encoded(texts: Sequence[str]) -> pa.Array[Any]:
    return pa.array([text.encode("utf-8", "replace") for text in texts], pa.binary())


def _joined(lists: Iterable[Sequence[int] | npt.NDArray[np.integer[Any]]]) -> TokenLists:
    arrays = [np.asarray(ids, np.uint32) for ids in lists]
    offsets = np.cumsum([0, *map(len, arrays)], dtype=np.int64)
    return TokenLists(np.concatenate(arrays) if arrays else np.zeros(0, np.uint32), offsets)


def _read_byte_level(token: str) -> bytes:
    """Return the bytes of a token in the byte-level alphabet; of one that is not spelled in it, its characters'."""
    try:
        return read_spelling(token)
    except KeyError:
        return token.encode()


def _read_piece(piece: str) -> bytes:
    r"""Return the bytes of a piece as SentencePiece spells it.

    Example:
        >>> _read_piece("<0x0A>"), _read_piece("\N{LOWER ONE EIGHTH BLOCK}int")
        (b'\n', b' int')
    """
    found = _BYTE_PIECE.fullmatch(piece)
    return bytes.fromhex(found[1]) if found else piece.replace(_SPACE, " ").encode()
