"""Withdrawing from a store: a version without the documents, made of touched units alone, whatever comes later."""

import json
import shutil
from hashlib import sha256
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from cppmill_core.loader import Loader

from pipelines.tokenizers.texts import read_texts
from pipelines.versions.withdraw import read_paths
from schemas.digests import sha256_json
from schemas.errors import ConfigError, IntegrityError
from schemas.options import IngestOptions
from tests.prepared import SourcesAndStore
from tests.signing import rewrite, seal
from transforms.filters.withdrawals import Withdrawals
from transforms.records.affected import listed_doc_ids
from transforms.storage.folder import OutputFolder

GONE = "numpy/numpy/npy_math.h"


@pytest.fixture
def store(run, tmp_path):
    """The sources of the finished run, and a store whose first version it is."""
    shutil.copytree(run.out, tmp_path / "store/versions/v000001", copy_function=shutil.copy2)
    (tmp_path / "store/current").symlink_to("versions/v000001")
    return SourcesAndStore(run.sources, tmp_path / "store")


def documents(out):
    rows = [pq.read_table(path, columns=["doc_id", "path"]).to_pylist() for path in out.glob("tokens/*.parquet")]
    return {row["path"]: row["doc_id"] for part in rows for row in part}


def test_no_proof_says_that_the_source_of_a_redacted_document_is_absent(run, cppmill, tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a.cpp").write_text("// mail john.smith@gmail.com\nint a;\n")
    (tmp_path / "src/b.cpp").write_text("int b;\n")
    flags = ("--tokenizer", run.out / "tokenizer", "--redact", "email")
    cppmill("run", tmp_path / "src", "--out", tmp_path / "out", *flags)
    for name, code in (("a.cpp", 1), ("b.cpp", 1), (__file__, 0)):
        source = sha256((tmp_path / "src" / name).read_bytes()).hexdigest()
        done = cppmill("prove-absent", tmp_path / "out", source, check=False)
        assert (done.returncode, "redacted or converted" in done.stderr) == (code, name == "a.cpp"), done.stderr


def test_a_withdrawn_document_is_gone_for_good_and_that_is_proven(store, tmp_path, cppmill, checker):
    before = documents(store.out("v000001"))
    (tmp_path / "paths.txt").write_text(f"{GONE}\n")
    options = ("--paths", tmp_path / "paths.txt", "--keep", "1")
    done = cppmill("withdraw", store.place, *options, "--source", store.sources, "--json")
    outcome = json.loads(done.stdout.splitlines()[-1])
    assert outcome["changes"]["documents"]["removed"] == 1
    assert outcome["changes"]["ids"]["moved"] == 0
    assert outcome["changes"]["shards"]["written"] == 1, "only the unit that had it is made again"
    assert outcome["removed"] == ["v000001"]
    out = store.out("v000002")
    assert documents(out) == {path: doc_id for path, doc_id in before.items() if path != GONE}
    receipt = store.receipt("v000002")
    assert receipt["ledger"]["documents"]["filtered"]["withdrawn"] == 1
    assert receipt["exclusion"]["doc_ids"] == len(before) - 1
    cppmill("verify", out)
    assert checker(out) == ""
    assert json.loads(cppmill("prove-absent", out, before[GONE]).stdout)["root"] == receipt["exclusion"]["root"]
    assert cppmill("prove-absent", out, next(iter(before.values())), check=False).returncode == 1
    assert cppmill(*store.command, check=False).returncode == 10
    (store.place / "withdrawn.json").unlink()
    assert cppmill(*store.command, check=False).returncode == 10, "the list of the version counts too"
    assert GONE not in documents(out)
    shutil.copy(out / "withdrawn.json", store.place)
    (out / "withdrawn.json").unlink()
    assert "withdrawn.json" in cppmill("verify", out, check=False).stdout


def test_without_sources_the_list_waits_for_the_next_version(store, tmp_path, cppmill):
    (tmp_path / "ids").write_text(f"\\{documents(store.out('v000001'))[GONE].upper()}  a\\\\npy_math.h\n")
    told = cppmill("withdraw", store.place, "--projects", "nobody", "--quiet").stderr
    assert told == "no document of v000001 has these of what you named: 1 projects\n"
    said = cppmill("withdraw", store.place, "--doc-ids", tmp_path / "ids", "--projects", "nobody").stderr
    assert "1 doc_ids, 1 projects" in said
    assert "v000001: 1 withdrawn document, dataset" in said
    assert "no document of v000001 has these of what you named: 1 projects" in said
    check_affected(store, tmp_path, cppmill)
    cppmill(*store.command, "--no-drift")
    assert GONE not in documents(store.out("v000002"))


def check_affected(store, folder, cppmill):
    """The version, an export of it and who trained on the document are named, and nobody else."""
    export = folder / "export"
    cppmill("sequences", store.out("v000001"), "--out", export, "--length", "1024", "--quiet")
    first = Loader(store.out("v000001") / "tokens", shuffle=False)
    states = {"early": first.state_dict(steps=1), "late": first.state_dict(steps=first.steps())}
    states["packed"] = Loader(export / "sequences", batch_rows=10_000).state_dict(steps=1)
    for name, state in {**states, "other": {**states["late"], "dataset": 64 * "0"}}.items():
        (folder / f"{name}.json").write_text(json.dumps(state))
    places = [export, *(folder / f"{name}.json" for name in ("early", "late", "packed", "other"))]
    lines = cppmill("affected", store.place, *places, "--json").stdout.splitlines()
    found = {Path(line["place"]).stem: (line["verdict"], line["documents"]) for line in map(json.loads, lines)}
    yes, no, unknown = ("affected", 1), ("not affected", 0), ("not known", None)
    expected = {"v000001": yes, "export": yes, "early": no, "late": yes, "packed": yes, "other": unknown}
    assert found == expected


def test_of_copies_of_a_document_in_sequences_each_counts_if_one_is_withdrawn(run, tmp_path, cppmill):
    for project in ("alpha", "beta"):
        shutil.copytree(run.sources / "numpy", tmp_path / "sources" / project)
    store = SourcesAndStore(tmp_path / "sources", tmp_path / "store")
    cppmill(*store.command, "--no-drop-duplicates", "--tokenizer", run.out / "tokenizer")
    out, export = store.out("v000001"), tmp_path / "export"
    cppmill("sequences", out, "--out", export, "--length", "1024", "--quiet")
    state = Loader(export / "sequences", batch_rows=10_000).state_dict(steps=1)
    (tmp_path / "packed.json").write_text(json.dumps(state))
    for project in ("alpha", "beta"):
        cppmill("withdraw", store.place, "--projects", project)
        lines = cppmill("affected", store.place, export, tmp_path / "packed.json", "--json").stdout.splitlines()
        found = {line["kind"]: line["documents"] for line in map(json.loads, lines)}
        assert found["checkpoint"] == len(set(documents(out).values()))
    assert found["version"] == found["export"] == len(documents(out))


@pytest.fixture
def withdrawn(store, tmp_path, cppmill):
    """The store with a second version, without a document of the first."""
    (tmp_path / "paths.txt").write_text(f"{GONE}\n")
    options = ("--paths", tmp_path / "paths.txt", "--keep", "2", "--no-drift")
    cppmill("withdraw", store.place, *options[:-1], "--source", store.sources)
    return store


def affected(store, cppmill, *, check=True):
    done = cppmill("affected", store.place, "--json", check=check)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    verdicts = {line["place"]: (line["verdict"], line["documents"]) for line in found if "place" in line}
    assert len(verdicts) == sum("place" in line for line in found), "a version is named twice"
    return verdicts, done.stdout + done.stderr


def test_what_was_withdrawn_does_not_come_back_with_a_list_that_is_lost(withdrawn, cppmill):
    out = withdrawn.out("v000002")
    for place in (withdrawn.place, out):
        (place / "withdrawn.json").unlink()
    done = cppmill(*withdrawn.command, check=False)
    assert done.returncode == 1
    assert f"{out}/withdrawn.json: missing, or not the list sha256:" in done.stderr


def test_lists_of_all_versions_count(withdrawn, cppmill):
    (withdrawn.place / "withdrawn.json").unlink()
    (withdrawn.place / "current").unlink()
    (withdrawn.place / "current").symlink_to("versions/v000001")
    assert affected(withdrawn, cppmill)[0]["v000001"] == ("affected", 1)
    cppmill(*withdrawn.command, "--no-drift")
    assert GONE not in documents(withdrawn.out("v000003"))


@pytest.mark.parametrize("damage", ["receipt", "documents"])
def test_a_version_that_cannot_be_looked_at_is_not_called_free_of_withdrawn_documents(withdrawn, cppmill, damage):
    out, memory = withdrawn.out("v000001"), withdrawn.place / "affected.json"
    if damage == "receipt":
        (out / "receipt.json").unlink()
        shutil.copy(withdrawn.out("v000002") / "receipt.json", out)
        assert affected(withdrawn, cppmill)[0]["v000001"] == ("affected", 1)  # as it was remembered
    else:
        next(out.glob("documents/part-*")).unlink()
        assert affected(withdrawn, cppmill)[0]["v000001"] == ("affected", 1)
    memory.unlink()
    assert affected(withdrawn, cppmill)[0]["v000001"] == ("not known", None)


def test_a_version_whose_receipt_is_lost_is_not_called_free_of_withdrawn_documents(withdrawn, cppmill):
    (withdrawn.out("v000001") / "receipt.json").unlink()
    assert affected(withdrawn, cppmill)[0]["v000001"] == ("affected", 1)  # as it was remembered
    (withdrawn.place / "affected.json").unlink()
    assert affected(withdrawn, cppmill)[0]["v000001"] == ("not known", None)


def test_a_version_that_was_deleted_and_is_not_remembered_is_not_left_out(withdrawn, cppmill):
    cppmill(*withdrawn.command, "--keep", "1", check=False)  # nothing else to do: exit 10
    assert affected(withdrawn, cppmill)[0]["v000001"] == ("affected", 1)
    (withdrawn.place / "affected.json").unlink()
    verdicts, said = affected(withdrawn, cppmill)
    assert verdicts == {"v000001": ("not known", None), "v000002": ("not affected", 0)}
    assert "1 version deleted from the store, and not in affected.json" in said


def test_an_export_does_not_pass_for_that_of_another_version(withdrawn, cppmill, tmp_path):
    export = tmp_path / "export"
    cppmill("shards", withdrawn.out("v000001"), "--out", export, "--quiet")
    other = withdrawn.receipt("v000002")["digest"]
    rewrite(export / "manifest.json", lambda manifest: manifest["dataset"].update(receipt=other))
    done = cppmill("affected", withdrawn.place, export, check=False)
    assert done.returncode == 1
    assert f"{export}/manifest.json: its digest is" in done.stderr


def test_a_list_that_names_less_than_is_remembered_is_refused(withdrawn, cppmill):
    for place in (withdrawn.place, withdrawn.out("v000002")):
        rewrite(place / "withdrawn.json", lambda value: value.update(paths=[]))
    _, said = affected(withdrawn, cppmill, check=False)
    assert "it names 0 documents of v000001, and affected.json remembers 1" in said


@pytest.mark.parametrize("damage", ["missing", "changed"])
def test_entries_that_are_lost_before_the_next_version_obeyed_them_are_missed(store, tmp_path, cppmill, damage):
    (tmp_path / "ids").write_text(documents(store.out("v000001"))[GONE])
    cppmill("withdraw", store.place, "--doc-ids", tmp_path / "ids")
    path = store.place / "withdrawn.json"
    whole = path.read_bytes()
    if damage == "changed":
        rewrite(path, lambda value: value.update(doc_ids=[64 * "0"]))
    else:
        path.unlink()
    for command in (store.command, ("verify", store.place), ("affected", store.place)):
        done = cppmill(*command, check=False)
        assert done.returncode == 1
        said = done.stdout + done.stderr
        assert "it names 0 documents of v000001, and affected.json remembers 1; entries were lost" in said
    assert not (store.place / "versions/v000002").exists()
    path.write_bytes(whole)
    cppmill(*store.command, "--no-drift")
    assert GONE not in documents(store.out("v000002"))


@pytest.mark.parametrize("change", [{"paths": []}, {"paths": [64 * "0"]}], ids=["lost", "another"])
def test_a_list_of_the_store_that_lacks_what_that_of_a_version_has_is_refused(withdrawn, tmp_path, cppmill, change):
    cppmill("verify", withdrawn.place)
    rewrite(withdrawn.place / "withdrawn.json", lambda value: value.update(change))
    before = (withdrawn.place / "withdrawn.json").read_bytes()
    own = withdrawn.out("v000002") / "withdrawn.json"
    withdraw = ("withdraw", withdrawn.place, "--paths", tmp_path / "paths.txt")
    for command in (("verify", withdrawn.place), withdrawn.command, withdraw, ("affected", withdrawn.place)):
        done = cppmill(*command, check=False)
        said = f"{withdrawn.place}/withdrawn.json: it lacks what {own} names, though entries are only added; restore"
        assert (done.returncode, said in done.stdout + done.stderr) == (1, True), command
    assert (withdrawn.place / "withdrawn.json").read_bytes() == before
    assert not withdrawn.out("v000003").exists()


def test_a_memory_that_was_changed_is_refused_before_anything_is_written(withdrawn, tmp_path, cppmill):
    memory, kept = withdrawn.place / "affected.json", (withdrawn.place / "withdrawn.json").read_bytes()
    memory.write_bytes(memory.read_bytes().replace(b'"documents":1', b'"documents":3'))
    withdraw = ("withdraw", withdrawn.place, "--projects", "numpy")
    for command in (("verify", withdrawn.place), withdrawn.command, withdraw, ("affected", withdrawn.place)):
        done = cppmill(*command, check=False)
        said = done.stdout + done.stderr
        assert (done.returncode, f"{memory}: its digest is" in said) == (1, True), command
        assert "remove it: only what it says of deleted versions is lost" in said
    assert (withdrawn.place / "withdrawn.json").read_bytes() == kept
    memory.unlink()
    assert affected(withdrawn, cppmill)[0]["v000001"] == ("affected", 1)


def test_a_memory_of_an_earlier_version_has_no_digest_until_it_is_written_again(withdrawn, cppmill):
    memory = withdrawn.place / "affected.json"
    rewrite(memory, lambda value: value.pop("digest"))
    cppmill("verify", withdrawn.place)
    assert affected(withdrawn, cppmill)[0]["v000001"] == ("affected", 1)
    cppmill("withdraw", withdrawn.place, "--projects", "nobody")
    record = json.loads(memory.read_bytes())
    assert record.pop("digest") == sha256_json(record)


@pytest.mark.parametrize("documents", [None, 0, "1"])
def test_a_memory_that_is_none_is_named_in_one_line(withdrawn, cppmill, documents):
    facts = {} if documents is None else {"version": "v000001", "dataset": "", "documents": documents}

    def change(value):
        value.update(datasets={64 * "0": facts})
        seal(value)

    rewrite(withdrawn.place / "affected.json", change)
    _, said = affected(withdrawn, cppmill, check=False)
    assert f"{withdrawn.place}/affected.json: not laid out as a record" in said
    assert "Traceback" not in said


def test_paths_are_those_of_the_column_whatever_wrote_the_file(run, tmp_path, cppmill):
    names = ["a.cpp", "b.cpp", "c\udcff.cpp"]
    (tmp_path / "src").mkdir()
    for name in (*names, "kept.cpp"):
        (tmp_path / "src" / name).write_text(f"int {name[0]};\n")
    (tmp_path / "paths.txt").write_bytes(b"\xef\xbb\xbfa.cpp\r\nb.cpp\r\nc\xff.cpp\r\n")
    cppmill("withdraw", tmp_path / "list.json", "--paths", tmp_path / "paths.txt")
    cppmill(
        "run",
        tmp_path / "src",
        "--out",
        tmp_path / "out",
        "--tokenizer",
        run.out / "tokenizer",
        *("--withdrawn", tmp_path / "list.json"),
    )
    assert documents(tmp_path / "out").keys() == {"kept.cpp"}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"./a.cpp\n", "1: ./a.cpp: no document has it; give paths as in the column `path`"),
        (b"a.cpp\n\n/a.cpp\n", "3: /a.cpp: no document has it; give paths"),
        (b"../a.cpp", "1: ../a.cpp: no document has it; give paths"),
        (b"a//b/\nd/../a.cpp\n", "2: d/../a.cpp: no document has it; give paths"),
        (b"d/./a.cpp\n", "1: d/./a.cpp: no document has it; give paths"),
        (b"d/.\n", "1: d/.: no document has it; give paths"),
        (b"a.cpp\rb.cpp\r", r"1: a.cpp\rb.cpp: no document has it; end each line with a line feed"),
        (
            "a.cpp\nb.cpp\n".encode("utf-16"),
            r"1: \udcff\udcfea\x00.\x00c\x00p\x00p\x00: no document has it; save",
        ),
        (
            "a.cpp\n".encode("utf-16-be"),
            r"1: \x00a\x00.\x00c\x00p\x00p\x00: no document has it; save the list",
        ),
        ("\u4e2d".encode("utf-16"), "no document has it; save the list as UTF-8"),
    ],
)
def test_a_path_that_no_document_can_have_is_refused_with_its_line(data, said, tmp_path):
    file = tmp_path / "paths.txt"
    file.write_bytes(data)
    with pytest.raises(ConfigError) as refused:
        read_paths(str(file))
    assert str(refused.value).startswith(f"--paths: {file}:") and said in str(refused.value)


