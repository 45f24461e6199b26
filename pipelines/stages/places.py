"""The URLs that a run reads, asked before anything starts: is it there, and do the credentials allow reading it?"""

from __future__ import annotations

from pathlib import Path

from cppmill_core.manifests import MANIFEST

from configs.runs import RunConfig
from pipelines.stages.platforms import read_platforms
from schemas.errors import ConfigError
from schemas.places import is_remote
from transforms.records.versions import follow_current
from transforms.sources.listing import check_source
from transforms.storage.folder import OutputFolder


def check_urls(config: RunConfig) -> None:
    """Check the sources, the tokenizer and the platforms of a run that are URLs, with a request or two each.

    Raises:
        ConfigError: If one does not exist, its package is not installed, or a platform cannot be used.
        StoreError: If a store fails, or refuses the credentials.
    """
    for source in map(str, config.sources):
        if is_remote(source):
            check_source(source)
    tokenizer = str(config.tokenizer or "")
    if is_remote(tokenizer) and not OutputFolder(follow_current(tokenizer)).exists(MANIFEST):
        raise no_tokenizer(tokenizer)
    if is_remote(str(config.platforms or "")):
        read_platforms(config.platforms)


def no_tokenizer(place: Path | str) -> ConfigError:
    """Return the error for a place that is given as a tokenizer directory and is none."""
    return ConfigError(f"--tokenizer {place}: there is no {MANIFEST} in it; give a directory that `cppmill build` made")
