"""New versions of a dataset: only what changed is made, ids stay, and `current` names a whole version whatever dies."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from configs.runs import load_run_config
from configs.tables import STORE_FLAGS
from pipelines.console.progress import Reporters
from pipelines.stages import run as whole_run
from pipelines.versions.changes import FinishedRun
from pipelines.versions.retokenize import Request, _go_on, retokenize
from pipelines.versions.verify import verify
from schemas.errors import BlockedError
from schemas.options import BuildOptions, IngestOptions, RunOptions
from tests.prepared import SourcesAndStore
from tests.rotten import rot_values
from tests.signing import rewrite, seal
from tests.stores import new_prefix
from transforms.records.receipts import read_receipt
from transforms.records.versions import Versions
from transforms.storage.folder import OutputFolder
from transforms.storage.urls import open_url

ROOT = Path(__file__).parents[2]
HOLD = """
import sys, time
import transforms.storage.lease
from transforms.storage.folder import OutputFolder
transforms.storage.lease.LEASE_SECONDS = 1
lock = OutputFolder(sys.argv[1]).store.lock()
print("held", flush=True)
time.sleep(600)
"""


class Store(SourcesAndStore):
    """A store of one version, and sources to change."""

    @property
    def versions(self):
        return Versions(self.place)

    def again(self, *, keep=3, **flags):
        """Retokenize in this process."""
        return retokenize(Request(file=None, flags=self.flags | flags, keep=keep), Reporters())

    def change(self):
        """Add a document, change one, and remove one; return their names."""
        header, gone = sorted((self.sources / "numpy").rglob("nd*.h"))[:2]
        (self.sources / "numpy" / "new.h").write_text("int added_by_a_test();\n")
        header.write_text(header.read_text() + "// changed by a test\n")
        gone.unlink()
        return ["numpy/new.h", *(path.relative_to(self.sources).as_posix() for path in (header, gone))]


def tree(folder):
    """Every file of an output folder with its bytes, cache and lock left out."""
    names = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()]
    return {name: (folder / name).read_bytes() for name in names if name.parts[0] not in (".cache", ".lock")}


@pytest.fixture(scope="module")
def begun(run, tmp_path_factory):
    """A folder `work`, a link, with sources and a store of one version; what is remembered of sources is by path."""
    folder = tmp_path_factory.mktemp("stores")
    (folder / "work").symlink_to("begun")
    shutil.copytree(run.sources, folder / "begun" / "sources")
    made = Store(folder / "work" / "sources", folder / "work" / "store")
    flags = {"SOURCE": (str(made.sources),), "--out": str(made.out("v000001")), "--unit-bytes": str(1 << 17)}
    whole_run.run(load_run_config(flags={**flags, "--tokenizer": str(run.out / "tokenizer")}), Reporters())
    (made.place / "current").symlink_to("versions/v000001")
    return made


@pytest.fixture
def store(begun, tmp_path):
    """The same store, to be changed by a test: it is where it was."""
    work = begun.place.parent
    shutil.copytree(work, tmp_path / "work", symlinks=True)
    work.unlink()
    work.symlink_to(tmp_path / "work")
    yield begun
    work.unlink()
    work.symlink_to("begun")


def test_the_next_version_takes_filters_from_flags_and_its_vocabulary_from_the_last_one(tmp_path):
    flags = {"SOURCE": [str(ROOT / "schemas")], "--store": str(tmp_path)}
    flags |= {"--drop-generated": True, "--min-hits": "5", "--vocab-size": "9000"}
    configs = RunOptions(ingest=IngestOptions(drop_minified=True)).to_json()
    order = Request(file=None, flags=flags, keep=1)
    first = load_run_config(flags=flags, names=STORE_FLAGS)
    assert (first.options.build.min_hits, first.options.build.vocab_size) == (5, 9000)
    config = _go_on(order, first, FinishedRun(OutputFolder(tmp_path), {"configs": configs}))
    assert config.options.build == BuildOptions()
    assert config.options.ingest == IngestOptions(drop_minified=True, drop_generated=True)
    assert config.tokenizer == f"{tmp_path}/tokenizer"


@pytest.mark.parametrize(
    ("options", "table", "kept"),
    [
        (["--drop-secrets", "--drop-generated"], "ingest", {"drop_secrets": True, "drop_generated": True}),
        (["--extensions", "h"], "ingest", {"extensions": ["h"]}),
        (["--platform-prefix"], "tokenize", {"platform_prefix": True}),
        (["--max-dead-fraction", "0.5"], None, {"max_dead_fraction": 0.5}),
    ],
)
def test_options_that_change_no_document_today_are_those_of_the_next_version(store, cppmill, options, table, kept):
    cppmill(*store.command, *options)
    for name in ("v000002", "v000003"):
        configs = read_receipt(OutputFolder(store.out(name)))["configs"]
        assert kept.items() <= (configs if table is None else configs[table]).items()
        assert verify(str(store.out(name))) == []
        if name == "v000002":
            assert cppmill(*store.command, *options, check=False).returncode == 10
            store.change()
            cppmill(*store.command)
    has_prefixes = "prefix_token_ids" in pq.read_schema(next(store.out("v000003").glob("tokens/part-*"))).names
    assert has_prefixes == ("--platform-prefix" in options)


def test_an_option_that_needs_another_one_finds_it_in_the_version_before(store, cppmill):
    form = ["--platform-prefix-form", "categories"]
    done = cppmill(*store.command, *form, check=False)
    assert (done.returncode, "set platform_prefix = true" in done.stderr) == (2, True)
    cppmill(*store.command, "--platform-prefix")
    cppmill(*store.command, *form)
    tokenize = read_receipt(OutputFolder(store.out("v000003")))["configs"]["tokenize"]
    assert (tokenize["platform_prefix"], tokenize["platform_prefix_form"]) == (True, "categories")


def test_another_license_of_the_same_document_is_a_new_version(run, cppmill, tmp_path):
    rows, store = tmp_path / "rows.jsonl", tmp_path / "store"
    command = ["retokenize", rows, "--store", store, "--no-drift"]
    for license_id, options in (("MIT", ["--tokenizer", run.out / "tokenizer"]), ("GPL-3.0-only", [])):
        rows.write_text(json.dumps({"path": "a.h", "content": "int a;\n", "license": license_id}))
        cppmill(*command, *options, "--license-column", "license")
        (documents,) = (store / "current/documents").glob("part-*")
        assert pq.read_table(documents, columns=["license"])["license"].to_pylist() == [license_id]
    assert cppmill(*command, check=False).returncode == 10
    said = cppmill("withdraw", store, "--licenses", "GPL-3.0-only", check=False)
    assert "v000002: 1 withdrawn document" in said.stdout + said.stderr


def test_a_version_that_is_damaged_is_not_up_to_date(store, cppmill):
    out = store.out("v000001")
    (damaged, *_), (receipt, *_) = sorted(out.glob("tokens/part-*")), sorted(out.glob("units/documents/*"))
    damaged.unlink(), receipt.unlink()
    done = cppmill(*store.command)
    assert f"{receipt.name}: missing" not in done.stdout and "(2 such files); this version replaces" in done.stderr
    assert (store.versions.current, verify(str(store.out("v000002")))) == ("v000002", [])
    assert cppmill(*store.command, check=False).returncode == 10


@pytest.mark.parametrize("name", ["documents", "tokens", "units/tokens", "proofs"])
def test_a_version_whose_files_are_behind_a_link_is_not_up_to_date(store, tmp_path, cppmill, name):
    folder = store.out("v000001") / name
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    assert "this version replaces that one" in cppmill(*store.command).stderr
    assert (store.versions.current, verify(str(store.out("v000002")))) == ("v000002", [])


@pytest.mark.parametrize(
    "name", ["documents/zz", "tokens/zz.parquet", "tokenizer/zz", "counts/parts/zz", "units/tokens/zz", "proofs/zz"]
)
@pytest.mark.parametrize("is_link", [False, True], ids=["file", "link"])
def test_a_version_with_what_its_receipt_does_not_name_is_not_up_to_date(store, cppmill, name, is_link):
    stray = store.out("v000001") / name
    stray.parent.mkdir(parents=True, exist_ok=True)
    stray.symlink_to(store.sources) if is_link else stray.write_bytes(b"zz")
    done = cppmill(*store.command)
    assert f"{name}: missing, or not a file that the receipt names (1 such file)" in done.stderr
    assert (store.versions.current, verify(str(store.out("v000002")))) == ("v000002", [])


@pytest.mark.parametrize("folder", ["units/documents", "units/tokens", "proofs"])
def test_a_version_whose_receipt_of_a_unit_rots_with_its_time_kept_is_not_up_to_date(store, cppmill, folder):
    receipt = sorted(store.out("v000001").glob(f"{folder}/_unit-*.json"))[0]
    data, times = bytearray(receipt.read_bytes()), (receipt.stat().st_atime_ns, receipt.stat().st_mtime_ns)
    data[len(data) // 2] ^= 1
    receipt.write_bytes(data), os.utime(receipt, ns=times)
    assert "this version replaces that one" in cppmill(*store.command).stderr
    assert (store.versions.current, verify(str(store.out("v000002")))) == ("v000002", [])


@pytest.mark.parametrize("damage", [Path.unlink, lambda file: file.write_bytes(b"# Another\n")])
def test_what_lies_beside_a_tokenizer_is_handed_on_as_the_receipt_names_it(store, cppmill, damage):
    damage(store.out("v000001") / "tokenizer/findings.md")
    done = cppmill(*store.command, check=False)
    assert (done.returncode, "tokenizer/findings.md: missing, or not the file" in done.stderr) == (1, True), done.stderr
    assert store.versions.current == "v000001"


def test_a_version_that_lacks_a_file_of_no_unit_is_not_up_to_date(store, cppmill):
    (store.out("v000001") / "platform_vocab.json").unlink()
    cppmill(*store.command)
    assert store.versions.current == "v000002"
    cppmill("verify", store.out("v000002"))


@pytest.mark.parametrize("filters", [[], ["--near-duplicate-similarity", "0.9"]], ids=["", "near_duplicates"])
def test_with_nothing_new_there_is_no_new_version_and_the_exit_code_says_so(store, cppmill, filters):
    command = [*store.command, *filters]
    cppmill(*command, check=False)
    (version,) = store.versions.names[-1:]
    before = tree(store.out(version))
    for path in store.sources.rglob("*.*"):
        path.touch()
    for is_touched in (True, False):
        done = cppmill(*command, check=False)
        assert done.returncode == 10
        assert f"{version} is up to date, so there is nothing to do" in done.stdout
        assert ("read" in done.stderr) == is_touched, "sources that were touched are read again, once"
        assert store.versions.names[-1] == version
        assert tree(store.out(version)) == before


def test_a_new_version_is_made_of_what_changed_beside_the_old_one(store, cppmill, checker):
    cppmill(*store.command, check=False)  # the sources are a copy, which is read again, once
    added, changed, removed = store.change()
    before = tree(store.out("v000001"))
    done = cppmill(*store.command, "--json")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    ran = {event["stage"]: event["summary"].get("units run") for event in events if event["event"] == "stage_done"}
    assert set(ran) == {"read", "ingest", "tokenize", "validate", "drift"}
    old, new = store.receipt("v000001"), store.receipt("v000002")
    assert 0 < ran["tokenize"] < len(new["dataset"]["shards"]) - 1
    assert 0 < ran["read"] <= ran["ingest"]
    assert events[-1]["event"] == "retokenized"
    assert (events[-1]["version"], store.versions.current, store.versions.building) == ("v000002", "v000002", None)
    documents = events[-1]["changes"]["documents"]
    assert {name: documents[name] for name in ("added", "changed", "removed")} == {
        "added": 1,
        "changed": 1,
        "removed": 1,
    }
    assert documents["same"] == old["dataset"]["documents"] - 2
    named = [documents["named"][kind] for kind in ("added", "changed", "removed")]
    assert named == [[{"project": "numpy", "path": path}] for path in (added, changed, removed)]
    assert tree(store.out("v000001")) == before
    for name in ("v000001", "v000002"):
        assert verify(str(store.out(name))) == []
    assert not checker(store.out("v000002"), "--sources", store.sources)


def test_the_new_version_is_the_dataset_that_a_run_makes_with_the_same_tokenizer(store, tmp_path):
    store.change()
    store.again()
    flags = {"SOURCE": (str(store.sources),), "--out": str(tmp_path / "anew"), "--unit-bytes": str(1 << 17)}
    tokenizer = str(store.out("v000001") / "tokenizer")
    whole_run.run(load_run_config(flags={**flags, "--tokenizer": tokenizer}), Reporters())
    anew = read_receipt(OutputFolder(tmp_path / "anew"))
    made = store.receipt("v000002")
    for name in ("corpus", "dataset", "ledger", "tokenizer"):
        assert made[name] == anew[name]
    assert made["configs"] == store.receipt("v000001")["configs"], "options are those of the version before"


def test_what_did_not_change_is_shared_and_not_copied(store):
    store.change()
    store.again()
    old, new = (
        {shard["path"] for shard in store.receipt(name)["dataset"]["shards"]} for name in ("v000001", "v000002")
    )
    assert old & new
    for name in old & new:
        assert (store.out("v000001") / name).samefile(store.out("v000002") / name)
    tokenizers = [store.out(name) / "tokenizer" / "tokenizer.json" for name in ("v000001", "v000002")]
    assert tokenizers[0].samefile(tokenizers[1])


def test_files_that_were_only_touched_make_no_new_version(store):
    for path in store.sources.rglob("*.h"):
        os.utime(path)
    assert store.again().changes is None
    assert store.versions.names == ["v000001"]
    assert store.versions.building is None


def test_another_tokenizer_moves_ids_and_the_changes_say_so(store, other_tokenizer):
    outcome = store.again(**{"--tokenizer": str(other_tokenizer)})
    ids = outcome.changes["ids"]
    assert ids["tokenizer"]["before"] != ids["tokenizer"]["after"]
    assert ids["moved"] > 0
    assert ids["kept"] + ids["moved"] + ids["added"] <= 8192
    assert outcome.changes["documents"]["same"] == store.receipt("v000001")["dataset"]["documents"]
    assert outcome.changes["shards"]["kept"] == 0
    assert verify(outcome.place) == []
    assert store.again().changes is None, "the version before gives the tokenizer"


def only_headers(receipt):
    receipt["configs"]["ingest"]["extensions"] = ["cuh"]


def test_a_version_is_not_made_after_a_receipt_that_was_changed(store, cppmill):
    path = store.out("v000001") / "receipt.json"
    rewrite(path, only_headers)
    done = cppmill(*store.command, check=False)
    assert done.returncode == 1
    assert f"{path}: its digest is" in done.stderr
    assert "it was changed; v000001 is the current version; restore the file, or name another --store" in done.stderr


def test_a_damaged_receipt_of_the_current_version_is_an_error_with_a_way_out(store, cppmill):
    store.change()
    store.again()
    (store.out("v000002") / "receipt.json").write_bytes(b"{")
    done = cppmill(*store.command, check=False)
    assert done.returncode == 1
    assert "restore the file, let `current` name another one of v000001, or name another --store" in done.stderr
    (store.place / "current").unlink()
    (store.place / "current").symlink_to("versions/v000001")
    assert store.again().version == "v000003"


def test_a_version_does_not_take_another_tokenizer_than_the_one_before_names(store, cppmill, other_tokenizer):
    folder = store.out("v000001") / "tokenizer"
    shutil.rmtree(folder)
    shutil.copytree(other_tokenizer, folder)
    done = cppmill(*store.command, check=False)
    assert done.returncode == 1
    assert f"{folder}/manifest.json: missing, or not the file of SHA-256" in done.stderr


def test_changes_are_not_recorded_from_shards_that_are_missing_or_others(store, cppmill):
    store.change()
    first, *others = sorted((store.out("v000001") / "tokens").glob("part-*"))
    for shard in others:
        shard.write_bytes(first.read_bytes())
    first.unlink()
    for receipt in store.out("v000001").glob("units/tokens/*"):
        receipt.unlink()  # which name the documents shards
    done = cppmill(*store.command, check=False)
    assert done.returncode == 1
    assert "missing, or not the file that the receipt names; restore it, let `current` name another" in done.stderr
    assert store.versions.current == "v000001"


def test_a_store_begins_with_a_first_version(run, tmp_path, cppmill):
    command = ("retokenize", run.sources / "numpy", "--store", tmp_path, "--tokenizer", run.out / "tokenizer")
    done = cppmill(*command)
    assert f"v000001 is complete: {tmp_path}/versions/v000001" in done.stdout
    cppmill("verify", tmp_path / "current")
    assert cppmill("retokenize", run.sources / "numpy", "--store", tmp_path, check=False).returncode == 10


def test_the_first_version_takes_a_vocabulary_size_and_the_next_ones_keep_it(run, tmp_path):
    sources = tmp_path / "sources"
    shutil.copytree(run.sources / "numpy", sources)
    made = Store(sources, tmp_path / "store")
    assert made.again(**{"--vocab-size": "12288"}).version == "v000001"
    assert made.again(**{"--vocab-size": "16384"}).changes is None
    assert made.receipt("v000001")["tokenizer"]["vocab_size"] == 12288


def test_the_folder_of_a_run_is_refused_and_left_as_it_was(copied_run, cppmill):
    before = copied_run.tree()
    done = cppmill("retokenize", copied_run.sources, "--store", copied_run.out, check=False)
    assert done.returncode == 2
    assert f"error: --store {copied_run.out}: it holds receipt.json: the folder of a run" in done.stderr
    assert copied_run.tree() == before
    assert json.loads(cppmill("status", copied_run.out, "--json").stdout)["state"] == "done"


def test_a_run_does_not_write_into_a_store(store, cppmill):
    done = cppmill("run", store.sources, "--out", store.place, "--profile", "demo", check=False)
    assert done.returncode == 2
    assert f"error: --out {store.place}: a store of versions" in done.stderr


def test_without_the_pointer_no_version_is_made_and_the_error_names_the_choices(store, cppmill):
    (store.place / "current").unlink()
    for command in (store.command, ("status", store.place)):
        done = cppmill(*command, check=False)
        assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
        assert done.stderr.endswith(f"let it name one: ln -s versions/v000001 {store.place}/current\n")
    assert store.versions.names == ["v000001"]
    subprocess.run(done.stderr.rpartition("let it name one: ")[2], shell=True, check=True)
    assert store.again().changes is None


def test_empty_sources_make_no_new_version(store, cppmill):
    shutil.rmtree(store.sources)
    store.sources.mkdir()
    (store.sources / "empty.h").touch()
    done = cppmill(*store.command, check=False)
    assert done.returncode == 3
    assert "nothing is left of the " in done.stderr
    assert (store.versions.current, store.versions.names, store.versions.building) == ("v000001", ["v000001"], None)
    found = cppmill("status", store.place, check=False)
    assert (found.returncode, ": nothing is left of the " in found.stdout) == (1, True)


def status_of(store, cppmill):
    """Exit code of `status` of a store, and what it says of the last command."""
    done = cppmill("status", store.place, "--json", check=False)
    attempt = json.loads(done.stdout)["attempt"]
    return done.returncode, attempt and (attempt["outcome"], attempt["message"])


def test_the_status_of_a_store_says_how_the_last_command_ended(store, cppmill):
    assert status_of(store, cppmill) == (0, None)
    assert store.again().changes is None
    nothing = (0, ("done", "v000001 is up to date, so there is nothing to do"))
    assert status_of(store, cppmill) == nothing
    with OutputFolder(store.place).store.lock():
        assert cppmill(*store.command, check=False).returncode == 11
    assert status_of(store, cppmill) == nothing, "what was blocked is not what was done"
    logs = sorted((store.place / ".cache/events").iterdir())
    assert json.loads(logs[-1].read_text().splitlines()[-1])["outcome"] == "blocked"
    missing = store.sources / "gone"
    assert cppmill("retokenize", missing, "--store", store.place, check=False).returncode == 2
    assert status_of(store, cppmill) == (1, ("failed", f"SOURCE {missing}: no such file or folder"))
    store.change()
    store.again()
    assert status_of(store, cppmill) == (0, ("done", "v000002 is complete"))


def test_the_status_of_a_store_comes_before_that_of_the_run_of_a_version(store, cppmill):
    name = store.versions.begin("v000001")
    with OutputFolder(store.place).store.lock():
        running = json.loads(cppmill("status", store.place, "--json").stdout)
    assert (running["current"], running["building"], running["run"]["state"]) == ("v000001", name, "running")
    assert running["holder"].endswith(f", process {os.getpid()}")
    died = cppmill("status", store.place, check=False)
    assert died.returncode == 1
    assert died.stdout.startswith(
        f"{store.place}: v000001 of 2 versions is the current one\nbuilding  {name}; the same"
    )
    assert f"{name}: died: the same command continues" in died.stdout


def test_while_another_is_at_work_it_is_blocked(store, cppmill):
    store.change()
    with OutputFolder(store.place).store.lock():
        done = cppmill(*store.command, check=False)
        assert done.returncode == 11
        assert "another run is writing here" in done.stderr
        assert f", process {os.getpid()}" in done.stderr
    version = store.versions.out(store.versions.begin("v000001"))
    with version.store.lock(), pytest.raises(BlockedError):
        store.again()
    assert store.versions.current == "v000001"


def die_holding(processes, place):
    """Let a process die that holds the lock of a store; return its id."""
    with processes.start(HOLD, [place], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == "held\n"
        process.kill()
    return process.pid


def test_the_lock_of_a_holder_that_died_is_taken_over_and_the_command_says_so(store, cppmill, processes):
    dead = die_holding(processes, store.place)
    done = cppmill(*store.command, check=False)
    assert done.returncode == 10
    assert f"process {dead}, which ended without releasing it" in done.stderr


DYING = """
import os
from dataclasses import replace
from pathlib import Path
from schemas.units import Stage
from pipelines.versions import retokenize
from pipelines.stages import run
from transforms.storage.folder import OutputFolder
from transforms.storage.local import LocalStore
from transforms.records.versions import Versions

