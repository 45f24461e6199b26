"""A run on an object store is the run in a local folder: the same files, the same commands."""

import hashlib
import json
import subprocess

import pyarrow.parquet as pq
import pytest

import cppmill as library
from tests.stores import new_prefix
from transforms.storage.urls import open_url

pytestmark = pytest.mark.engines
STAGES = ("ingest", "scan", "tokenize", "validate")
TOKENIZER = ("manifest.json", "tokenizer.json", "vocab.tsv")


@pytest.fixture(scope="module")
def url(object_store):
    return new_prefix(object_store)


@pytest.fixture(scope="module")
def stored(run, cppmill, url):
    """The finished run, made once more on the object store."""
    made = type(run)(run.sources, f"{url}/out")
    cppmill(*made.command)
    return made


@pytest.fixture(scope="module")
def copied(stored, tmp_path_factory):
    """A local copy of it, as any tool makes one."""
    folder = tmp_path_factory.mktemp("copied") / "out"
    open_url(stored.out)[0].get(stored.out, str(folder), recursive=True)
    return type(stored)(stored.sources, folder)


def test_the_files_are_those_of_a_local_run(run, copied):
    assert copied.tree() == run.tree()


def test_the_independent_checker_finds_nothing_wrong_with_a_copy(copied, checker):
    assert not checker(copied.out, "--sources", copied.sources)


def test_verify_reads_it_where_it_is(stored, cppmill):
    assert f"{stored.out}: everything matches the receipt" in cppmill("verify", stored.out).stdout


def test_a_second_run_does_nothing_and_the_plan_says_so(stored, cppmill):
    planned = [json.loads(line) for line in cppmill("plan", *stored.command[1:], "--json").stdout.splitlines()]
    assert {line["action"] for line in planned} == {"skip"}
    ran = stored.stages(cppmill(*stored.command, "--json"))
    assert [ran[stage] for stage in STAGES] == [0, 0, 0, 0]


def test_a_damaged_shard_is_found_named_and_made_again(stored, cppmill, copied):
    system, _ = open_url(stored.out)
    name = sorted((copied.out / "tokens").glob("part-*.parquet"))[0].name
    damaged = f"{stored.out}/tokens/{name}"
    data = (copied.out / "tokens" / name).read_bytes()
    system.pipe_file(damaged, data[:-1])
    done = cppmill("verify", stored.out, check=False)
    assert done.returncode == 1
    assert name in (done.stdout + done.stderr).replace("\n", "")
    ran = stored.stages(cppmill(*stored.command, "--json"))
    assert (ran["tokenize"], ran["validate"]) == (1, 0)
    assert hashlib.sha256(system.cat_file(damaged)).digest() == hashlib.sha256(data).digest()
    cppmill("verify", stored.out)


