"""`cppmill trace`: the documents of a step are those that the loader gave, and all spans make all documents."""

import json
import shutil
from collections import Counter, defaultdict

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cppmill_core import stamp
from cppmill_core.loader import Loader, Place

from configs.exports import ExportConfig
from pipelines.console.progress import Reporters
from pipelines.exports import sequences
from schemas.export_options import SequenceOptions


@pytest.fixture(scope="module")
def licensed(run, prepared, cppmill):
    """A run whose documents partly have licences, of few small shards; not to be changed."""

    def make(folder):
        rows = [
            row for path in sorted((run.out / "documents").glob("part-*")) for row in pq.read_table(path).to_pylist()
        ]
        table = pa.table(
            {
                "content": [row["content"] for row in rows],
                "path": [row["path"] for row in rows],
                "license": [None if number % 3 == 0 else f"LicenseRef-{number}" for number in range(len(rows))],
            }
        )
        pq.write_table(table, folder / "source.parquet", row_group_size=40)
        options = ["--unit-bytes", 1 << 18, "--set", 'ingest.license_column="license"']
        tokenizer = ["--tokenizer", run.out / "tokenizer"]
        cppmill("run", folder / "source.parquet", "--out", folder / "out", *tokenizer, *options)

    return prepared("licensed-run", make)


def traced(cppmill, *arguments):
    """The records of a trace: the dataset, the documents, the licences."""
    records = [json.loads(line) for line in cppmill("trace", *arguments, "--json").stdout.splitlines()]
    documents = [record for record in records if record["record"] == "document"]
    return records[0], documents, [record for record in records if record["record"] == "license"]


def read_steps(folder, state, ranks, steps, batch_rows):
    """The doc_ids that each rank reads in the next steps of an epoch, and the position behind them."""
    made = defaultdict(list)
    for rank in range(ranks):
        place = Place(rank=rank, ranks=ranks)
        loader = Loader(folder, columns=["doc_id"], seed=7, streams=4, batch_rows=batch_rows, place=place)
        if state:
            loader.load_state_dict(state)
        for step, batch in zip(range(steps), loader.batches(), strict=False):
            made[step, rank] = [row.tobytes().hex() for row in batch["doc_id"]]
    return made, loader.state_dict(steps=steps)


def test_every_step_of_every_rank_is_what_the_loader_gave(licensed, cppmill, tmp_path):
    data, checkpoint = licensed / "out", tmp_path / "state.json"
    first, state = read_steps(data / "tokens", None, 2, 3, 4)
    second, state = read_steps(data / "tokens", state, 3, 2, 2)
    checkpoint.write_text(json.dumps({"data": state, "step": 5}))
    expected = first | {(step + 3, rank): names for (step, rank), names in second.items()}
    _, documents, _ = traced(cppmill, checkpoint, "--data", data, "--until")
    found = defaultdict(list)
    for record in sorted(documents, key=lambda record: record["position"]):
        found[record["step"], record["rank"]].append(record["doc_id"])
    assert found == expected
    for (step, rank), names in expected.items():
        _, documents, _ = traced(cppmill, checkpoint, "--data", data, "--step", step, "--rank", rank)
        assert [record["doc_id"] for record in documents] == names
    _, last, _ = traced(cppmill, checkpoint, "--data", data)
    assert [(record["step"], record["rank"]) for record in last] == [(4, 0), (4, 1), (4, 2)] * 2
    numbers = ["--ranks", 2, "--batch-rows", 4, "--seed", 7, "--streams", 4]
    _, without, _ = traced(cppmill, "--data", data, "--step", 1, "--epoch", 0, "--rank", 1, *numbers)
    assert [record["doc_id"] for record in without] == first[1, 1]


def test_a_document_has_its_place_licence_and_bytes(licensed, cppmill, tmp_path):
    data, source = licensed / "out", pq.read_table(licensed / "source.parquet").to_pylist()
    state = Loader(data / "tokens", batch_rows=1000).state_dict(steps=1)
    assert (state["epoch"], state["consumed"]) == (1, 0)
    (tmp_path / "state.json").write_text(json.dumps(state))
    head, documents, licenses = traced(cppmill, tmp_path / "state.json", "--data", data, "--until")
    receipt = json.loads((data / "receipt.json").read_bytes())
    assert (head["dataset"], head["receipt"]) == (receipt["dataset"]["digest"], receipt["digest"])
    assert (head["tokenizer"], head["revision"]) == (receipt["tokenizer"]["digest"], "unreleased")
    assert head["checkpoint"]["source"] == {"dataset": head["dataset"], "receipt": head["receipt"]}
    found = {(record["path"], record["license"], *record["bytes"]) for record in documents}
    assert found == {(f"source.parquet/{row['path']}", row["license"], 0, len(row["content"])) for row in source}
    assert len(documents) == len(source)
    known = [record for record in licenses if record["license"] is not None]
    [unknown] = [record for record in licenses if record["license"] is None]
    assert unknown["documents"] == sum(row["license"] is None for row in source)
    assert sum(record["bytes"] for record in licenses) == receipt["dataset"]["bytes"]
    assert len(known) == sum(row["license"] is not None for row in source)


