"""An export that was changed and signed again, every digest true, is found out: by itself, or beside its run."""

import json
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from configs.exports import load_export_config
from configs.tables import SEQUENCE_FLAGS, SHARD_FLAGS
from pipelines.console.progress import Reporters
from pipelines.exports import sequences, shards
from pipelines.versions.verify import verify
from schemas.digests import canonical_json, sha256_file, sha256_json
from schemas.errors import ConfigError
from schemas.export_options import SequenceOptions, ShardOptions
from transforms.exports.shards.formats import BIN_HEADER_BYTES, hash_ids

SMALL = {"--split-by": "document", "--validation-fraction": "0.2", "--shard-tokens": "20000"}
KINDS = {
    "bin": (shards, ShardOptions, SHARD_FLAGS, {**SMALL, "--platform-ids": True}),
    "pairs": (shards, ShardOptions, SHARD_FLAGS, {**SMALL, "--format": "megatron"}),
    "sequences": (sequences, SequenceOptions, SEQUENCE_FLAGS, {"--length": "256", "--fim": "0.3"}),
    "repositories": (sequences, SequenceOptions, SEQUENCE_FLAGS, {"--length": "1024", "--repositories": True}),
}


def again(run, kind, out):
    """Make an export of a kind in a folder, or what is missing of it."""
    program, model, flags, values = KINDS[kind]
    given = {"--out": str(out), **values}
    program.run(load_export_config(model, run=str(run.out), values=given, flags=flags), Reporters())


@pytest.fixture(scope="module")
def exports(run, tmp_path_factory):
    """An export of each kind; not to be changed."""
    folder = tmp_path_factory.mktemp("exports")
    for name in KINDS:
        again(run, name, folder / name)
        shutil.rmtree(folder / name / ".cache", ignore_errors=True)
    return folder


@pytest.fixture
def copy(exports, tmp_path):
    """A copy of an export of a kind, that a test may change."""
    return lambda name: shutil.copytree(exports / name, tmp_path / name)


def seal(path, value):
    path.write_bytes(canonical_json({**value, "digest": sha256_json(value)}))


def unsealed(path):
    return {name: value for name, value in json.loads(path.read_bytes()).items() if name != "digest"}


def sign_again(out, change=lambda manifest: None):
    """Make every digest true again, of files, of ids, of unit receipts and of the manifest, after a change of that."""
    for path in out.rglob("_unit-*.json"):
        receipt = unsealed(path)
        for output in receipt["outputs"]:
            file = out / output["path"]
            output |= {"sha256": sha256_file(file), "num_bytes": file.stat().st_size}
            if file.suffix == ".bin":
                skip = 0 if file.with_suffix(".idx").exists() else BIN_HEADER_BYTES
                receipt["totals"]["ids_sha256"] = hash_ids(file, skip=skip)
        seal(path, receipt)
    manifest = unsealed(out / "manifest.json")
    manifest["receipts"] = {name: sha256_file(out / name) for name in manifest["receipts"]}
    for file in manifest["files"]:
        path = out / file["path"]
        file |= {"sha256": sha256_file(path), "num_bytes": path.stat().st_size}
        if path.suffix == ".bin":
            file["ids_sha256"] = hash_ids(path, skip=0 if path.with_suffix(".idx").exists() else BIN_HEADER_BYTES)
    change(manifest)
    seal(out / "manifest.json", manifest)


def flip(path, place, bits=1):
    data = bytearray(path.read_bytes())
    data[place] ^= bits
    path.write_bytes(data)


def first(out, pattern):
    return sorted(out.glob(pattern))[0]


def edit_receipt(out, **totals):
    path = first(out, "**/_unit-*.json")
    receipt = unsealed(path)
    receipt["totals"] |= totals
    seal(path, receipt)


def edit_inputs(change):
    """Return a forgery of the inputs of a unit."""

    def edit(out):
        path = first(out, "**/_unit-*.json")
        receipt = unsealed(path)
        seal(path, {**receipt, "inputs": change(receipt["inputs"])})

    return edit


def edit_manifest(table, **facts):
    """Return a forgery of a table of the manifest."""

    def edit(out):
        manifest = unsealed(out / "manifest.json")
        manifest[table] |= facts
        seal(out / "manifest.json", manifest)

    return edit


def table(change, **more):
    """Return a forgery of the sequences; the footer stays."""

    def edit(out):
        path = first(out, "sequences/*.parquet")
        footer = pq.read_metadata(path).metadata
        del footer[b"ARROW:schema"]
        pq.write_table(change(pq.read_table(path)).replace_schema_metadata(footer | more), path)

    return edit