def test_a_refused_list_of_paths_changes_nothing(tmp_path, cppmill):
    (tmp_path / "paths.txt").write_text("a.cpp\rb.cpp\r")
    done = cppmill("withdraw", tmp_path / "list.json", "--paths", tmp_path / "paths.txt", check=False)
    assert (done.returncode, f"--paths: {tmp_path}/paths.txt:1: a.cpp" in done.stderr) == (2, True)
    assert not (tmp_path / "list.json").exists()


def test_paths_that_documents_can_have_are_taken(tmp_path):
    paths = ["*.cpp", "# a.cpp", "d/", "d//a.cpp", "d/.hidden", "d/..a", "a.cpp ", "s\udcff\udcfe"]
    (tmp_path / "paths.txt").write_bytes("\n".join(paths).encode("utf-8", "surrogateescape"))
    assert read_paths(str(tmp_path / "paths.txt")) == paths


def test_a_damaged_receipt_of_the_version_before_is_named_with_what_helps(store, tmp_path, cppmill):
    (tmp_path / "paths.txt").write_text(f"{GONE}\n")
    cppmill("withdraw", store.place, "--paths", tmp_path / "paths.txt", "--source", store.sources)
    receipt = store.out("v000001") / "receipt.json"
    receipt.write_bytes(receipt.read_bytes()[:-9])
    done = cppmill("verify", store.place, check=False)
    assert f"{receipt}: not a receipt" in done.stdout + done.stderr
    assert "restore it, or remove that version" in " ".join((done.stdout + done.stderr).split())
    shutil.rmtree(receipt.parent)
    assert cppmill("verify", store.place).returncode == 0


