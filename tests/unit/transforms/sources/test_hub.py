"""Datasets of the Hugging Face Hub as sources: `hf://datasets/ORG/NAME@REVISION/PATH`."""

import pytest

from schemas.errors import StoreError
from schemas.options import IngestOptions
from transforms.ingest.input_units import plan_inputs
from transforms.sources.listing import list_inputs
from transforms.sources.readers import read_batches

FILES = {"src/a.h": b"int a;\n", "src/deep/b.cpp": b"int b;\n", "top.h": b"int top;\n", "src/.git/x.h": b"int x;\n"}
OPTIONS = IngestOptions()


@pytest.fixture
def hub(hub_server):
    """The stand-in, with a repository of two revisions."""
    hub_server.repositories["acme/headers"] = {"main": {**FILES, "src/a.h": b"int changed;\n"}, "v1": FILES}
    return hub_server


def read(source):
    units = plan_inputs(list_inputs([source], OPTIONS), OPTIONS)
    rows = [row for unit in units for batch in read_batches(unit, OPTIONS, keep=True) for row in batch.to_pylist()]
    return {(row["project"], row["path"]): row["content"] for row in rows}


@pytest.mark.parametrize(
    ("below", "found"),
    [
        ("", {("headers", "top.h"), ("src", "src/a.h"), ("src", "src/deep/b.cpp")}),
        ("/src", {("src", "a.h"), ("deep", "deep/b.cpp")}),
        ("/src/**/*.cpp", {("deep", "deep/b.cpp")}),
        ("/src/a.h", {("src", "a.h")}),
    ],
)
def test_a_repository_a_folder_a_glob_and_a_file_of_a_revision_are_sources(hub, below, found):
    assert set(read(f"hf://datasets/acme/headers@v1{below}")) == found


def test_the_revision_decides_what_is_read_and_contents_decide_the_version(hub):
    versions = {}
    for revision, content in (("v1", b"int a;\n"), ("main", b"int changed;\n")):
        source = f"hf://datasets/acme/headers@{revision}"
        assert read(source)["src", "src/a.h"] == content
        versions[revision] = {item.path: item.version for item in list_inputs([source], OPTIONS).inputs}
    assert {path for path in FILES if versions["v1"].get(path) != versions["main"].get(path)} == {"src/a.h"}


def test_a_hub_that_goes_on_failing_is_an_error_and_no_dead_document(hub):
    listing = list_inputs(["hf://datasets/acme/headers@v1/src"], OPTIONS)
    hub.failures = lambda method, path: 503 if "/resolve/" in path else None
    (unit,) = plan_inputs(listing, OPTIONS)
    with pytest.raises(StoreError, match="hf://datasets/acme/headers@v1/src"):
        list(read_batches(unit, OPTIONS, keep=True))