def column(name, change):
    def changed(rows):
        place = rows.schema.get_field_index(name)
        values = pa.array(change(rows.column(name).to_pylist()), rows.schema.field(place).type)
        return rows.set_column(place, rows.schema.field(place), values)

    return table(changed)


def one_more_column(rows):
    return rows.append_column("author", pa.array(["x"] * len(rows)))


def first_changed(new):
    return lambda rows: [new(rows[0]), *rows[1:]]


FORGERIES = {
    "a magic number": ("bin", lambda out: flip(first(out, "shards/*.bin"), 0)),
    "an id beyond the vocabulary": ("bin", lambda out: flip(first(out, "shards/*.bin"), -1, 0xFF)),
    "a BOS that is none": ("bin", lambda out: flip(first(out, "shards/cpp_train_*.bin"), BIN_HEADER_BYTES)),
    "a platform": ("bin", lambda out: flip(first(out, "shards/*.platforms"), -1, 0x7F)),
    "the place of a document": ("pairs", lambda out: flip(first(out, "shards/*.idx"), -9)),
    "the type of ids": ("pairs", lambda out: flip(first(out, "shards/*.idx"), 17, 12)),
    "documents of a unit": ("pairs", lambda out: edit_receipt(out, documents=7)),
    "more totals": ("pairs", lambda out: edit_receipt(out, note="x")),
    "units that differ on an input": ("bin", edit_inputs(lambda inputs: dict.fromkeys(inputs, "0" * 64))),
    "an input without a digest": ("pairs", edit_inputs(lambda inputs: dict.fromkeys(inputs))),
    "no input": ("sequences", edit_inputs(lambda inputs: {})),
    "no digest of the tokenizer": ("bin", edit_manifest("tokenizer", digest=None)),
    "no digest of the receipt": ("sequences", edit_manifest("dataset", receipt="")),
    "an id of a sequence": ("sequences", column("token_ids", first_changed(lambda ids: [65535, *ids[1:]]))),
    "a mask": ("sequences", column("loss_mask", first_changed(lambda mask: [not mask[0], *mask[1:]]))),
    "a start": ("sequences", column("starts", first_changed(lambda starts: [1, *starts[1:]]))),
    "a name of a document": ("sequences", column("doc_ids", first_changed(lambda names: ["x", *names[1:]]))),
    "one more column": ("sequences", table(one_more_column)),
    "a footer": ("sequences", table(lambda rows: rows, author="x")),
    "the ledger of a unit": ("sequences", lambda out: edit_receipt(out, documents_in=7)),
}


def test_a_file_that_only_a_unit_receipt_names_is_missed(copy):
    out = copy("bin")
    name = first(out, "shards/*.bin").relative_to(out).as_posix()
    (out / name).unlink()
    manifest = unsealed(out / "manifest.json")
    seal(out / "manifest.json", {**manifest, "files": [file for file in manifest["files"] if file["path"] != name]})
    assert f"{name} has another size or SHA-256" in " ".join(verify(str(out)))


@pytest.mark.parametrize("name", FORGERIES)
def test_what_contradicts_itself_is_found_without_the_run(copy, name):
    kind, forge = FORGERIES[name]
    out = copy(kind)
    forge(out)
    sign_again(out)
    assert verify(str(out)) != []


def name_receipts(out):
    """Let the manifest name the unit receipts as they are: a second export then trusts them."""
    manifest = unsealed(out / "manifest.json")
    manifest["receipts"] = {name: sha256_file(out / name) for name in manifest["receipts"]}
    seal(out / "manifest.json", manifest)


TOTALS = {
    "a number": ("bin", {"tokens": "7"}),
    "a split": ("bin", {"split": "test"}),
    "a digest": ("pairs", {"dataset_digest": None}),
    "another digest": ("pairs", {"ids_sha256": 0}),
    "a sum": ("sequences", {"documents_in": None}),
}


@pytest.mark.parametrize("name", TOTALS)
def test_a_unit_whose_totals_no_unit_has_is_made_again(run, copy, name):
    kind, totals = TOTALS[name]
    out = copy(kind)
    before = {path: path.read_bytes() for path in out.rglob("*.json")}
    edit_receipt(out, **totals)
    name_receipts(out)
    again(run, kind, out)
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize("kind", KINDS)
def test_a_unit_with_other_inputs_than_planned_is_made_again(run, copy, kind):
    out = copy(kind)
    before = {path: path.read_bytes() for path in out.rglob("*.json")}
    edit_inputs(lambda inputs: dict.fromkeys(inputs, "0" * 64))(out)
    name_receipts(out)
    again(run, kind, out)
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize("kind", ["bin", "pairs", "sequences"])
def test_the_inputs_of_each_unit_are_those_that_the_run_gives(run, copy, kind):
    out = copy(kind)
    for path in sorted(out.rglob("_unit-*.json")):
        receipt = unsealed(path)
        receipt["inputs"] = {f"{name}.old": digest for name, digest in receipt["inputs"].items()}
        seal(path, receipt)
    sign_again(out)
    found = [
        line
        for line in verify(str(out), run=str(run.out))
        if line.endswith("its inputs are not those that the run gives")
    ]
    assert len(found) == len(list(out.rglob("_unit-*.json")))


