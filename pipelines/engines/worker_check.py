"""What each worker process checks before its first unit: that it has the launcher's native core, and that it encodes.

A tokenizer of a few merges, made from constants, must give the ids that are listed here. So on any engine, a worker
with another version or with a wheel for another machine fails at once and says what to install.
"""

from __future__ import annotations

import hashlib
import json
import platform
import sys
import uuid
from collections.abc import Iterator
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

import cppmill_core
from cppmill_core.byte_alphabet import BYTES_IN_ORDER, spell
from cppmill_core.manifests import MANIFEST_FORMAT

from schemas.errors import ConfigError
from schemas.files import write_file
from schemas.units import Unit
from tokenizer_build.artifact import MANIFEST_JSON, TOKENIZER_JSON
from transforms.storage.scratch import temporary_folder
from transforms.storage.urls import forget_archives
from transforms.units.flow import FlatMap, Flow

_PATTERN = "cpp-words-1"
_MERGES = ((b"i", b"n"), (b"in", b"t"), (b" ", b"int"), (b"r", b"e"))

GOLDEN_TEXT = b"int f(const int x) { return x; }\xff"
GOLDEN_IDS = (
    *(257, 220, 69, 7, 66, 78, 77, 82, 83, 258, 220, 87, 8, 220),
    *(90, 220, 259, 83, 84, 81, 77, 220, 87, 26, 220, 92, 187),
)
"""The ids of `GOLDEN_TEXT` under the tokenizer of `_MERGES`: the bytes have 0 to 255, the merges follow."""


def check_worker(launcher_version: str) -> None:
    """Check the native core of this process; what is costly about it is done once.

    Args:
        launcher_version: The version of the native core where the pipeline was made.

    Raises:
        ConfigError: Naming both versions, or both lists of ids, this machine, and what to install.
    """
    found = cppmill_core.__version__
    if found != launcher_version:
        raise ConfigError(
            f"{_place()}: its cppmill-core has version {found}, the launcher's has {launcher_version}; install "
            f"cppmill-core=={launcher_version} and its cppmill in the workers' environment"
        )
    ids = _encode_golden_text()
    if ids != GOLDEN_IDS:
        raise ConfigError(
            f"{_place()}: its cppmill-core {found} encodes {GOLDEN_TEXT!r} to {list(ids)}, not to {list(GOLDEN_IDS)}; "
            f"install the wheel that was built for this machine ({platform.machine()})"
        )


@cache
def _encode_golden_text() -> tuple[int, ...]:
    with temporary_folder() as folder:
        _write_tokenizer(Path(folder))
        ids: list[Any] = cppmill_core.Tokenizer.from_dir(folder).encode(GOLDEN_TEXT).to_pylist()
    return tuple(ids)


def _write_tokenizer(folder: Path) -> None:
    tokens = [*(bytes([byte]) for byte in BYTES_IN_ORDER), *(left + right for left, right in _MERGES)]
    model = {
        "type": "BPE",
        "vocab": {spell(token): id_ for id_, token in enumerate(tokens)},
        "merges": [[spell(left), spell(right)] for left, right in _MERGES],
    }
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    pattern = {"Regex": cppmill_core.PATTERNS[_PATTERN]}
    split = {"type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": False}
    tokenizer: dict[str, Any] = {
        "version": "1.0",
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, byte_level]},
        "post_processor": None,
        "decoder": byte_level,
        "model": model,
    }
    content = json.dumps(tokenizer).encode()
    manifest = {
        "format": MANIFEST_FORMAT,
        "vocab_size": len(tokens),
        "files": {TOKENIZER_JSON: hashlib.sha256(content).hexdigest()},
        "tokens": [],
        "reserved": [],
    }
    write_file(folder / TOKENIZER_JSON, content)
    write_file(folder / MANIFEST_JSON, json.dumps(manifest).encode())


def _place() -> str:
    return f"worker on {platform.node()}, {sys.prefix}"


def check_workers(launcher_version: str = cppmill_core.__version__) -> Flow:
    """Return the flow that passes units on, in processes that have the launcher's native core.

    Steps that follow are run in the same process by every engine, as nothing is shuffled in between. Not done where a
    worker is set up: an error there leaves a Python worker waiting for ever, and with it Spark (Beam issue 31571).
    """
    check = partial(_check, launcher_version=launcher_version, flow=uuid.uuid4().hex)
    return (FlatMap(name="CheckWorker", function=check, gives=Unit),)


def _check(unit: Unit, launcher_version: str, flow: str) -> Iterator[Unit]:
    """Check the process and yield the unit; an archive that another flow opened here may have changed since."""
    check_worker(launcher_version)
    _forget_archives_before(flow)
    yield unit


@lru_cache(maxsize=1)
def _forget_archives_before(flow: str) -> None:
    """Forget the archives of earlier flows, once."""
    del flow
    forget_archives()