def test_what_does_not_fit_the_checksum_of_the_store_is_damaged(stored, cppmill, object_store):
    if object_store.scheme != "s3":
        return  # the other store computes the checksum of what it has whenever it is asked
    root = object_store.objects / stored.out.partition("://")[2]
    for name in (".cache/stages/ingest.json", "receipt.json"):
        path = root / name
        whole, damaged = path.read_bytes(), f"{stored.out}/{name}: damaged: "
        with path.open("r+b") as file:  # in place, so that the store keeps what it knows of it
            file.seek(len(whole) // 2)
            file.write(bytes([whole[len(whole) // 2] ^ 1]))
        if not name.startswith(".cache"):
            said = cppmill("verify", stored.out, check=False)
            assert damaged in (said.stdout + said.stderr).replace("\n", "")
        done = cppmill(*stored.command, check=False)
        assert done.returncode == 0 or damaged in done.stderr.replace("\n", "")
        path.unlink(missing_ok=True)
        cppmill(*stored.command)
        assert cppmill("verify", stored.out).returncode == 0


def test_other_commands_read_it_too(stored, run, cppmill, tmp_path):
    for out, file in ((stored.out, "stored.json"), (run.out, "local.json")):
        cppmill("vocab", "working-set", out, "--out", tmp_path / file)
    assert (tmp_path / "stored.json").read_bytes() == (tmp_path / "local.json").read_bytes()
    tokenizers = [run.out / "tokenizer"] * 2
    said = [cppmill("vocab", "diff", *tokenizers, "--documents", out).stdout for out in (stored.out, run.out)]
    assert said[0] == said[1]


def test_a_program_opens_it_by_its_url(stored, run, url):
    opened, local = library.open_run(stored.out), library.open_run(run.out)
    assert opened.ledger.equals(local.ledger)
    assert opened.tables == local.tables
    for name in opened.tables:
        assert opened.table(name).equals(local.table(name)), name
    assert opened.tokenizer.encode(b"int x;").equals(local.tokenizer.encode(b"int x;"))
    assert opened.verify() == []
    options = {"tokenizer": run.out / "tokenizer", "limit": 2}
    made = library.retokenize(run.sources / "numpy", store=f"{url}/store", **options)
    assert library.open_run(f"{url}/store").out.endswith(f"/store/versions/{made.version}")
    assert library.open_run(f"{url}/store/current").dataset("documents").count_rows() == 2


def test_the_provenance_is_that_of_the_local_run(stored, run, cppmill, tmp_path):
    said = [
        cppmill("provenance", out, "--out", tmp_path / folder, "--name", "n").stdout
        for out, folder in ((stored.out, "remote"), (run.out, "local"))
    ]
    assert f"{stored.out}: copy documents/, tokens/ and tokenizer/ from there" in said[0]
    for name in ("README.md", "croissant.json", "provenance.json"):
        assert (tmp_path / "remote" / name).read_bytes() == (tmp_path / "local" / name).read_bytes()


def test_a_stopped_run_releases_the_lock_and_can_continue(run, cppmill, command_line, url):
    again = type(run)(run.sources, f"{url}/stopped")
    command = [*command_line, *map(str, again.command), "--unit-bytes", str(1 << 18), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        next(line for line in process.stdout if '"stage_started", "stage": "scan"' in line)
        process.terminate()
        process.communicate()
    assert process.returncode == 143
    system, _ = open_url(url)
    assert not system.exists(f"{again.out}/.lock")
    assert system.exists(f"{again.out}/documents")
    cppmill(*again.command, "--unit-bytes", 1 << 18)
    assert (
        json.loads(system.cat_file(f"{again.out}/receipt.json"))["dataset"]["digest"]
        == run.receipt["dataset"]["digest"]
    )


def test_a_run_continues_in_a_finished_folder_that_was_uploaded(run, cppmill, url, monkeypatch):
    # The lock of the local run was uploaded too; nobody renews it.
    monkeypatch.setattr("transforms.storage.lease.LEASE_SECONDS", 1.0)
    uploaded = type(run)(run.sources, f"{url}/uploaded")
    open_url(url)[0].put(f"{run.out}/", uploaded.out, recursive=True)
    ran = uploaded.stages(cppmill(*uploaded.command, "--json"))
    assert [ran[stage] for stage in STAGES] == [0, 0, 0, 0]
    cppmill("verify", uploaded.out)


def test_sources_and_a_tokenizer_may_be_on_the_store_too(stored, run, url, cppmill):
    system, _ = open_url(url)
    system.put(str(run.sources / "numpy"), f"{url}/in/numpy", recursive=True)
    system.put(str(run.sources / "arrow"), f"{url}/in/arrow", recursive=True)
    out = f"{url}/again"
    arguments = (f"{url}/in", "--out", out, "--unit-bytes", 1 << 20, "--tokenizer", f"{stored.out}/tokenizer")
    cppmill("run", *arguments)
    cppmill("verify", out)
    receipt = json.loads(system.cat_file(f"{out}/receipt.json"))
    assert receipt["dataset"]["digest"] == run.receipt["dataset"]["digest"]
    documents = [name for name in system.ls(f"{out}/documents", detail=False) if "/part-" in name]
    with system.open(documents[0]) as file:
        assert pq.ParquetFile(file).metadata.num_rows > 0


def test_shards_on_the_object_store_equal_those_of_a_local_run(stored, run, cppmill, tmp_path, url):
    flags = ("--validation-fraction", "0.5", "--shard-tokens", "100000")
    cppmill("shards", run.out, "--out", tmp_path / "local", *flags)
    for name in ("one", "other"):
        cppmill("shards", stored.out, "--out", f"{url}/shards", *flags, "--name", name)
    cppmill("shards", stored.out, "--out", f"{url}/shards", *flags)
    assert "everything matches the manifest" in cppmill("verify", f"{url}/shards").stdout
    open_url(url)[0].get(f"{url}/shards", str(tmp_path / "copied"), recursive=True)
    trees = [type(run)(run.sources, tmp_path / name).tree() for name in ("local", "copied")]
    assert trees[0] == trees[1]


def test_tokenizers_are_taken_from_there_too(stored, run, cppmill, tmp_path):
    (tmp_path / "a.cpp").write_text("int main() { return 0; }\n")
    places = (f"{stored.out}/tokenizer", str(run.out / "tokenizer"))
    for command in (["encode"], ["show", "--ids"], ["byte-tables", "--out", tmp_path / "tables.npz"]):
        file = [] if command[0] == "byte-tables" else [tmp_path / "a.cpp"]
        told = [cppmill(*command, "--tokenizer", place, *file).stdout for place in places]
        assert told[0] == told[1], command
    found = [
        json.loads(cppmill("compare", f"one={place}", "--on", out, "--json").stdout.splitlines()[1])
        for place, out in zip(places, (stored.out, run.out), strict=True)
    ]
    assert (found[0]["tokens"], found[0]["projects"]) == (found[1]["tokens"], found[1]["projects"])
    assert "moved           0        0" in cppmill("vocab", "diff", *places).stdout


def test_sequences_of_it_are_made_there(stored, cppmill, url):
    cppmill("sequences", stored.out, "--out", f"{url}/sequences", "--length", "512")
    assert "everything matches the manifest" in cppmill("verify", f"{url}/sequences").stdout


def test_what_is_not_there_is_one_line_before_anything_starts(stored, cppmill, url):
    for arguments, said in (
        ((f"{url}/no-sources", "--out", f"{url}/new"), f"source '{url}/no-sources' does not exist"),
        ((stored.sources, "--out", f"{url}/new", "--tokenizer", f"{url}/none"), f"--tokenizer {url}/none: there is no"),
        ((stored.sources, "--out", f"{url.partition(':')[0]}://no-such-bucket/out"), "there is no such bucket"),
    ):
        done = cppmill("run", *arguments, check=False)
        assert done.returncode
        assert len(done.stderr.splitlines()) == 1, done.stderr
        assert said in done.stderr
    assert not open_url(url)[0].exists(f"{url}/new")
