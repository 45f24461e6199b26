"""Fixtures that every test may use."""

from __future__ import annotations

import gc
import os
import pickle
import resource
import tempfile
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from tests.fuzzing import EXAMPLES, FUZZ
from tests.stores import STORES, RunningStore, new_prefix
from transforms.storage.folder import OutputFolder

RunTransform = Callable[..., Any]
ON_STORES = [pytest.param(scheme, marks=pytest.mark.engines) for scheme in STORES]

LONGEST = ["test_faults.py", "test_equivalence.py", "test_object_store.py", "test_peers.py"]
"""Test files that take minutes on engines."""

pytest_plugins = ["pytester", "tests.hub_server", "tests.prepared", "tests.processes"]

hypothesis.settings.register_profile("cppmill", deadline=None, print_blob=True)
hypothesis.settings.register_profile(FUZZ, deadline=None, print_blob=True, derandomize=False, max_examples=EXAMPLES)
hypothesis.settings.load_profile("cppmill")


def pytest_configure(config: pytest.Config) -> None:
    """Keep Hugging Face's libraries, which read this at import, off the network and out of the home folder."""
    folder = tempfile.TemporaryDirectory(prefix="cppmill-huggingface-")
    config.add_cleanup(folder.cleanup)
    os.environ.update(HF_HOME=folder.name, HF_HUB_OFFLINE="1", HF_HUB_DISABLE_TELEMETRY="1")


def pytest_collection_finish() -> None:
    """Let the garbage collector leave alone what was imported and collected, and look at the rest less often.

    It took a fifth of the processor time: each of its full rounds visits every test and every module.
    """
    gc.freeze()
    gc.set_threshold(20_000)


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """Mark each test by the folder of `tests` that it is in; after pytest's own order, the longest files come first."""
    for item in items:
        item.add_marker(item.path.relative_to(Path(__file__).parent).parts[0])
    yield
    items.sort(key=lambda item: LONGEST.index(item.path.name) if item.path.name in LONGEST else len(LONGEST))


@pytest.fixture(scope="session", autouse=True)
def unflushed() -> Iterator[None]:
    """Leave flushing to disk to the system: only a machine that stops could show the difference.

    A small run flushes 400 times, a fifth of its processor time. Processes of their own still flush.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(scope="session")
def repository() -> Path:
    """The folder of the checkout."""
    return Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def start_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], RunningStore]]:
    """Start an object store of a kind, once.

    This process and its children find it by the environment.
    """
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())

        @cache
        def start(scheme: str) -> RunningStore:
            store = stack.enter_context(STORES[scheme](tmp_path_factory.mktemp(scheme)))
            for name, value in store.environment.items():
                patch.setenv(name, value)
            return store

        yield start


@pytest.fixture(scope="session", params=ON_STORES)
def object_store(request: pytest.FixtureRequest, start_store: Callable[[str], RunningStore]) -> RunningStore:
    """An object store of each kind."""
    return start_store(request.param)


@pytest.fixture(params=["local", *ON_STORES])
def place(request: pytest.FixtureRequest, tmp_path: Path, start_store: Callable[[str], RunningStore]) -> Path | str:
    """Somewhere to write to, which is not there yet: a folder, and a prefix of each kind of object store."""
    if request.param == "local":
        return tmp_path / "place"
    return new_prefix(start_store(request.param))


@pytest.fixture
def out(place: Path | str) -> OutputFolder:
    """An output folder, local and on each kind of object store."""
    return OutputFolder(f"{place}/out")


@pytest.fixture
def limited() -> Iterator[Callable[[int, int], None]]:
    """Lower a limit of this process for the rest of a test: `limited(resource.RLIMIT_FSIZE, 1000)`."""
    with ExitStack() as stack:

        def limit(kind: int, value: int) -> None:
            soft, hard = resource.getrlimit(kind)
            stack.callback(resource.setrlimit, kind, (soft, hard))
            resource.setrlimit(kind, (value, hard))

        yield limit


@pytest.fixture
def run_transform(tmp_path: Path) -> RunTransform:
    """Run a transform over elements, in process; its output comes as a list, named outputs as a dict of lists.

    Without elements the transform starts the pipeline.
    """
    # Not above: whoever only distributes the tests needs no Beam.
    import apache_beam as beam
    from apache_beam.options.pipeline_options import PipelineOptions

    from schemas.coders import register_coders

    register_coders()

    def run(transform: beam.PTransform[Any, Any], elements: Iterable[Any] | None = None) -> Any:
        options = PipelineOptions(["--runner=FnApiRunner", "--direct_running_mode=in_memory"])
        with beam.Pipeline(options=options) as pipeline:
            source = pipeline if elements is None else pipeline | "Elements" >> beam.Create(list(elements))
            outputs = source | "Transform" >> transform
            named = outputs if isinstance(outputs, dict) else {"": outputs}
            folders = {name: tmp_path / f"output-{uuid.uuid4()}" for name in named}
            for name, output in named.items():
                folders[name].mkdir()
                _ = output | f"Keep {name}" >> beam.Map(_keep, folder=folders[name])
        results = {name: [pickle.loads(p.read_bytes()) for p in folder.iterdir()] for name, folder in folders.items()}
        return results if isinstance(outputs, dict) else results[""]

    return run


def _keep(element: object, folder: Path) -> None:
    (folder / str(uuid.uuid4())).write_bytes(pickle.dumps(element))