def die(*_, **__):
    os.kill(os.getpid(), 9)

def die_after(owner, name, calls=1):
    inner, left = getattr(owner, name), [calls]
    def call(*arguments, **named):
        result = inner(*arguments, **named)
        left[0] -= 1
        return die() if left[0] == 0 else result
    setattr(owner, name, call)

POINT
from pipelines.cli.app import main
main()
"""
POINTS = {
    "a version was begun": ("die_after(Versions, 'begin')", "v000001"),
    "some files were taken": ("die_after(LocalStore, 'link', 7)", "v000001"),
    "its documents were written": (
        "run.PROGRAMS[Stage.TOKENIZE] = replace(run.PROGRAMS[Stage.TOKENIZE], work=die)",
        "v000001",
    ),
    "its receipt was written": ("retokenize.find_changes = die", "v000001"),
    "its shards were counted": ("retokenize.record_drift = die", "v000001"),
    "its drift was recorded": ("die_after(retokenize, 'record_drift')", "v000001"),
    "the changes were written": ("LocalStore.set_pointer = die", "v000001"),
    "the pointer was moved": ("die_after(LocalStore, 'set_pointer')", "v000002"),
    "a part of an old version was removed": (
        "Versions._remove = lambda self, name: (self.folder.remove(f'versions/{name}/receipt.json'), die())",
        "v000002",
    ),
}


@pytest.mark.parametrize("point", POINTS)
def test_current_is_complete_wherever_a_command_dies_and_the_next_one_continues(point, store, processes):
    code, current = POINTS[point]
    store.change()
    process = processes.start(DYING.replace("POINT", code), [*store.command, "--keep", 1, "--quiet"], cwd=store.place)
    assert process.wait() == -signal.SIGKILL
    assert store.versions.current == current
    assert verify(str(store.place / "current")) == []
    outcome = store.again(keep=1)
    assert (outcome.changes is None) == (current == "v000002")
    assert (store.versions.current, store.versions.names) == ("v000002", ["v000002"])
    assert store.versions.building is None
    assert verify(str(store.place / "current")) == []


def test_a_shared_file_that_is_removed_as_it_is_damaged_is_not_shared_again(store, cppmill):
    for path in store.out("v000001").glob("documents/part-*"):
        status = path.stat()
        with path.open("r+b") as file:  # of all versions that share it
            file.seek(100)
            byte = file.read(1)
            file.seek(100)
            file.write(bytes([byte[0] ^ 1]))
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    store.change()
    removed, options = [], ("--rebuild-tokenizer", "--vocab-size", "12288")
    while (done := cppmill(*store.command, *options, check=False)).returncode:
        path = re.search(r"error: (\S+): its SHA-256 is .*remove it and run again$", done.stderr, re.M)[1]
        assert path not in removed
        Path(path).unlink()
        removed.append(path)
    assert removed
    assert verify(str(store.place / "current")) == []


@pytest.mark.engines
def test_on_an_object_store_versions_and_pointer_are_the_same(
    store, object_store, cppmill, processes, caplog, tmp_path
):
    place = new_prefix(object_store)
    system, _ = open_url(place)
    numpy = Store(shutil.copytree(store.sources / "numpy", tmp_path / "numpy"), place)
    tokenizer = str(store.out("v000001") / "tokenizer")
    options = {"--tokenizer": tokenizer, "--unit-bytes": str(1 << 16)}
    assert numpy.again(**options).version == "v000001"
    assert cppmill(*numpy.command, check=False).returncode == 10
    (numpy.sources / "added.h").write_text("int added();\n")
    outcome = numpy.again(keep=2)
    assert (outcome.version, numpy.versions.names) == ("v000002", ["v000001", "v000002"])
    assert outcome.changes["shards"]["kept"] > 0
    assert json.loads(system.cat_file(f"{place}/current"))["target"] == "versions/v000002"
    for name in numpy.versions.names:
        assert verify(f"{place}/versions/{name}") == []
    status = json.loads(cppmill("status", place, "--json").stdout)
    assert (status["current"], status["building"], status["run"]["state"]) == ("v000002", None, "done")
    assert f"{place}/versions/v000002: everything matches" in cppmill("verify", f"{place}/current").stdout
    assert json.loads(cppmill("status", f"{place}/current/", "--json").stdout)["receipt"]
    (tmp_path / "a.cpp").write_text("int main() {}\n")
    ids = [
        cppmill("encode", "--tokenizer", at, tmp_path / "a.cpp").stdout
        for at in (f"{place}/current/tokenizer", tokenizer)
    ]
    assert ids[0] == ids[1]
    (numpy.sources / "another.h").write_text("int another();\n")
    dead = die_holding(processes, place)
    assert numpy.again(keep=1).removed == ("v000001", "v000002")
    assert f"process {dead}, which stopped renewing it" in caplog.text
    assert numpy.versions.names == ["v000003"]
    assert not system.exists(f"{place}/.lock")
    trend = [json.loads(line) for line in cppmill("changes", place, "--trend", "--json").stdout.splitlines()]
    states = [(one["version"], one["is_kept"]) for one in trend if one["record"] == "version"]
    assert states == [("v000001", False), ("v000002", False), ("v000003", True)]
    assert "; 3 versions, " in cppmill("report", place, "--out", tmp_path / "page.html").stdout


@pytest.mark.parametrize("damage", ["gone", "rotten"])
def test_a_damaged_token_shard_whose_unit_changed_does_not_stop_the_next_version(store, cppmill, damage):
    cppmill(*store.command, check=False)
    whole = tree(store.out("v000001"))
    added, changed, removed = store.change()
    for shard in store.out("v000001").glob("tokens/part-*.parquet"):
        if changed.partition("/")[2] in str(pq.read_table(shard, columns=["path"])["path"].to_pylist()):
            shard.unlink() if damage == "gone" else rot_values(shard, ["project"])
    assert tree(store.out("v000001")) != whole
    outcome = json.loads(cppmill(*store.command, "--json").stdout.splitlines()[-1])
    documents = outcome["changes"]["documents"]
    assert [documents[kind] for kind in ("added", "changed", "removed")] == [1, 1, 1]
    assert verify(str(store.out("v000002"))) == []
    trend = json.loads((store.place / "trend/v000002.json").read_bytes())
    assert trend["projects"]["number"] == len({name.parts[0] for name in documents_of(store.sources)})


def documents_of(sources):
    return [path.relative_to(sources) for path in sources.rglob("*") if path.is_file()]


@pytest.mark.parametrize("folder", ["changes", "trend", "drift"])
def test_a_version_that_is_not_the_one_of_the_records_is_not_gone_on_from(store, cppmill, folder):
    store.change()
    cppmill(*store.command)
    record = store.place / folder / "v000002.json"
    whole = record.read_bytes()
    record.write_bytes(whole.replace(b'"version"', b'"versiom"'))
    done = cppmill(*store.command, check=False)
    assert (done.returncode, f"error: {record}: " in done.stderr) == (1, True), done.stderr

    def change(value):
        if folder == "changes":
            value["receipt"]["after"] = "0" * 64
        else:
            value["receipt"] = "0" * 64
        seal(value)

    record.write_bytes(whole)
    rewrite(record, change)
    (store.sources / "numpy" / "newer.h").write_text("int newer;")
    done = cppmill(*store.command, check=False)
    assert (done.returncode, f"error: {record}: its receipt is {'0' * 64}, that of " in done.stderr) == (1, True)
    record.unlink()
    cppmill(*store.command)
    assert verify(str(store.out("v000003"))) == []


def test_nothing_is_written_through_a_link_in_an_unfinished_version(store, cppmill, tmp_path):
    store.change()
    (tmp_path / "elsewhere").mkdir()
    store.out("v000002").mkdir()
    (store.out("v000002") / "tokens").symlink_to(tmp_path / "elsewhere")
    (store.place / "building.json").write_text('{"version": "v000002"}')
    cppmill(*store.command)
    assert not list((tmp_path / "elsewhere").iterdir())
    assert verify(str(store.out("v000002"))) == []


@pytest.mark.parametrize(
    "place", ["current", "versions/v000001", "versions/v000009", "current/tokens/inner", "changes"]
)
def test_nothing_but_the_store_writes_into_its_versions(store, run, cppmill, place):
    before = tree(store.place)
    words = [
        ["run", store.sources, "--tokenizer", run.out / "tokenizer"],
        ["tokenize", store.sources, "--tokenizer", run.out / "tokenizer"],
        ["sequences", run.out, "--length", "256"],
        ["report", run.out],
        ["byte-tables", "--tokenizer", run.out / "tokenizer"],
    ]
    for command in words:
        is_file = command[0] in ("report", "byte-tables")
        done = cppmill(*command, "--out", store.place / place / "a" if is_file else store.place / place, check=False)
        assert (done.returncode, f"--out {store.place}/{place}" in done.stderr) == (2, True), done.stderr
    done = cppmill("retokenize", store.sources, "--store", store.place / "versions", check=False)
    assert (done.returncode, "/store is a store of versions; name another" in done.stderr) == (2, True), done.stderr
    assert tree(store.place) == before


def test_nothing_is_written_into_the_folder_of_another_run(copied_run, run, cppmill):
    before = copied_run.tree()
    for command in (["run", run.sources, "--vocab-size", "12288"], ["sequences", run.out, "--length", "256"]):
        done = cppmill(*command, "--out", copied_run.out / "tokens/inner", check=False)
        assert (done.returncode, f"{copied_run.out}/receipt.json lists every file there" in done.stderr) == (2, True), (
            done.stderr
        )
    assert copied_run.tree() == before