def test_copies_of_a_document_have_each_their_own_licence(licensed, run, cppmill, tmp_path):
    rows = pq.read_table(licensed / "source.parquet").slice(0, 60).to_pylist()
    copies = [{**row, "path": f"copy/{row['path']}", "license": "LicenseRef-copy"} for row in rows[::3]]
    pq.write_table(pa.Table.from_pylist([*rows, *copies, *copies]), tmp_path / "copies.parquet", row_group_size=16)
    options = ["--no-drop-duplicates", "--license-column", "license", "--path-column", "path"]
    options += ["--tokenizer", run.out / "tokenizer", "--platform-prefix", "--unit-bytes", 1 << 16]
    cppmill("run", tmp_path / "copies.parquet", "--out", tmp_path / "out", *options)
    _, documents, _ = traced(cppmill, "--data", tmp_path / "out", "--step", 0, "--batch-rows", 1000)
    found = Counter((record["path"], record["license"]) for record in documents)
    assert found == Counter((f"copies.parquet/{row['path']}", row["license"]) for row in [*rows, *copies, *copies])


@pytest.mark.parametrize(
    "options",
    [{}, {"fim_rate": 0.7, "cursor_rate": 1.0}, {"repositories": True}, {"mode": "pad", "long": "cut"}],
    ids=["plain", "rearranged", "repositories", "cut"],
)
def test_the_spans_of_sequences_make_their_documents(licensed, cppmill, tmp_path, options):
    data, run = tmp_path / "made", licensed / "out"
    given = SequenceOptions(length=512, **options)
    sequences.run(ExportConfig(run=run, out=data, options=given), Reporters())
    state = Loader(data / "sequences", batch_rows=10_000).state_dict(steps=1)
    (tmp_path / "model.json").write_text("{}")
    stamp(tmp_path / "model.json", run, position=state)
    head, documents, _ = traced(cppmill, tmp_path / "model.json", "--data", data, "--run", run, "--until")
    manifest = json.loads((data / "manifest.json").read_bytes())
    assert head["manifest"] == manifest["digest"]
    spans = defaultdict(list)
    for record in documents:
        spans[record["doc_id"]].append((*record["bytes"], record["num_bytes"]))
    shards = sorted((run / "documents").glob("part-*"))
    sizes = {row["doc_id"]: row["num_bytes"] for path in shards for row in pq.read_table(path).to_pylist()}
    assert spans.keys() == sizes.keys()
    for name, found in spans.items():
        reached = 0
        for start, end, num_bytes in sorted(found):
            assert (start, num_bytes) == (reached, sizes[name])
            reached = end
        assert reached == sizes[name] or (options.get("long") == "cut" and len(found) == 1)
    if not options.get("repositories"):
        assert sum(record["tokens"] for record in documents) == manifest["totals"]["tokens_in_sequences"]


def test_another_dataset_or_step_is_refused(licensed, run, cppmill, tmp_path):
    state = Loader(licensed / "out" / "tokens").state_dict(steps=3)
    checkpoint = tmp_path / "state.json"

    def refused(changes, *arguments):
        checkpoint.write_text(json.dumps(state | changes))
        done = cppmill("trace", checkpoint, *arguments, check=False)
        assert done.returncode == 2
        return done.stderr

    data = ["--data", licensed / "out"]
    assert "its dataset is" in refused({}, "--data", run.out)
    assert "its files have the fingerprint" in refused({"dataset": "ab", "source": None}, *data)
    assert "its tokenizer is" in refused({"tokenizer": "ab"}, *data)
    assert "had not made this step" in refused({}, *data, "--step", 3)
    assert "leave out --ranks" in refused({}, *data, "--ranks", 2)
    assert "--rank 1: epoch 0 was read by 1 ranks" in refused({}, *data, "--rank", 1)
    assert "give both" in refused({}, *data, "--epoch", 0)
    assert "does not record how steps were made; give" in refused({"legs": []}, *data)
    assert "no position of a loader" in refused({"format": "other"}, *data)
    assert "1000 streams of" in refused({"streams": 1_000}, *data)
    assert "2 streams of" in refused({"streams": 2, "shuffle": False}, *data)
    assert "1,000,000 rows of an epoch consumed" in refused({"consumed": 1_000_000}, *data)
    leg = state["legs"][0]
    for wrong in ([leg | {"epoch": 5}], [leg | {"consumed": 4}], [leg | {"consumed": 10**9}]):
        assert "do not lead to (0, 3)" in refused({"legs": wrong}, *data)
    for wrong in ([leg, leg], [leg | {"consumed": 2}, leg]):
        assert "no loader writes the leg" in refused({"legs": wrong}, *data)
    done = cppmill("trace", *data, check=False)
    assert (done.returncode, "give a checkpoint, or --step" in done.stderr) == (2, True)


