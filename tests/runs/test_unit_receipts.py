"""A unit receipt that was changed is never taken for a finished unit: its unit runs again, with the same result."""

import json
import os
import re
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.stages import scan
from pipelines.versions.verify import verify
from schemas.digests import canonical_json, sha256_file, sha256_json
from tests.rotten import rot_values
from tests.signing import seal, sign_again, sign_units
from transforms.storage.folder import OutputFolder


def rewrite(path, change):
    """Change a JSON file, and nothing else in it: its digest is the old one then."""
    value = json.loads(path.read_bytes())
    change(value)
    path.write_bytes(canonical_json(value))


def unit_receipts(out, stage="*"):
    return sorted(path for path in out.rglob(f"{stage}/_unit-*.json") if ".cache" not in path.parts)


def sign(out, change=lambda receipt: None):
    """Make the receipt of a run anew for the unit receipts that are there, after a change to it."""

    def renew(receipt):
        for path in unit_receipts(out):
            receipt["files"][path.relative_to(out).as_posix()] = sha256_file(path)
        change(receipt)
        receipt["digest"] = sha256_json({name: value for name, value in receipt.items() if name != "digest"})

    rewrite(out / "receipt.json", renew)


def age(path):
    """Give a unit receipt the format before, without a digest of itself."""
    rewrite(path, lambda value: (value.pop("digest"), value.update(format="cppmill-unit-1")))


@pytest.fixture
def old_run(copied_run):
    """A run of a version whose unit receipts had no digest of themselves, and lay beside what they are receipts of."""
    out = copied_run.out
    for path in unit_receipts(out):
        age(path)
        path.rename(out / path.relative_to(out).as_posix().removeprefix("units/"))
    shutil.rmtree(out / "units")

    def forget(receipt):
        receipt["files"] = {name: digest for name, digest in receipt["files"].items() if (out / name).exists()}

    sign(out, forget)
    return copied_run


CHANGES = {
    "control text": ("tokens", lambda value: value["totals"].update(control_text={"<EOS>": 3})),
    "ledger": ("documents", lambda value: value["ledger"]["bytes"].update({"in": 7, "kept": 7})),
    "inputs of a proof": ("proofs", lambda value: value.update(inputs=dict.fromkeys(value["inputs"], "0" * 64))),
    "digest in a proof": ("proofs", lambda value: value["totals"].update(corpus_digest="0" * 64)),
    "key": ("tokens", lambda value: value.update(key="0" * 64)),
    "type": ("tokens", lambda value: value.update(totals=[])),
}


def without(*names):
    """Return a change that removes a key below others."""

    def change(value):
        for name in names[:-1]:
            value = value[name]
        del value[names[-1]]

    return change


