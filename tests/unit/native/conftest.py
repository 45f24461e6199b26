"""A small tokenizer of each profile, trained on C++ headers that are on this machine."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cppmill_core
import pyarrow as pa
import pytest
from cppmill_core import Tokenizer

LINES_OF = {"cpp-words-1": "cpp-lines-1", "cpp-words-2": "cpp-lines-2"}
WORDS_OF = {lines: words for words, lines in LINES_OF.items()}
PATTERNS = [*LINES_OF, *WORDS_OF]
CONTROL = ["<PAD>", "<UNK>", "<BOS>", "<EOS>", "<FIM_PREFIX>", "<FIM_SUFFIX>", "<FIM_MIDDLE>"]
RESERVED = ["<RESERVED_7>", "<RESERVED_8>"]
LEARNED = 3000
TRAINED_BYTES = 600_000
EVERY = 12
"""One header in so many is enough: about 100 files, 1.3 MB."""
# GPT-2's byte alphabet.
PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
OTHERS = [byte for byte in range(256) if byte not in PRINTABLE]
ALPHABET = {byte: chr(byte) for byte in PRINTABLE} | {byte: chr(0x100 + at) for at, byte in enumerate(OTHERS)}


@pytest.fixture(scope="session")
def headers() -> list[bytes]:
    """Real C++: some of the headers of the C++ library and of pyarrow."""
    roots = [Path("/usr/include/c++"), Path(pa.get_include())]
    paths = [path for root in roots for path in sorted(root.rglob("*")) if path.is_file()]
    paths = [path for path in paths if path.suffix in ("", ".h", ".hpp", ".tcc")]
    contents = [path.read_bytes() for path in paths[::EVERY]]
    return [content for content in contents if 0 < len(content) < 300_000]


@pytest.fixture(scope="session")
def make_directory(headers: list[bytes], prepared: Callable[..., Path]) -> Callable[[str], Path]:
    """Make the tokenizer directory of a pattern, once; with superwords if the pattern cuts lines."""
    return lambda pattern: prepared(f"native-{pattern}", lambda folder: write_tokenizer(folder, pattern, headers))


@pytest.fixture(scope="session")
def directories(make_directory: Callable[[str], Path]) -> list[Path]:
    """The tokenizer directories of all patterns, for tests that draw texts: drawing takes longer than encoding."""
    return [make_directory(pattern) for pattern in PATTERNS]


@pytest.fixture(scope="session", params=PATTERNS)
def directory(request: pytest.FixtureRequest, make_directory: Callable[[str], Path]) -> Path:
    """A tokenizer directory."""
    return make_directory(request.param)


@pytest.fixture(scope="session")
def tokenizer(directory: Path) -> Tokenizer:
    """The directory as the native core loads it."""
    return Tokenizer.from_dir(directory)


def write_tokenizer(folder: Path, pattern: str, headers: list[bytes]) -> None:
    """Train a tokenizer on some of the headers and write its directory."""
    merges = train(headers[:: sum(map(len, headers)) // TRAINED_BYTES + 1], pattern)
    first_superword = merges["phase"].to_pylist().index(3) if pattern in WORDS_OF else None
    pairs = [(spell(row["left"]), spell(row["right"])) for row in merges.to_pylist()]
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer_json(pattern, pairs)))
    (folder / "manifest.json").write_text(json.dumps(manifest(folder, first_superword)))


def train(documents: list[bytes], pattern: str) -> pa.RecordBatch:
    """Learn merges, a third of them in lines if the pattern cuts them."""
    words = WORDS_OF.get(pattern, pattern)
    batch = pa.record_batch({"content": pa.array(documents, pa.binary())})
    counts: list[Any] = []
    for name in (words, LINES_OF[words]):
        counter = cppmill_core.WordCounter(name)
        counter.add(batch)
        counts.append(counter.finish())
    units = {"units": counts[1], "superword_tokens": LEARNED // 3, "unit_pattern": pattern, "max_superword_words": 6}
    return cppmill_core.train_bpe(
        counts[0].read_all().to_batches(),
        seeds=pa.record_batch({"token": pa.array([], pa.binary()), "atomic": pa.array([], pa.bool_())}),
        vocab_tokens=LEARNED,
        forbidden=[name.encode() for name in CONTROL + RESERVED],
        **(units if pattern in WORDS_OF else {}),
    )


def spell(token: bytes) -> str:
    """Return a token in the byte alphabet."""
    return "".join(ALPHABET[byte] for byte in token)


def tokenizer_json(pattern: str, merges: list[tuple[str, str]]) -> dict[str, Any]:
    """Return what `tokenizers` loads."""
    names = dict.fromkeys([*CONTROL, *RESERVED, *ALPHABET.values(), *(left + right for left, right in merges)])
    split = {"type": "Split", "pattern": {"Regex": cppmill_core.PATTERNS[pattern]}}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": id_, "content": name} | flags for id_, name in enumerate(CONTROL)],
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [split | {"behavior": "Isolated", "invert": False}, byte_level],
        },
        "post_processor": None,
        "decoder": byte_level,
        "model": {"type": "BPE", "vocab": {name: id_ for id_, name in enumerate(names)}, "merges": merges},
    }


def manifest(directory: Path, first_superword: int | None) -> dict[str, Any]:
    """Return the manifest of the tokenizer.json in `directory`."""
    content = (directory / "tokenizer.json").read_bytes()
    return {
        "format": "cppmill-tokenizer-1",
        "vocab_size": len(json.loads(content)["model"]["vocab"]),
        "files": {"tokenizer.json": hashlib.sha256(content).hexdigest()},
        "tokens": [{"id": id_, "token": name, "strength": "control"} for id_, name in enumerate(CONTROL)],
        "reserved": [[len(CONTROL), len(CONTROL) + len(RESERVED) - 1]],
        **({} if first_superword is None else {"superwords": {"first_merge": first_superword}}),
    }