def test_what_cannot_be_withdrawn_is_said(store, tmp_path, cppmill):
    (tmp_path / "ids").write_text("npy_math.h\n")
    for arguments, message in (
        ((store.place,), "nothing to withdraw"),
        ((store.place, "--doc-ids", tmp_path / "ids"), "npy_math.h: not a doc_id"),
        ((store.out("v000001"), "--projects", "numpy"), "the folder of a run or an export, not a store"),
        ((tmp_path / "list.json", "--projects", "numpy", "--copies"), "--source and --copies need a store"),
    ):
        done = cppmill("withdraw", *arguments, check=False)
        assert done.returncode == 2
        assert message in done.stderr


@pytest.mark.parametrize("options", [(), ("--copies",)])
def test_withdrawing_from_a_damaged_version_names_what_mends_it(store, tmp_path, cppmill, options):
    shard = min(store.out("v000001").glob("documents/part-*"))
    shard.unlink()
    (tmp_path / "paths").write_text(f"{GONE}\n")
    command = ("withdraw", store.place, "--paths", tmp_path / "paths", *options)
    done = cppmill(*command, check=False)
    assert done.returncode == 1
    mend = f"`cppmill retokenize SOURCE --store {store.place}` makes a whole version, then withdraw again"
    assert f"{shard.name}: missing" in done.stderr and mend in done.stderr
    cppmill(*store.command)
    cppmill(*command)
    cppmill(*store.command, check=False)  # without --copies the list was kept, and the mend obeyed it
    assert GONE not in documents(store.place / "current")