CONTRADICTIONS = {
    "a total of documents": ("documents", lambda value: value["totals"].update(documents=7)),
    "no total": ("documents", without("totals", "bytes")),
    "truth for a number": ("documents", lambda value: value["ledger"]["documents"].update(duplicate=True)),
    "half a ledger": ("documents", without("ledger", "bytes", "dead")),
    "inputs of documents": ("documents", lambda value: value["inputs"].update(extra="")),
    "one more total of documents": ("documents", lambda value: value["totals"].update(extra=1)),
    "rows": ("documents", lambda value: value["outputs"][0].update(rows=1)),
    "a file twice": ("documents", lambda value: value["outputs"].append(value["outputs"][-1])),
    "size of a file": ("tokens", lambda value: value["outputs"][0].update(num_bytes=7)),
    "no file": ("tokens", lambda value: value.update(outputs=[])),
    "no input": ("tokens", lambda value: value.update(inputs={})),
    "a ledger of tokens": ("tokens", lambda value: value.update(ledger={"extra": 1})),
    "one more total": ("proofs", lambda value: value["totals"].update(extra=1)),
    "counts of a build": ("tokenizer", lambda value: value["inputs"].update(dict.fromkeys(value["inputs"], "0" * 64))),
    "fewer counts of a build": ("tokenizer", lambda value: value["inputs"].popitem()),
    "a proof without a digest": ("proofs", without("totals", "dataset_digest")),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_a_unit_receipt_that_contradicts_itself_is_made_again_though_every_digest_is_true(copied_run, cppmill, name):
    before, (folder, change) = copied_run.tree(), CONTRADICTIONS[name]
    path = unit_receipts(copied_run.out, folder)[0]
    rewrite(path, change)
    rewrite(path, seal)
    sign(copied_run.out)
    cppmill(*copied_run.command)
    assert copied_run.tree() == before


def test_counts_have_the_rows_that_their_receipt_says(copied_run, cppmill):
    before = copied_run.tree()
    for path in unit_receipts(copied_run.out, "parts"):
        rewrite(path, lambda value: value["outputs"][0].update(rows=value["outputs"][0]["rows"] + 1))
        rewrite(path, seal)
    (copied_run.out / "receipt.json").unlink()
    cppmill(*copied_run.command)
    assert copied_run.tree() == before


@pytest.mark.parametrize("folder", ["tokens", "proofs"])
def test_a_receipt_that_its_proof_denies_is_set_aside_and_the_next_run_makes_it_again(copied_run, cppmill, folder):
    before, path = copied_run.tree(), unit_receipts(copied_run.out, folder)[0]
    rewrite(path, lambda value: value["totals"].update(tokens=value["totals"]["tokens"] + 1))
    rewrite(path, seal)
    sign(copied_run.out)
    done = cppmill(*copied_run.command, check=False)
    assert (done.returncode, ".parquet: its receipt and its proof differ" in done.stderr) == (1, True), done.stderr
    assert f"error: {copied_run.out}/tokens/part-" in done.stderr
    cppmill(*copied_run.command)
    assert copied_run.tree() == before


@pytest.mark.parametrize(
    ("name", "has_receipt"), [*((name, True) for name in CHANGES), ("ledger", False), ("digest in a proof", False)]
)
def test_a_changed_unit_receipt_is_named_set_aside_and_made_again(copied_run, cppmill, name, has_receipt):
    before = copied_run.tree()
    folder, change = CHANGES[name]
    path = unit_receipts(copied_run.out, folder)[0]
    rewrite(path, change)
    damaged = path.read_bytes()
    if not has_receipt:
        (copied_run.out / "receipt.json").unlink()
    done = cppmill(*copied_run.command)
    assert str(path) in done.stderr.replace("\n", "")
    assert copied_run.tree() == before
    assert (copied_run.out / ".cache/set-aside" / path.relative_to(copied_run.out)).read_bytes() == damaged


def test_a_unit_receipt_with_a_new_digest_is_not_the_one_that_the_receipt_of_the_run_names(copied_run, cppmill):
    before = copied_run.tree()
    path = unit_receipts(copied_run.out, "tokens")[0]

    def change(value):
        value["totals"]["control_text"] = {"<EOS>": 3}
        value["digest"] = sha256_json({key: entry for key, entry in value.items() if key != "digest"})

    rewrite(path, change)
    assert str(path) in cppmill(*copied_run.command).stderr.replace("\n", "")
    assert copied_run.tree() == before


def test_an_emptied_shard_is_made_again_though_every_digest_is_made_anew_for_it(copied_run, cppmill):
    before = copied_run.tree()
    path = unit_receipts(copied_run.out, "documents")[0]

    def empty(value):
        for output in value["outputs"]:
            (copied_run.out / output["path"]).unlink()
            (copied_run.out / output["path"]).touch()
            output.update(num_bytes=0, sha256=sha256_file(copied_run.out / output["path"]))
        value["digest"] = sha256_json({key: entry for key, entry in value.items() if key != "digest"})

    rewrite(path, empty)
    sign(copied_run.out)
    done = cppmill(*copied_run.command)
    assert path.name in done.stderr.replace("\n", "")
    assert copied_run.tree() == before


FORMS = {
    "no names": (lambda rows: rows.drop_columns(["doc_id"]), "damaged (it has 0 columns doc_id)"),
    "no names known": (
        lambda rows: rows.set_column(0, "doc_id", pa.nulls(len(rows), pa.string())),
        "damaged (its column doc_id has nulls)",
    ),
    "fewer rows": (lambda rows: rows.slice(1), "documents were tokenized, its unit receipt has"),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_documents_shard_of_another_form_is_named_though_every_digest_is_made_anew_for_it(copied_run, cppmill, name):
    change, said = FORMS[name]
    path = next((copied_run.out / "documents").glob("part-*"))
    rows = pq.read_table(path, partitioning=None)
    path.unlink()
    pq.write_table(change(rows), path)
    sign_again(copied_run.out)
    done = cppmill(*copied_run.command, check=False)
    assert done.returncode == 1
    assert path.name in done.stderr.replace("\n", "")
    assert said in done.stderr


def test_a_stage_alone_refuses_the_changed_receipt_of_the_stage_before(copied_run, cppmill):
    path = unit_receipts(copied_run.out, "documents")[0]
    rewrite(path, lambda value: value["ledger"]["bytes"].update({"in": 7, "kept": 7}))
    done = cppmill("validate", *copied_run.command[1:], check=False)
    assert done.returncode == 1
    assert path.name in done.stderr.replace("\n", "")


def test_a_changed_receipt_of_the_build_is_named_and_made_again_from_the_record(copied_run, cppmill):
    before = copied_run.tree()
    path = unit_receipts(copied_run.out, "tokenizer")[0]
    rewrite(path, lambda value: value.update(inputs={}))
    done = cppmill(*copied_run.command)
    assert path.name in done.stderr.replace("\n", "")
    assert copied_run.tree() == before
    assert (copied_run.out / ".cache/set-aside/tokenizer" / path.name).is_file()


DAMAGES = {
    "cut": lambda data: data[:700],
    "emptied": lambda _: b"",
    "a damaged key": lambda data: data.replace(b'"files"', b'"filez"'),
    "a damaged digest": lambda data: data.replace(b'"digest":"', b'"digest":"0', 1),
}


@pytest.mark.parametrize("name", DAMAGES)
@pytest.mark.parametrize("is_given", [True, False])
def test_a_damaged_receipt_of_the_run_is_named_set_aside_and_made_again(copied_run, cppmill, tmp_path, name, is_given):
    out, command = copied_run.out, copied_run.command
    if is_given:
        out = tmp_path / "given"
        command = ["run", copied_run.sources / "numpy", "--tokenizer", copied_run.out / "tokenizer", "--out", out]
        cppmill(*command)
    whole = (out / "receipt.json").read_bytes()
    damaged = DAMAGES[name](whole)
    (out / "receipt.json").write_bytes(damaged)
    said = cppmill(*command).stderr.replace("\n", "")
    assert f"{out}/receipt.json: " in said
    assert "it was set aside in .cache/set-aside, and a run makes it again" in said
    assert (out / "receipt.json").read_bytes() == whole
    assert (out / ".cache/set-aside/receipt.json").read_bytes() == damaged


def test_a_given_tokenizer_needs_no_receipt_of_a_build_that_the_receipt_of_another_run_names(run, cppmill, tmp_path):
    tokenizer = shutil.copytree(run.out / "tokenizer", tmp_path / "tokenizer")
    for path in (*tokenizer.glob("_unit-*"), tokenizer / "findings.md"):
        path.unlink()
    command = ["run", run.sources / "numpy", "--tokenizer", tokenizer, "--out", tmp_path / "out"]
    cppmill(*command)
    whole = (tmp_path / "out/receipt.json").read_bytes()
    shutil.copy(run.out / "receipt.json", tmp_path / "out/receipt.json")
    cppmill(*command)
    assert (tmp_path / "out/receipt.json").read_bytes() == whole


def test_a_damaged_receipt_that_may_be_all_that_names_the_build_stays(copied_run, cppmill):
    unit_receipts(copied_run.out, "tokenizer")[0].unlink()
    (copied_run.out / "receipt.json").write_bytes(b"")
    done = cppmill(*copied_run.command, check=False)
    assert (done.returncode, "restore the file, or --rebuild-tokenizer" in done.stderr) == (1, True), done.stderr
    assert (copied_run.out / "receipt.json").read_bytes() == b""


def test_an_old_run_is_valid_and_up_to_date(old_run, cppmill):
    def data():
        return {name: data for name, data in old_run.tree().items() if "_unit-" not in name and name != "receipt.json"}

    def receipts():
        return {path.name: path.read_bytes() for path in unit_receipts(old_run.out)}

    before, units, dataset = data(), receipts(), old_run.receipt["dataset"]
    cppmill("verify", old_run.out)
    done = cppmill(*old_run.command, "--json")
    assert {count for stage, count in old_run.stages(done).items() if stage != "read"} <= {0, None}
    assert (data(), receipts(), old_run.receipt["dataset"]) == (before, units, dataset)
    cppmill("verify", old_run.out)


def test_beside_the_tables_lies_nothing_that_readers_of_a_folder_take_for_one(old_run, run, cppmill):
    import polars

    cppmill(*old_run.command)
    for out in (old_run.out, run.out):
        for folder in ("documents", "counts", "tokens"):
            assert {path.suffix for path in (out / folder).rglob("*") if path.is_file()} <= {".parquet", ".json"}
            assert not list((out / folder).rglob("_unit-*"))
        assert polars.read_parquet(out / "tokens").height == run.receipt["dataset"]["documents"]


def test_an_old_run_whose_next_run_is_killed_is_still_what_its_receipt_says(old_run):
    OutputFolder(old_run.out).move_receipts()
    shutil.rmtree(old_run.out / "units")
    assert not verify(str(old_run.out), 0)


def test_a_changed_receipt_of_an_old_run_is_made_again(old_run, run, cppmill):
    path = unit_receipts(old_run.out, "tokens")[0]
    rewrite(path, lambda value: value["totals"].update(control_text={"<EOS>": 3}))
    cppmill(*old_run.command)
    made = f"units/tokens/{path.name}"
    assert (old_run.out / made).read_bytes() == (run.out / made).read_bytes()
    assert old_run.receipt["policy"] == run.receipt["policy"]
    cppmill("verify", old_run.out)


def test_old_unit_receipts_that_nothing_vouches_for_are_made_again(old_run, run, cppmill):
    (old_run.out / "receipt.json").unlink()
    cppmill(*old_run.command, "--rebuild-tokenizer")
    assert old_run.tree() == run.tree()


def test_a_file_beside_a_tokenizer_that_was_given_is_compared_before_the_receipt_is_replaced(
    copied_run, other_tokenizer, cppmill, tmp_path
):
    out, sources = tmp_path / "given", copied_run.sources / "numpy"
    cppmill("run", sources, "--out", out, "--tokenizer", other_tokenizer)
    table = out / "tokenizer/vocab.tsv"
    table.write_bytes(table.read_bytes().replace(b"\tpinned\t", b"\tatomic\t", 1))
    done = cppmill("run", sources, "--out", out, "--vocab-size", 8192, check=False)
    assert done.returncode == 1
    assert "tokenizer/vocab.tsv: its SHA-256" in done.stderr.replace("\n", "")
    table.unlink()
    done = cppmill("run", sources, "--out", out, "--vocab-size", 8192, check=False)
    assert (done.returncode, "tokenizer/vocab.tsv: it is missing" in done.stderr.replace("\n", "")) == (1, True)
    cppmill("run", sources, "--out", out, "--tokenizer", other_tokenizer)
    cppmill("verify", out)


def test_a_version_beside_an_old_one_reuses_its_units(old_run, cppmill, tmp_path):
    store = tmp_path / "store"
    shutil.copytree(old_run.out, store / "versions/v000001", copy_function=shutil.copy2)
    (store / "current").symlink_to("versions/v000001")
    damaged = unit_receipts(store / "versions/v000001", "tokens")[0]
    rewrite(damaged, lambda value: value["totals"].update(control_text={"<EOS>": 3}))
    (old_run.sources / "numpy/more.h").write_text("int more();\n")
    cppmill("retokenize", *old_run.command[1:2], "--store", store, *old_run.command[4:])
    second = store / "versions/v000002"
    cppmill("verify", second)
    assert all(json.loads(path.read_bytes())["format"] == "cppmill-unit-2" for path in unit_receipts(second))
    assert json.loads((second / "receipt.json").read_bytes())["policy"]["control_text"] == {}


def test_a_receipt_of_the_build_that_nothing_proves_is_missed_and_a_rebuild_makes_it_again(copied_run, cppmill):
    before = copied_run.tree()
    path = unit_receipts(copied_run.out, "tokenizer")[0]
    path.write_bytes(path.read_bytes()[:-1])
    (copied_run.out / "receipt.json").unlink()
    done = cppmill(*copied_run.command, check=False)
    assert (done.returncode, "restore the file, or --rebuild-tokenizer" in done.stderr.replace("\n", " ")) == (1, True)
    assert "delete it" not in done.stderr
    cppmill(*copied_run.command, "--rebuild-tokenizer")
    assert copied_run.tree() == before


def test_a_lost_receipt_of_the_build_is_missed_without_a_record_until_the_tokenizer_is_given(copied_run, cppmill):
    (copied_run.sources / "more.h").write_bytes(b"int more;\n")
    lost, tokenizer = unit_receipts(copied_run.out, "tokenizer")[0], copied_run.out / "tokenizer"
    lost.unlink(), (copied_run.out / "receipt.json").unlink()
    for command in (copied_run.command, ["scan", *copied_run.command[1:]], ["validate", *copied_run.command[1:]]):
        done = cppmill(*command, check=False)
        assert done.returncode == 1, command[0]
        assert f"{lost}: missing, and the tokenizer in {copied_run.out} was built there; restore" in done.stderr
    cppmill(*copied_run.command, "--tokenizer", tokenizer)
    (copied_run.out / "receipt.json").unlink()
    cppmill(*copied_run.command)
    assert verify(str(copied_run.out)) == []


def test_a_pipe_in_place_of_a_unit_receipt_holds_nothing_up_and_is_made_again(copied_run, cppmill):
    receipt = unit_receipts(copied_run.out, "proofs")[0]
    receipt.unlink()
    os.mkfifo(receipt)
    cppmill(*copied_run.command)
    assert receipt.is_file()
    cppmill("verify", copied_run.out)


def test_a_link_to_itself_is_named_and_goes_with_the_next_run(copied_run, cppmill):
    (copied_run.out / "proofs/x").symlink_to("x")
    done = cppmill("verify", copied_run.out, check=False)
    assert (done.returncode, "proofs/x" in done.stdout) == (1, True)
    cppmill(*copied_run.command)
    cppmill("verify", copied_run.out)


def test_a_folder_in_place_of_a_unit_receipt_is_named_in_one_line(copied_run, cppmill):
    receipt = unit_receipts(copied_run.out, "proofs")[0]
    receipt.unlink()
    receipt.mkdir()
    done = cppmill(*copied_run.command, check=False)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert receipt.name in done.stderr.splitlines()[-1]


def test_a_file_that_no_build_wrote_beside_the_tokenizer_goes(copied_run, cppmill):
    before = copied_run.tree()
    (copied_run.out / "tokenizer/copy.json").write_text("{}")
    cppmill(*copied_run.command)
    assert copied_run.tree() == before
    assert verify(str(copied_run.out)) == []


def test_a_file_that_no_receipt_can_name_is_named(copied_run, cppmill):
    strange = copied_run.out / os.fsdecode(b"lat\xe9n")
    strange.touch()
    done = cppmill(*copied_run.command, check=False)
    assert done.returncode == 1
    assert "lat%E9n: its name is not UTF-8" in " ".join(done.stderr.split())
    strange.unlink()
    cppmill(*copied_run.command)


@pytest.mark.parametrize("damage", [(b"min_hits", b"mif_hits"), (b'"profile": "', b'"profile": "x')])
def test_what_is_remembered_of_a_stage_counts_only_if_it_is_whole(copied_run, cppmill, damage):
    path, before = copied_run.out / ".cache/stages/build.json", copied_run.tree()
    data = path.read_bytes()
    path.write_bytes(data.replace(*damage))
    assert path.read_bytes() != data
    cppmill(*copied_run.command)
    assert copied_run.tree() == before


def test_what_is_remembered_of_stages_under_the_names_of_each_other_does_not_count(copied_run, cppmill):
    first, second = (copied_run.out / ".cache/stages" / f"{stage}.json" for stage in ("ingest", "scan"))
    first.rename(other := first.with_name("other")), second.rename(first), other.rename(second)
    (copied_run.sources / "more.h").write_bytes(b"int more;\n")
    before = (copied_run.out / "tokenizer/manifest.json").read_bytes()
    cppmill(*copied_run.command)
    assert (copied_run.out / "tokenizer/manifest.json").read_bytes() == before
    assert verify(str(copied_run.out)) == []


@pytest.mark.parametrize("left", [".cache", "receipt.json"])
def test_lost_receipts_of_a_scan_are_made_again_by_what_else_says_that_it_has_run(copied_run, cppmill, left):
    before, lost = copied_run.tree(), {".cache", "receipt.json"} - {left}
    shutil.rmtree(copied_run.out / "units" / "counts")
    for path in (copied_run.out / name for name in lost):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    cppmill(*copied_run.command)
    assert copied_run.tree() == before


@pytest.mark.parametrize("rebuild", [[], ["--rebuild-tokenizer"]])
@pytest.mark.parametrize("stray", ["none", "a copy", "half", "its own, renamed"])
def test_what_is_no_receipt_of_the_build_beside_it_does_not_stop_a_run(copied_run, cppmill, stray, rebuild):
    (built,) = unit_receipts(copied_run.out, "tokenizer")
    before, data = copied_run.tree(), built.read_bytes()
    made = {"none": b"x", "half": data[: len(data) // 2]}.get(stray, data)
    (built.parent / f"_unit-{'0' * 64}.json").write_bytes(made)
    if stray == "its own, renamed":
        built.unlink()
    cppmill(*copied_run.command, *rebuild)
    assert copied_run.tree() == before
    assert verify(str(copied_run.out)) == []


def test_a_lost_receipt_that_a_kept_tokenizer_needs_is_named_with_what_to_do(copied_run, cppmill):
    (copied_run.sources / "more.h").write_bytes(b"int more;\n")
    lost = unit_receipts(copied_run.out / "units", "parts")[0]
    lost.unlink()
    done = cppmill(*copied_run.command, check=False)
    assert done.returncode == 1
    assert f"{lost}: missing; {copied_run.out}/tokenizer/_unit-" in done.stderr
    assert "--rebuild-tokenizer" in done.stderr


def test_a_lost_receipt_is_missed_where_the_cache_is_gone_too(copied_run, cppmill):
    (copied_run.sources / "more.h").write_bytes(b"int more;\n")
    shutil.rmtree(copied_run.out / ".cache")
    lost = unit_receipts(copied_run.out / "units", "parts")[0]
    lost.unlink()
    done = cppmill(*copied_run.command, check=False)
    assert done.returncode == 1
    assert f"{lost}: missing; {copied_run.out}/tokenizer/_unit-" in done.stderr


@pytest.mark.parametrize(
    ("stage", "folder"), [("scan", "documents"), ("tokenize", "documents"), ("build", "parts"), ("validate", "tokens")]
)
def test_a_stage_alone_misses_a_lost_receipt_of_the_stage_before_where_the_cache_is_gone_too(
    copied_run, cppmill, stage, folder
):
    shutil.rmtree(copied_run.out / ".cache")
    lost = unit_receipts(copied_run.out / "units", folder)[0]
    lost.unlink()
    done = cppmill(stage, *copied_run.command[1:], check=False)
    assert (done.returncode, f"{lost}: missing; run `cppmill run` again" in done.stderr) == (1, True), done.stderr


@pytest.mark.parametrize(
    "name",
    ["documents/part-*", "documents/rejects-*", "tokens/part-*", "counts/morphemes.parquet", "counts/parts/*.parquet"],
)
@pytest.mark.parametrize("is_gone", [False, True], ids=["changed", "gone"])
def test_validate_alone_publishes_no_record_of_files_that_their_units_did_not_make(copied_run, cppmill, name, is_gone):
    before, damaged = (copied_run.out / "receipt.json").read_bytes(), sorted(copied_run.out.glob(name))[0]
    damaged.unlink() if is_gone else damaged.write_bytes(damaged.read_bytes()[:-1] + b"x")
    done = cppmill("validate", *copied_run.command[1:], check=False)
    assert (done.returncode, f"{damaged}: missing, or not the file of SHA-256" in done.stderr) == (1, True), done.stderr
    assert (copied_run.out / "receipt.json").read_bytes() == before
    cppmill(*copied_run.command)
    assert verify(str(copied_run.out)) == []


@pytest.mark.parametrize(
    ("stage", "name"),
    [
        ("scan", "documents/part-*"),
        ("build", "counts/terms.parquet"),
        ("build", "counts/parts/*.parquet"),
        ("tokenize", "documents/part-*"),
        ("validate", "documents/part-*"),
    ],
)
@pytest.mark.parametrize("is_gone", [False, True], ids=["changed", "gone"])
def test_a_stage_alone_takes_nothing_that_the_stage_before_did_not_make(copied_run, cppmill, stage, name, is_gone):
    damaged = sorted(copied_run.out.glob(name))[0]
    (copied_run.out / "receipt.json").unlink()
    damaged.unlink() if is_gone else damaged.write_bytes(damaged.read_bytes()[:-1] + b"x")
    done = cppmill(stage, *copied_run.command[1:], check=False)
    assert (done.returncode, f"{damaged}: missing, or not the file of SHA-256" in done.stderr) == (1, True), done.stderr


def test_the_receipt_of_another_build_beside_the_tokenizer_goes(copied_run, cppmill):
    before, key = copied_run.tree(), "0" * 64
    (own,) = unit_receipts(copied_run.out, "tokenizer")
    other = json.loads(own.read_bytes())
    for output in other["outputs"]:
        output["sha256"] = key
    other.update(key=key)
    seal(other)
    own.with_name(f"_unit-{key}.json").write_bytes(canonical_json(other))
    cppmill(*copied_run.command)
    assert copied_run.tree() == before


def test_what_is_remembered_of_another_folder_is_not_of_the_tokenizer_that_is_here(copied_run, cppmill):
    before = copied_run.tree()
    cache = copied_run.out / ".cache/stages/build.json"
    remembered = json.loads(cache.read_bytes())
    remembered.update(units=["0" * 64], options=remembered["options"] | {"vocab_size": 9000})
    seal(remembered)
    cache.write_bytes(canonical_json(remembered))
    cppmill(*copied_run.command)
    assert copied_run.tree() == before


def test_a_shard_that_only_has_another_name_is_not_made_again_and_its_receipts_name_it(copied_run, cppmill):
    before = copied_run.tree()
    (next(copied_run.sources.rglob("*.h")).parent / "empty.h").write_bytes(b"")
    done = cppmill(*copied_run.command, "--json")
    after = copied_run.tree()
    renamed = before.keys() - after.keys()
    assert any(name.startswith("documents/part-") for name in renamed)
    assert copied_run.stages(done)["tokenize"] == copied_run.stages(done)["scan"] == 0
    assert not any(name.startswith("tokens/") for name in renamed)
    assert list(verify(copied_run.out)) == []


def rot(path, place=None):
    """Flip a bit of a file, which keeps its time; in the middle, or in the byte at a place."""
    data, status = bytearray(path.read_bytes()), path.stat()
    data[len(data) // 2 if place is None else place] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.parametrize(
    ("rotten", "again"),
    [
        ("documents", "counts"),
        ("counts/parts", "counts/terms.parquet"),
        ("counts/words", "tokenizer"),
        ("documents", "tokens"),
        ("documents", "proofs"),
        ("tokens", "proofs"),
    ],
)
def test_a_bit_that_rots_is_found_before_anything_is_made_from_the_file(copied_run, cppmill, rotten, again):
    before = copied_run.tree()
    path = sorted((copied_run.out / rotten).glob("*.parquet"))[0]
    rot(path)
    made = copied_run.out / again
    shutil.rmtree(made) if made.is_dir() else made.unlink()
    done = cppmill(*copied_run.command, check=False)
    assert (done.returncode, f"error: {path}: its SHA-256 is " in done.stderr) == (1, True), done.stderr
    path.unlink()
    cppmill(*copied_run.command)
    assert copied_run.tree() == before
    assert verify(str(copied_run.out)) == []


def test_a_bit_that_rots_in_the_footers_of_token_shards_is_named_with_what_to_do(copied_run, cppmill):
    before, paths = copied_run.tree(), sorted((copied_run.out / "tokens").glob("*.parquet"))
    for path in paths:
        rot(path, path.read_bytes().index(copied_run.receipt["tokenizer"]["digest"].encode()))
    done = cppmill(*copied_run.command, check=False)
    said = r"error: (.*/tokens/.*): its SHA-256 is \w+, its receipt says \w+; remove it and run again\n"
    assert (done.returncode, bool(re.search(said, done.stderr))) == (1, True), done.stderr
    for path in paths:
        path.unlink()
    cppmill(*copied_run.command)
    assert copied_run.tree() == before


@pytest.mark.parametrize("name", ["tokenizer.json", "special_tokens_map.json", "tokenizer_config.json"])
def test_a_bit_that_rots_in_the_tokenizer_is_repaired_where_its_build_is_known_and_named_where_not(
    copied_run, cppmill, name
):
    before, path = copied_run.tree(), copied_run.out / "tokenizer" / name
    rot(path)
    cppmill(*copied_run.command)
    assert copied_run.tree() == before
    (copied_run.sources / "more.h").write_text("int more;")
    cppmill(*copied_run.command)
    rot(path)
    done = cppmill(*copied_run.command, check=False)
    assert done.returncode == 1
    assert f"{path}: " in done.stderr and "--rebuild-tokenizer, which moves" in done.stderr, done.stderr


def test_a_bit_that_rots_in_the_platforms_is_mended(copied_run, cppmill):
    before = copied_run.tree()
    rot(copied_run.out / "platform_vocab.json")
    cppmill(*copied_run.command)
    assert copied_run.tree() == before


def test_receipts_of_counts_under_the_names_of_each_other_are_named_where_the_tokenizer_is_kept(copied_run, cppmill):
    first, second, *_ = unit_receipts(copied_run.out, "counts/parts")
    one, other = first.read_bytes(), second.read_bytes()
    first.write_bytes(other)
    second.write_bytes(one)
    (copied_run.out / "receipt.json").unlink()
    (copied_run.sources / "more.h").write_text("int more;")
    done = cppmill(*copied_run.command, check=False)
    assert done.returncode == 1
    assert re.search(rf"error: ({first}|{second}): it is the receipt of the scan unit", done.stderr), done.stderr
    first.write_bytes(one)
    second.write_bytes(other)
    cppmill(*copied_run.command)
    assert verify(str(copied_run.out)) == []
    first.write_bytes(other)
    second.write_bytes(one)
    sign(copied_run.out)
    assert "it is the receipt of the scan unit" in verify(str(copied_run.out))[0]


@pytest.mark.parametrize("name", ["tokenizer.json", "vocab.tsv", "manifest.json"])
def test_a_folder_in_the_place_of_a_file_of_the_tokenizer_is_named(copied_run, cppmill, name):
    before, path = copied_run.tree(), copied_run.out / "tokenizer" / name
    path.unlink()
    path.mkdir()
    done = cppmill(*copied_run.command, check=False)
    assert (done.returncode, f"{path}: a folder, or a link to itself, is in the place of a file" in done.stderr) == (
        1,
        True,
    ), done.stderr
    path.rmdir()
    cppmill(*copied_run.command)
    assert copied_run.tree() == before


def test_groups_of_counts_that_a_killed_merge_left_are_not_merged(copied_run, cppmill, monkeypatch):
    left = copied_run.out / ".cache/merged/words-000-damaged.parquet"
    merge, there = scan.merge_shards, []

    def merge_shards(*arguments):
        there.append(left.parent.exists())
        return merge(*arguments)

    monkeypatch.setattr(scan, "merge_shards", merge_shards)
    left.parent.mkdir()
    left.write_bytes(b"PAR1")
    (copied_run.out / "counts/terms.parquet").unlink()
    before = copied_run.tree()
    cppmill(*copied_run.command)
    assert there == [False]
    assert copied_run.tree().keys() - before.keys() == {"counts/terms.parquet"}


@pytest.mark.parametrize(
    ("folder", "path"), [("documents", "../out"), ("counts/parts", ""), ("tokenizer", "."), ("tokens", 300 * "x")]
)
def test_a_unit_receipt_that_names_what_is_no_file_is_made_again(copied_run, cppmill, folder, path):
    before, receipt = copied_run.tree(), unit_receipts(copied_run.out, folder)[0]
    (copied_run.out / "receipt.json").unlink()
    rewrite(receipt, lambda value: value["outputs"][0].update(path=path))
    rewrite(receipt, seal)
    if folder == "tokenizer":  # no id moves: the user says what to do
        done = cppmill(*copied_run.command, check=False)
        assert (done.returncode, f"error: {receipt}: not a unit receipt" in done.stderr) == (1, True), done.stderr
        receipt.unlink()
    cppmill(*copied_run.command, *(["--rebuild-tokenizer"] if folder == "tokenizer" else []))
    assert copied_run.tree() == before


def lose_statistics(value):
    value["outputs"] = [output for output in value["outputs"] if "statistics" not in output["path"]]


@pytest.mark.parametrize("change", [lose_statistics, lambda value: value.update(inputs={})], ids=["output", "input"])
def test_a_receipt_of_counts_that_lacks_something_is_made_again_or_named(copied_run, cppmill, change):
    before, receipt = copied_run.tree(), unit_receipts(copied_run.out, "counts/parts")[0]
    (copied_run.out / "receipt.json").unlink()
    shutil.rmtree(copied_run.out / ".cache")
    rewrite(receipt, change)
    rewrite(receipt, seal)
    damaged = receipt.read_bytes()
    cppmill(*copied_run.command)
    assert copied_run.tree() == before
    (copied_run.out / "receipt.json").unlink()
    shutil.rmtree(copied_run.out / ".cache")
    receipt.write_bytes(damaged)
    (copied_run.sources / "more.h").write_text("int more;")
    done = cppmill(*copied_run.command, check=False)
    assert (done.returncode, receipt.name in done.stderr, "--rebuild-tokenizer" in done.stderr) == (1, True, True)


@pytest.mark.parametrize(
    ("command", "path"),
    [("lengths", "counts/namespaces.parquet"), ("report", ""), ("provenance", "."), ("shards", "a\0b")],
)
def test_a_receipt_whose_shard_is_no_file_is_refused_in_one_line(copied_run, cppmill, tmp_path, command, path):
    sign(copied_run.out, lambda receipt: receipt["dataset"]["shards"][0].update(path=path))
    options = [] if command == "lengths" else ["--out", tmp_path / "made"]
    done = cppmill(command, copied_run.out, *options, check=False)
    assert (done.returncode, f"has the path {path!r}" in done.stderr) == (1, True), done.stderr


def test_a_tokenizer_that_validate_alone_cannot_load_is_named_with_what_to_do(copied_run, cppmill):
    (copied_run.out / "tokenizer/tokenizer.json").unlink()
    done = cppmill("validate", *copied_run.command[1:], check=False)
    assert (done.returncode, "; restore it, or run again" in done.stderr) == (1, True), done.stderr


def test_nothing_is_set_aside_through_a_link(copied_run, cppmill, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (copied_run.out / ".cache/set-aside").mkdir(exist_ok=True)
    (copied_run.out / ".cache/set-aside/proofs").symlink_to(tmp_path / "elsewhere")
    (receipt, *_) = unit_receipts(copied_run.out, "proofs")
    rewrite(receipt, lambda value: value.update(key=""))
    done = cppmill(*copied_run.command, check=False)
    assert (done.returncode, ".cache/set-aside/proofs is a link" in done.stderr) == (2, True)
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_root_of_doc_ids_is_not_made_of_a_shard_that_rots(run, cppmill, tmp_path):
    for number in (1, 2):
        (tmp_path / "ids").write_text(f"{number:064}\n")
        cppmill("withdraw", tmp_path / f"{number}.json", "--doc-ids", tmp_path / "ids")
    words = [
        "run",
        run.sources / "numpy",
        "--out",
        tmp_path / "out",
        "--tokenizer",
        run.out / "tokenizer",
        "--withdrawn",
    ]
    cppmill(*words, tmp_path / "1.json")
    shard = min((tmp_path / "out").glob("tokens/part-*.parquet"))
    rot_values(shard, ["doc_id"])
    done = cppmill(*words, tmp_path / "2.json", check=False)
    assert (done.returncode, f"{shard}: its SHA-256 is" in done.stderr) == (1, True), done.stderr
    shard.unlink()
    cppmill(*words, tmp_path / "2.json")
    assert verify(str(tmp_path / "out")) == []


def test_a_lost_receipt_of_counts_is_missed_where_the_tokenizer_is_kept_and_nothing_else_names_it(copied_run, cppmill):
    (copied_run.out / "receipt.json").unlink()
    shutil.rmtree(copied_run.out / ".cache")
    path = unit_receipts(copied_run.out, "counts/parts")[0]
    receipt = path.read_bytes()
    path.unlink()
    (copied_run.sources / "more.h").write_text("int more;")
    done = cppmill(*copied_run.command, check=False)
    assert (done.returncode, "no unit receipt names it" in done.stderr) == (1, True), done.stderr
    path.write_bytes(receipt)
    cppmill(*copied_run.command)
    assert verify(str(copied_run.out)) == []


@pytest.mark.parametrize(("folder", "commands"), [("documents", ["scan", "tokenize"]), ("tokens", ["validate"])])
def test_a_stage_alone_misses_a_receipt_of_which_only_the_files_are_left(copied_run, cppmill, folder, commands):
    before = copied_run.tree()
    (copied_run.out / "receipt.json").unlink()
    shutil.rmtree(copied_run.out / ".cache")
    unit_receipts(copied_run.out, folder)[1].unlink()
    for command in commands:
        done = cppmill(command, *copied_run.command[1:], check=False)
        assert (done.returncode, "no unit receipt names it" in done.stderr) == (1, True), done.stderr
    cppmill(*copied_run.command)
    assert copied_run.tree() == before


@pytest.mark.parametrize("text", ["{", '{"documents": "1", "bytes": {"total": 2}}'])
def test_statistics_that_are_none_are_named_though_every_digest_is_true(copied_run, cppmill, text):
    path = copied_run.out / "counts/statistics.json"
    path.write_text(text)
    sign_units(copied_run.out)
    sign_again(copied_run.out)
    done = cppmill(*copied_run.command, "--rebuild-tokenizer", check=False)
    assert (done.returncode, f"error: {path}: no statistics of a scan" in done.stderr) == (1, True), done.stderr
    path.unlink()
    cppmill(*copied_run.command, "--rebuild-tokenizer")
    assert verify(str(copied_run.out)) == []


@pytest.mark.parametrize("make", [lambda path: path.symlink_to("/etc/hostname"), os.mkfifo], ids=["link", "pipe"])
@pytest.mark.parametrize("name", ["zz", "mine/zz"])
def test_what_no_receipt_can_name_is_refused_before_anything_is_done(copied_run, cppmill, make, name):
    before, path = copied_run.tree(), copied_run.out / name
    path.parent.mkdir(exist_ok=True)
    make(path)
    done = cppmill(*copied_run.command, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {path}: not a file but a link or the like, so no receipt can name it; move")
    path.unlink()
    cppmill(*copied_run.command)
    assert copied_run.tree() == before
