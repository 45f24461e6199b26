"""A process that has torch."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest

from pipelines.engines.cache import engine_path
from tests.engines import torch_programs


@pytest.fixture(scope="module")
def in_torch() -> Iterator[Callable[..., Any]]:
    """Call a function of a module of programs in a process that has torch, the same one for all tests of a module."""
    options = {"mp_context": multiprocessing.get_context("spawn"), "initializer": torch_programs.begin}
    with ProcessPoolExecutor(1, **options, initargs=(str(engine_path("torch")),)) as pool:
        yield lambda function, *arguments, **named: pool.submit(function, *arguments, **named).result()