def test_sequences_need_their_run(licensed, run, cppmill, tmp_path):
    data = tmp_path / "made"
    sequences.run(ExportConfig(run=licensed / "out", out=data, options=SequenceOptions(length=512)), Reporters())
    for more, said in [([], "give the run that they were made from"), (["--run", run.out], "its receipt is")]:
        done = cppmill("trace", "--data", data, "--step", 0, *more, check=False)
        assert (done.returncode, said in done.stderr) == (2, True)


@pytest.mark.parametrize(
    "change", [lambda unit: unit.write_bytes(unit.read_bytes() + b"\n"), lambda unit: unit.unlink()]
)
def test_sequences_are_not_traced_by_other_unit_receipts_than_the_manifest_names(licensed, cppmill, tmp_path, change):
    data = tmp_path / "made"
    sequences.run(ExportConfig(run=licensed / "out", out=data, options=SequenceOptions(length=512)), Reporters())
    for unit in (data / "units" / "sequences").iterdir():
        change(unit)
    done = cppmill("trace", "--data", data, "--step", 0, "--run", licensed / "out", check=False)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith(f"error: {data}/units/sequences/_unit-")
    assert done.stderr.endswith("; export again\n")


@pytest.mark.parametrize("gone", ["tokens", "tokenizer"])
def test_sequences_are_not_traced_without_all_of_their_run(licensed, cppmill, tmp_path, gone):
    data = tmp_path / "made"
    sequences.run(ExportConfig(run=licensed / "out", out=data, options=SequenceOptions(length=512)), Reporters())
    out = shutil.copytree(licensed / "out", tmp_path / "out")
    shutil.rmtree(out / gone)
    done = cppmill("trace", "--data", data, "--step", 0, "--run", out, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith(f"error: {out}/{gone}/")
    assert ": missing" in done.stderr


def test_a_changed_shard_is_found_and_missing_documents_are_told(licensed, cppmill, tmp_path):
    out = shutil.copytree(licensed / "out", tmp_path / "out")
    shutil.rmtree(out / "documents")
    table = cppmill("trace", "--data", out, "--step", 2, "--batch-rows", 5).stdout
    assert "their licences are not known" in table
    assert "unknown" in table
    for shard in (out / "tokens").glob("part-*"):
        shard.write_bytes(rewritten(shard))
    done = cppmill("trace", "--data", out, "--step", 2, "--batch-rows", 5, check=False)
    assert done.returncode != 0
    assert "its SHA-256 is" in done.stderr


def test_a_shard_with_other_rows_is_found_whichever_it_is(licensed, cppmill, tmp_path):
    shards = sorted((licensed / "out" / "tokens").glob("part-*"))
    for shard in shards:
        out = shutil.copytree(licensed / "out", tmp_path / shard.stem)
        pq.write_table(pq.read_table(shard).slice(1), out / "tokens" / shard.name, compression="zstd")
        done = cppmill("trace", "--data", out, "--step", 0, "--batch-rows", 1, check=False)
        assert (done.returncode, done.stderr.count("\n")) == (1, 1)
        assert done.stderr.startswith(f"error: {out}/tokens/{shard.name}: has ")


@pytest.mark.parametrize("changed", ["documents/part-*", "units/tokens/_unit-*"])
def test_licences_are_not_read_from_other_files_than_the_receipt_names(licensed, cppmill, tmp_path, changed):
    out = shutil.copytree(licensed / "out", tmp_path / "out")
    for path in out.glob(changed):
        path.write_bytes(rewritten(path) if path.suffix == ".parquet" else path.read_bytes() + b"\n")
    done = cppmill("trace", "--data", out, "--step", 2, "--batch-rows", 5, check=False)
    assert done.returncode == 1
    assert changed.partition("*")[0] in done.stderr
    assert "run `cppmill run` again" in done.stderr


def rewritten(path):
    """The same rows and row groups in other bytes."""
    file = pq.ParquetFile(path)
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, file.schema_arrow, compression="none") as writer:
        for group in range(file.num_row_groups):
            writer.write_table(file.read_row_group(group))
    return sink.getvalue().to_pybytes()
