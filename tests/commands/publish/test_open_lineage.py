"""OpenLineage events of a run: what the receipt says, of the client's own types, in a file and at a server alike."""

import json
import shutil
import sys
import uuid
from pathlib import Path

import pytest
from referencing import Registry, Resource

import cppmill as library
from pipelines.publish.open_lineage import send_events, write_events
from schemas.errors import ConfigError
from tests.json_server import JsonServer

SCHEMAS = Path(__file__).parents[2] / "data" / "open-lineage"


@pytest.fixture(scope="module")
def problems():
    """Return what is wrong with an event by the schemas of OpenLineage, and check that each of its facets has one."""
    from jsonschema import Draft202012Validator, FormatChecker  # compiles 38 grammars; only this file needs them

    schemas = [json.loads(file.read_text()) for file in sorted(SCHEMAS.glob("*.json"))]
    registry = Registry().with_resources([(schema["$id"], Resource.from_contents(schema)) for schema in schemas])

    def check(event):
        found = []
        for value in [event, *facets(event)]:
            url = value["schemaURL"] if value is event else value["_schemaURL"]
            validator = Draft202012Validator({"$ref": url}, registry=registry, format_checker=FormatChecker())
            found += [f"{error.json_path}: {error.message}" for error in validator.iter_errors(value)]
        return found

    return check


def facets(value):
    if isinstance(value, dict):
        yield from ([value] if "_schemaURL" in value else [])
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from facets(item)


def test_the_events_have_the_schema_of_open_lineage_and_others_do_not(run, cppmill, tmp_path, problems):
    for arguments in ((), ("--tokenizer", run.out / "tokenizer")):
        out = run.out
        if arguments:
            out = library.run(run.sources / "numpy", out=tmp_path / "given", tokenizer=arguments[1]).out
        cppmill("lineage", out, "--out", tmp_path / "events.jsonl")
        start, end = (json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines())
        assert problems(start) == problems(end) == []
    assert len(list(facets(end))) > 8
    assert "not one of" in problems({**end, "eventType": "FINISHED"})[0]
    end["outputs"][0]["facets"]["version"].pop("datasetVersion")
    assert "'datasetVersion' is a required property" in "".join(problems(end))


def test_all_versions_of_a_store_are_versions_of_one_dataset(run, cppmill, tmp_path):
    store = tmp_path / "headers"
    for limit in (3, 2):
        library.retokenize(run.sources / "numpy", store=store, tokenizer=run.out / "tokenizer", limit=limit)
    described = {}
    for version in ("v000001", "v000002", ""):
        cppmill("lineage", store / "versions" / version if version else store, "--out", tmp_path / "events.jsonl")
        end = json.loads((tmp_path / "events.jsonl").read_text().splitlines()[-1])
        described[version] = {item["name"]: item["facets"]["version"]["datasetVersion"] for item in end["outputs"]}
    assert set(described["v000001"]) == set(described["v000002"]) == {"headers/documents", "headers/tokens"}
    assert described["v000001"] != described["v000002"] == described[""]


def test_the_events_are_what_the_receipt_says_and_are_sent_as_they_are_written(run, cppmill, tmp_path):
    from openlineage.client import event_v2

    cppmill("lineage", run.out, "--out", tmp_path / "events.jsonl", "--name", "headers")
    written = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    start, end = written
    assert [event["eventType"] for event in written] == ["START", "COMPLETE"]
    assert start["eventTime"] <= end["eventTime"]
    assert start["run"]["runId"] == end["run"]["runId"] == str(uuid.UUID(end["run"]["runId"]))
    assert end["schemaURL"] == event_v2.RunEvent._get_schema()
    receipt, outputs = run.receipt, {item["name"]: item for item in end["outputs"]}
    versions = {name: item["facets"]["version"]["datasetVersion"] for name, item in outputs.items()}
    assert versions == {
        "headers/documents": receipt["corpus"]["digest"],
        "headers/tokens": receipt["dataset"]["digest"],
        "headers/tokenizer": receipt["tokenizer"]["digest"],
    }
    assert outputs["headers/tokens"]["outputFacets"]["outputStatistics"]["fileCount"] == len(
        receipt["dataset"]["shards"]
    )
    assert "token_ids" in [field["name"] for field in outputs["headers/tokens"]["facets"]["schema"]["fields"]]
    received = []

    def take(method, path, sent):
        received.append((method, path, sent))
        return 201, {}

    with JsonServer(take) as server:
        cppmill("lineage", run.out, "--send", f"http://127.0.0.1:{server.port}", "--name", "headers")
    assert [(method, path) for method, path, _ in received] == [("POST", "/api/v1/lineage")] * 2
    for event, (_, _, sent) in zip(written, received, strict=True):
        sent["run"]["facets"] = {name: sent["run"]["facets"][name] for name in event["run"]["facets"]}
        assert sent == event


@pytest.mark.parametrize("url", ["marquez", "http://", "localhost:5000"])
def test_what_is_no_url_of_a_server_is_refused(run, cppmill, url):
    refused = cppmill("lineage", run.out, "--send", url, check=False)
    assert refused.returncode == 2
    assert f"error: --send {url}: no URL of a server" in refused.stderr


def test_events_go_to_a_folder_that_is_there_and_is_no_part_of_the_run(run, cppmill, tmp_path):
    missing = cppmill("lineage", run.out, "--out", tmp_path / "no" / "a.jsonl", check=False)
    assert (missing.returncode, "there is no folder" in missing.stderr) == (2, True)
    inside = cppmill("lineage", run.out, "--out", run.out / "a.jsonl", check=False)
    assert (inside.returncode, (run.out / "a.jsonl").exists()) == (2, False)


def test_without_a_log_the_time_must_be_given_and_a_server_that_refuses_is_an_error(run, cppmill, tmp_path):
    shutil.copytree(run.out, tmp_path / "copy", ignore=shutil.ignore_patterns(".cache"))
    to_file = ("lineage", tmp_path / "copy", "--out", tmp_path / "events.jsonl")
    done = cppmill(*to_file, check=False)
    assert (done.returncode, "give --time" in done.stderr) == (2, True)
    cppmill(*to_file, "--time", "2026-11-30T12:00:00Z")
    assert '"eventTime": "2026-11-30T12:00:00Z"' in (tmp_path / "events.jsonl").read_text()
    with JsonServer(lambda *_: (403, {})) as server:
        done = cppmill("lineage", run.out, "--send", f"http://127.0.0.1:{server.port}", check=False)
    assert (done.returncode, "did not take the events" in done.stderr) == (1, True)
    assert cppmill("lineage", run.out, check=False).returncode == 2


def test_without_the_client_it_is_said_what_to_install(run, tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "openlineage"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "openlineage", None)  # as Python has it of what cannot be imported
    for call, target in ((write_events, tmp_path / "events.jsonl"), (send_events, "http://localhost:1")):
        with pytest.raises(ConfigError, match=r"pip install 'cppmill\[lineage\]'"):
            list(call(str(run.out), target, name="x", time=None))