@pytest.mark.parametrize("path", ["", "shards", "../receipt.json"])
def test_a_file_of_a_unit_that_is_no_file_of_the_export_is_named(copy, path):
    out = copy("bin")
    unit = first(out, "shards/_unit-*.json")
    receipt, manifest = unsealed(unit), unsealed(out / "manifest.json")
    receipt["outputs"][0]["path"] = path
    seal(unit, receipt)
    manifest["receipts"][unit.relative_to(out).as_posix()] = sha256_file(unit)
    seal(out / "manifest.json", manifest)
    said = f"{path} has another size or SHA-256" if path == "shards" else f"no file has the path {path!r}"
    assert said in " ".join(verify(str(out)))


def leaves(value, path=()):
    """Every place of a JSON value that holds no object or array."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = [leaf for name, entry in inner for leaf in leaves(entry, (*path, name))]
    return found if isinstance(value, dict | list) and value else [path]


def other(value):
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int | float) else f"{value}x"


@pytest.mark.parametrize("kind", ["bin", "sequences"])
def test_no_place_of_a_manifest_can_be_changed_beside_the_run(run, copy, kind):
    out = copy(kind)
    manifest, missed = unsealed(out / "manifest.json"), []
    for path in leaves(manifest):
        if path[0] in ("files", "receipts") and path[1] not in (0, next(iter(manifest["receipts"]))):
            continue  # all files have the same places
        changed = json.loads(json.dumps(manifest))
        at = changed
        for name in path[:-1]:
            at = at[name]
        at[path[-1]] = other(at[path[-1]])
        seal(out / "manifest.json", changed)
        if not verify(str(out), 0, run=str(run.out)):
            missed.append(path)
    assert [path for path in missed if path[0] != "code"] == []
    seal(out / "manifest.json", {**manifest, "note": None})
    assert ["its note is not what" in line for line in verify(str(out), 0)] == [True]


def other_ids(out):
    """Put two ids that are no BOS in each other's place."""
    path = first(out, "shards/cpp_train_*.bin")
    ids = np.fromfile(path, "<u2")
    place = len(ids) - 2
    ids[place], ids[place + 1] = ids[place + 1], ids[place]
    ids.tofile(path)


def other_document(rows):
    return [["f" * 64 for _ in names] for names in rows]


CONSISTENT = {
    "two ids of a shard": ("bin", other_ids),
    "two ids of a pair": ("pairs", lambda out: flip(first(out, "shards/cpp_train_*.bin"), 100)),
    "the documents of sequences": ("sequences", column("doc_ids", other_document)),
}


@pytest.mark.parametrize("name", CONSISTENT)
def test_what_is_consistent_is_found_beside_the_run(run, copy, name):
    kind, forge = CONSISTENT[name]
    out = copy(kind)
    assert verify(str(out), 1, run=str(run.out)) == []
    forge(out)
    sign_again(out)
    assert any("made again from the run" in line for line in verify(str(out), 1, run=str(run.out)))


