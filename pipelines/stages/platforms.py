"""The platforms of a run: those that come with cppmill, and those of the user's file.

The file travels by what is in it: its rules go to the workers with the transform, and the vocabulary that it makes is
`platform_vocab.json` in OUT, from where later stages and versions take it.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import cppmill_core
import pyarrow as pa

from configs.own_platforms import add_platforms, recorded_platforms
from configs.platforms import Platforms, published_platforms
from schemas.errors import ConfigError
from schemas.files import read_regular
from schemas.passwords import with_query
from schemas.places import is_remote
from transforms.ingest.document_shards import Detect
from transforms.records.platforms import PLATFORM_VOCAB
from transforms.records.versions import follow_current
from transforms.storage.folder import OutputFolder
from transforms.storage.urls import open_url, store_errors


def read_platforms(place: Path | str | None) -> Platforms:
    """Return the platforms to find.

    Args:
        place: The user's file, a path or a URL; None if there is none.

    Raises:
        ConfigError: If the file does not exist, or something in it cannot be used.
        StoreError: If a store fails, or refuses the credentials.
    """
    if place is None:
        return published_platforms()
    where = f"--platforms {place}"
    try:
        return add_platforms(_read(str(place)), where=where)
    except OSError as error:
        raise ConfigError(f"{where}: cannot be read: {error.strerror or error}") from error


def made_platforms(out: OutputFolder) -> Platforms:
    """Return the platforms that the documents in OUT were searched for; a run of old has no file of its own."""
    try:
        vocab = out.read_bytes(PLATFORM_VOCAB)
    except FileNotFoundError:
        return published_platforms()
    return recorded_platforms(vocab, where=out.where(PLATFORM_VOCAB))


def publish_platforms(platforms: Platforms, out: OutputFolder) -> None:
    """Write the vocabulary of platforms into OUT, if it is not there."""
    if out.digest(PLATFORM_VOCAB) != platforms.digest:
        out.publish_bytes(PLATFORM_VOCAB, platforms.vocab)


@lru_cache(maxsize=1)
def make_detect(rules: str, threads: int) -> Detect:
    """Return the detector of rules, the same one for all units of a worker."""
    detector = cppmill_core.PlatformDetector(rules)

    def detect(documents: pa.RecordBatch) -> pa.RecordBatch:
        return detector.detect(documents, threads=threads)

    return detect


def _read(place: str) -> bytes:
    if not is_remote(place):
        return read_regular(Path(place))
    with store_errors(place):
        system, path = open_url(follow_current(place))
        return bytes(system.cat_file(with_query(path)))
