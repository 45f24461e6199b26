"""The cache of the engines that `make engines` fetches: outside of the checkout, shared by all checkouts.

Every folder in it is complete, because it is made beside its place and then renamed. Nothing is fetched here.
"""

from __future__ import annotations

import os
from pathlib import Path

from schemas.errors import ConfigError

ENGINES_VARIABLE = "CPPMILL_ENGINES"

FILES = {
    "flink": "flink-1.19.3/job-server.jar",
    "spark": "spark-3.5.0/job-server.jar",
    "spark-home": "spark-3.5.0/site/pyspark",
    "prism": "prism-2.77.0/prism",
    "boot": "boot-2.77.0/boot",
    "versitygw": "versitygw-1.8.0/versitygw",
    "gcs": "fake-gcs-server-1.56.1/fake-gcs-server",
    "dataflow": "dataflow-2.77.0/site",
    "torch": "torch-2.15.0/site",
    "streaming": "streaming-0.13.0/site",
    "megatron": "megatron-0.16.1/site",
    "tokenizers": "tokenizers-3.7.2/files",
}


def engines_folder() -> Path:
    """Return the cache of engines: `$CPPMILL_ENGINES`, else `cppmill/engines` in the user's cache folder."""
    chosen = os.environ.get(ENGINES_VARIABLE)
    if chosen:
        return Path(chosen).absolute()
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "cppmill" / "engines"


def engine_path(name: str) -> Path:
    """Return the path of a fetched engine: a jar, a program, Spark's home folder, or a folder of Python packages.

    Args:
        name: One of `FILES`.

    Raises:
        ConfigError: If it has not been fetched.

    Example:
        >>> engine_path("prism").name  # doctest: +SKIP
        'prism'
    """
    path = engines_folder() / FILES[name]
    if not path.exists():
        raise ConfigError(
            f"{path}: {name} is missing; fetch it with `make engines`, or name the folder that has it in "
            f"{ENGINES_VARIABLE}"
        )
    return path
