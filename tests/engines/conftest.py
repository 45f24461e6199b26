"""A process that has torch, and token shards for it."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pipelines.engines.cache import engine_path
from tests.engines import torch_programs
from tests.token_shards import FILES, write_shards


@pytest.fixture(scope="module")
def in_torch() -> Iterator[Callable[..., Any]]:
    """Call a function of a module of programs in a process that has torch, the same one for all tests of a module."""
    options = {"mp_context": multiprocessing.get_context("spawn"), "initializer": torch_programs.begin}
    with ProcessPoolExecutor(1, **options, initargs=(str(engine_path("torch")),)) as pool:
        yield lambda function, *arguments, **named: pool.submit(function, *arguments, **named).result()


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_shards(tmp_path_factory.mktemp("shards"), FILES)