def test_the_texts_of_a_store_are_those_of_its_current_version(store):
    def paths(place):
        batches = read_texts([str(place)], IngestOptions(), argument="--on")
        return [path for batch in batches for path in batch.column("path").to_pylist()]

    assert paths(store.place) == paths(store.out("v000001")) != []


@pytest.mark.parametrize("option", ["--paths", "--doc-ids"])
def test_a_list_that_is_a_device_without_an_end_is_refused(option, tmp_path, cppmill):
    (tmp_path / "list").symlink_to("/dev/zero")
    refused = cppmill("withdraw", tmp_path / "withdrawn.json", option, tmp_path / "list", check=False)
    assert refused.returncode == 2
    assert f"{tmp_path}/list: cannot be read: a pipe or a device, not a file" in refused.stderr


def test_copies_are_looked_for_in_the_rejects_that_the_receipt_names(copied_run):
    out, asked = OutputFolder(copied_run.out), Withdrawals.of({"projects": ["numpy"]})
    assert listed_doc_ids(out, asked)
    rejects = sorted((copied_run.out / "documents").glob("rejects-*"))[0]
    shutil.copy(rejects, rejects.with_name("rejects-0.parquet"))
    rejects.unlink()
    with pytest.raises(IntegrityError, match=rf"{rejects.name}: missing, or not the file that the receipt names"):
        listed_doc_ids(out, asked)