@pytest.mark.parametrize("name", ["an id of a sequence", "the documents of sequences"])
def test_a_trace_of_sequences_that_do_not_fit_their_run_is_an_error_that_names_them(run, copy, cppmill, name):
    kind, forge = {**FORGERIES, **CONSISTENT}[name]
    out = copy(kind)
    forge(out)
    sign_again(out)
    done = cppmill("trace", "--data", out, "--run", run.out, "--step", 0, "--batch-rows", 100_000, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert done.stderr.startswith(f"error: {first(out, 'sequences/*.parquet')}: a row does not fit the run")


def test_an_export_of_another_run_is_found(copied_run, copy):
    def change(receipt):
        receipt["code"]["cppmill"] = "0.0.0"
        return receipt

    out, path = copy("bin"), copied_run.out / "receipt.json"
    seal(path, change(unsealed(path)))
    assert [line.partition(": ")[2] for line in verify(str(out), run=str(copied_run.out))] == [
        f"its dataset is not what unit receipts and {copied_run.out} give"
    ]


def test_the_answer_says_whether_the_run_was_looked_at(run, exports, cppmill):
    alone = cppmill("verify", exports / "bin")
    assert "it was not compared with its run" in alone.stdout
    beside = cppmill("verify", exports / "repositories", "--run", run.out)
    assert "it was not compared with its run" not in beside.stdout
    assert json.loads(cppmill("verify", exports / "bin", "--json").stdout)["run"] is None


def test_a_run_is_for_an_export(run):
    with pytest.raises(ConfigError, match="is no export"):
        verify(str(run.out), run=str(run.out))


def test_totals_are_not_left_out_by_a_false_version_of_a_library(run, copy):
    out = copy("sequences")
    for path in out.rglob("_unit-*.json"):
        receipt = unsealed(path)
        del receipt["totals"]["segments_psm"]
        seal(path, receipt)

    def change(manifest):
        del manifest["totals"]["segments_psm"]
        manifest["code"]["numpy"] = "1.0"

    sign_again(out, change)
    assert "its totals are not those that the run gives" in " ".join(verify(str(out), 1.0, run=str(run.out)))


def move_documents(totals):
    totals["train"]["tokens"] -= 1
    totals["val"]["tokens"] += 1


LOOKUPS = {
    "more tokens": ("pairs", lambda totals: totals["train"].update(tokens=totals["train"]["tokens"] + 100)),
    "more files than could be listed": ("pairs", lambda totals: totals["train"].update(tokens=10**15)),
    "fewer than none": ("bin", lambda totals: totals["train"].update(tokens=-5)),
    "tokens of the other split": ("pairs", move_documents),
    "tokens of the other split of .bin": ("bin", move_documents),
    "another project": ("repositories", lambda totals: totals["projects"][0].__setitem__(0, "evil")),
    "text": ("bin", lambda totals: totals["train"].update(documents="1")),
    "no split": ("bin", lambda totals: totals.pop("val")),
    "no projects": ("repositories", lambda totals: totals.pop("projects")),
    "fewer rows": ("repositories", lambda totals: totals["projects"].pop()),
}


@pytest.mark.parametrize("has_manifest", [True, False])
@pytest.mark.parametrize("name", LOOKUPS)
def test_what_was_looked_up_for_an_export_counts_only_if_its_manifest_says_the_same(run, tmp_path, name, has_manifest):
    kind, change = LOOKUPS[name]
    again(run, kind, tmp_path)
    manifest = (tmp_path / "manifest.json").read_bytes()
    path = min(file for lookups in ("splits", "projects") for file in (tmp_path / ".cache" / lookups).glob("_unit-*"))
    receipt = unsealed(path)
    change(receipt["totals"])
    seal(path, receipt)
    if not has_manifest:
        (tmp_path / "manifest.json").unlink()
    again(run, kind, tmp_path)
    assert (tmp_path / "manifest.json").read_bytes() == manifest


@pytest.mark.parametrize("kind", ["bin", "sequences"])
def test_a_link_in_the_place_of_a_unit_receipt_is_made_again(run, tmp_path, kind):
    out = tmp_path / "out"
    again(run, kind, out)
    receipt = min(path for path in out.rglob("_unit-*.json") if ".cache" not in path.parts)
    receipt.rename(tmp_path / receipt.name)
    receipt.symlink_to(tmp_path / receipt.name)
    again(run, kind, out)
    assert not receipt.is_symlink()
    assert list(verify(str(out))) == []


@pytest.mark.parametrize(
    "change",
    [
        lambda manifest: manifest.pop("files"),
        lambda manifest: manifest["files"][0].update(path=-1),
        lambda manifest: manifest["files"][0].pop("sha256"),
        lambda manifest: manifest.update(dataset=None),
        lambda manifest: manifest["dataset"].update(receipt=["x"]),
        lambda manifest: manifest["options"].update(mode={}),
        lambda manifest: manifest.update(export=-1),
    ],
    ids=["no files", "a path", "no digest", "no dataset", "a receipt", "an option", "a kind"],
)
def test_a_manifest_of_another_form_is_named_and_made_again(copy, run, cppmill, change):
    out = copy("sequences")
    before, manifest = (out / "manifest.json").read_bytes(), unsealed(out / "manifest.json")
    change(manifest)
    seal(out / "manifest.json", manifest)
    for command in (("trace", "--data", out, "--run", run.out, "--step", 1), ("verify", out, "--run", run.out)):
        done = cppmill(*command, check=False)
        assert done.returncode == 1
        assert "manifest.json: not laid out as a manifest (" in done.stdout + done.stderr or command[0] == "verify"
    again(run, "sequences", out)
    assert (out / "manifest.json").read_bytes() == before
