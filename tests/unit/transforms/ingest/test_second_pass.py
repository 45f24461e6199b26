"""Both passes: what is kept comes out byte for byte, the ledger balances, changes between the passes are counted."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import stat
import tarfile
from functools import partial
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.errors import IntegrityError
from schemas.options import IngestOptions
from schemas.tables import DOCUMENTS, REJECTS
from tests.stores import new_prefix
from transforms.ingest import document_shards, fingerprints, input_units
from transforms.ingest.fingerprints import find_digest
from transforms.ingest.second_pass import WriteSettings, ingest_unit
from transforms.sources.listing import list_inputs
from transforms.sources.readers import read_batches
from transforms.storage.folder import OutputFolder
from transforms.storage.urls import open_url
from transforms.units.execution import run_unit

CORPUS = {
    "p/a.cpp": b"int a;\r\n",
    "p/b.h": b"\xff\xfe\x80",
    "p/copy.h": b"int copy;\n",
    "q/copy.h": b"int copy;\n",
    "q/empty.h": b"",
    "q/nul.h": b"a\0b",
    "README": b"read me",
}


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    root = tmp_path / "corpus"
    for name, content in CORPUS.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    return root


def test_documents_come_out_byte_for_byte_with_their_digests(corpus: Path, out: OutputFolder, run_ingest: Any) -> None:
    result = run_ingest([corpus], out)
    table = result.table()
    assert table.schema.equals(DOCUMENTS)
    rows = {row["path"]: row for row in table.to_pylist()}
    assert {path: row["content"] for path, row in rows.items()} == {
        name: CORPUS[name] for name in ("p/a.cpp", "p/b.h", "p/copy.h")
    }
    for row in rows.values():
        assert row["doc_id"] == hashlib.sha256(row["content"]).hexdigest()
        assert row["num_bytes"] == len(row["content"])
        assert (row["platform_ids"], row["platform_info"], row["license"]) == ([], "{}", None)
    assert {row["project"] for row in rows.values()} == {"p"}


def test_everything_else_is_in_the_rejects_and_the_ledger_balances(
    corpus: Path, out: OutputFolder, run_ingest: Any
) -> None:
    result = run_ingest([corpus], out)
    assert result.table("rejects").schema.equals(REJECTS)
    assert sorted(result.rejects) == [
        ("README", "filtered", "extension"),
        ("q/copy.h", "duplicate", ""),
        ("q/empty.h", "empty", ""),
        ("q/nul.h", "filtered", "binary"),
    ]
    ledger = result.ledger.to_json()
    assert ledger["documents"]["in"] == len(CORPUS)
    assert ledger["bytes"]["in"] == sum(map(len, CORPUS.values()))


def test_a_receipt_commits_the_outputs(corpus: Path, out: OutputFolder, run_ingest: Any) -> None:
    result = run_ingest([corpus], out)
    for unit, receipt in zip(result.units, result.receipts, strict=True):
        assert out.find_receipt(unit) == receipt
    assert sum(receipt.totals["documents"] for receipt in result.receipts) == 3


def test_running_a_unit_twice_gives_the_same_bytes(corpus: Path, out: OutputFolder, run_ingest: Any) -> None:
    result = run_ingest([corpus], out)
    assert [ingest_unit(unit, WriteSettings(out, IngestOptions())) for unit in result.units] == result.receipts


def test_duplicates_are_kept_if_the_options_say_so(corpus: Path, out: OutputFolder, run_ingest: Any) -> None:
    result = run_ingest([corpus, corpus], out, IngestOptions(drop_duplicates=False))
    assert result.ledger.documents.kept == 8
    assert len({unit.key for unit in result.units}) == len(result.units)


def test_a_source_given_twice_is_kept_once(corpus: Path, out: OutputFolder, run_ingest: Any) -> None:
    result = run_ingest([corpus, corpus], out)
    assert result.ledger.documents.kept == 3
    assert result.ledger.documents.duplicate == 5
    assert not any("rejects" not in output.path for output in result.receipts[1].outputs)


def test_nothing_kept_writes_no_shard(tmp_path: Path, out: OutputFolder, run_ingest: Any) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/x.txt").write_bytes(b"x")
    (receipt,) = run_ingest([tmp_path / "in"], out).receipts
    assert [output.path.split("-")[0] for output in receipt.outputs] == ["documents/rejects"]


@pytest.mark.parametrize("change", ["edit", "grow", "remove", "link", "socket"])
def test_a_file_that_changes_between_the_passes_is_dead_and_costs_no_other(
    change: str, corpus: Path, out: OutputFolder, run_first_pass: Any
) -> None:
    result = run_first_pass([corpus], out, IngestOptions())
    path = corpus / "p/a.cpp"
    if change == "edit":
        path.write_bytes(b"int A;\r\n")
    elif change == "grow":
        path.write_bytes(CORPUS["p/a.cpp"] * 2)
    else:
        replace(path, change)
    result.receipts = [ingest_unit(unit, WriteSettings(out, IngestOptions())) for unit in result.units]
    assert sorted(result.contents) == ["p/b.h", "p/copy.h"]
    assert ("p/a.cpp", "dead", "changed") in result.rejects
    assert result.ledger.documents.total == len(CORPUS)
    assert result.ledger.num_bytes.dead == {"changed": len(CORPUS["p/a.cpp"])}


def test_fingerprints_with_a_column_that_is_none_are_named(corpus: Path, tmp_path: Path, run_first_pass: Any) -> None:
    out = OutputFolder(tmp_path / "out")
    (unit,) = run_first_pass([corpus], out, IngestOptions()).units
    path = Path(out.where(unit.payload["fingerprints"]))
    table, footer = pq.read_table(path), pq.read_metadata(path).metadata
    edited = [{**row, "column": row["column"].replace("filtered", "filtere0")} for row in table.to_pylist()]
    with pq.ParquetWriter(path, table.schema) as writer:
        writer.write_table(pa.Table.from_pylist(edited, table.schema))
        writer.add_key_value_metadata({key: value for key, value in footer.items() if key.startswith(b"cppmill")})
    with pytest.raises(IntegrityError, match=f"^{path}: damaged .its rows are not those that were wr"):
        ingest_unit(unit, WriteSettings(out, IngestOptions()))


@pytest.mark.parametrize(
    ("change", "reason"), [("remove", "vanished"), ("link", "vanished"), ("pipe", "vanished"), ("socket", "unreadable")]
)
def test_a_file_that_cannot_be_read_is_dead_with_its_listed_size(
    change: str, reason: str, corpus: Path, out: OutputFolder, run_ingest: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = corpus / "p/a.cpp"
    real = input_units.plan_inputs

    def plan(*arguments: Any) -> Any:
        units = real(*arguments)
        replace(path, change)
        return units

    monkeypatch.setitem(run_ingest.__globals__, "plan_inputs", plan)
    result = run_ingest([corpus], out)
    assert ("p/a.cpp", "dead", reason) in result.rejects
    assert result.ledger.num_bytes.dead == {reason: len(CORPUS["p/a.cpp"])}
    assert result.ledger.documents.kept == 2


@pytest.mark.parametrize("is_renamed", [True, False])
def test_other_content_of_the_same_size_and_time_is_read(is_renamed: bool, tmp_path: Path, run_ingest: Any) -> None:
    path, other = tmp_path / "in/a.h", tmp_path / "other"
    path.parent.mkdir()
    path.write_bytes(b"int a;\n")
    times = path.stat()
    run_ingest([path.parent], OutputFolder(tmp_path / "out"))
    (other if is_renamed else path).write_bytes(b"int b;\n")
    os.utime(other if is_renamed else path, ns=(times.st_atime_ns, times.st_mtime_ns))
    if is_renamed:
        other.rename(path)
    again, fresh = (run_ingest([path.parent], OutputFolder(tmp_path / out)) for out in ("out", "fresh"))
    assert [unit.key for unit in again.units] == [unit.key for unit in fresh.units]


@pytest.mark.parametrize("name", ["a.tar", "a.h"])
def test_a_file_that_was_away_only_while_it_was_read_is_read_again(
    name: str, tmp_path: Path, archives: Any, run_ingest: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, moved = tmp_path / "in", tmp_path / "moved"
    folder.mkdir()
    path = folder / name
    before, meanwhile = (archives.tar([("m.h", text)]) if name == "a.tar" else text for text in (b"int a;", b"int b;"))
    (folder / "other.h").write_bytes(b"int other;\n")
    path.write_bytes(before)
    times = path.stat()

    def read_another(*arguments: Any, **options: Any) -> Any:
        path.rename(moved)
        path.write_bytes(meanwhile)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        yield from read_batches(*arguments, **options)
        moved.replace(path)

    with monkeypatch.context() as patch:
        patch.setattr(fingerprints, "read_batches", read_another)
        run_ingest([folder], OutputFolder(tmp_path / "out"))
    again, fresh = (run_ingest([folder], OutputFolder(tmp_path / out)) for out in ("out", "fresh"))
    assert [unit.key for unit in again.units] == [unit.key for unit in fresh.units]
    assert again.ledger == fresh.ledger


@pytest.mark.parametrize("name", ["a.tar", "a.h", "LICENSE"])
def test_a_file_that_was_another_one_while_it_was_read_is_read_again(
    name: str, tmp_path: Path, archives: Any, run_ingest: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, moved, options = tmp_path / "in", tmp_path / "moved", IngestOptions(find_licenses="folders")
    folder.mkdir()
    path = folder / name
    texts = (b"Licensed under the Apache License, Version 2.0\n", b"Ask Acme.\n")
    before, meanwhile = [archives.tar([("m.h", text)]) if name == "a.tar" else text for text in texts]
    (folder / "other.h").write_bytes(b"int other;\n")
    path.write_bytes(before)

    def plan(*arguments: Any) -> Any:
        units = input_units.plan_inputs(*arguments)
        path.rename(moved)
        path.write_bytes(meanwhile)
        return units

    with monkeypatch.context() as patch:
        patch.setitem(run_ingest.__globals__, "plan_inputs", plan)
        run_ingest([folder], OutputFolder(tmp_path / "out"), options)
    moved.replace(path)
    again, fresh = (run_ingest([folder], OutputFolder(tmp_path / out), options) for out in ("out", "fresh"))
    assert [unit.key for unit in again.units] == [unit.key for unit in fresh.units]
    assert again.ledger == fresh.ledger


def test_an_archive_that_changes_between_the_passes_is_counted_row_by_row(
    tmp_path: Path, out: OutputFolder, archives: Any, run_first_pass: Any
) -> None:
    path = tmp_path / "a.tar"
    path.write_bytes(archives.tar(archives.members(6)))
    result = run_first_pass([path], out, IngestOptions())
    work = partial(ingest_unit, settings=WriteSettings(out, IngestOptions()))
    entries = archives.members(9)
    entries[2] = (entries[2][0], b"other")
    path.write_bytes(archives.tar(entries))
    result.receipts = [run_unit(unit, out, work).result for unit in result.units]
    assert sorted(result.contents) == [f"a.tar/m/f{index}.cpp" for index in (0, 1, 3, 4, 5)]
    assert [path for path, _, reason in result.rejects if reason == "changed"] == [
        f"a.tar/m/f{index}.cpp" for index in (2, 6, 7, 8)
    ]
    path.write_bytes(archives.tar(archives.members(2)))
    out.withdraw(result.units)
    result.receipts = [run_unit(unit, out, work).result for unit in result.units]
    assert result.ledger.documents.kept == 2
    assert result.ledger.documents.dead == {"changed": 4}


def test_an_archive_is_cut_into_shards_that_move_little(
    tmp_path: Path, out: OutputFolder, archives: Any, run_ingest: Any
) -> None:
    options = IngestOptions(unit_bytes=1 << 16)
    entries = [(f"f{index:03d}.cpp", b"int x_%d;\n" % index * 400) for index in range(200)]

    def shards(name: str, members: list[tuple[str, bytes]]) -> set[bytes]:
        (tmp_path / "a.tar").write_bytes(archives.tar(members))
        result = run_ingest([tmp_path / "a.tar"], OutputFolder(f"{out.root}-{name}"), options)
        outputs = [output for receipt in result.receipts for output in receipt.outputs]
        tables = [result.read(output.path) for output in outputs]
        assert [path for table in tables for path in table["path"].to_pylist()] == [
            f"a.tar/{name}" for name, _ in members
        ]
        return {"".join(table["doc_id"].to_pylist()).encode() for table in tables}

    before, after = shards("one", entries), shards("two", [*entries[:90], ("f089x.cpp", b"new"), *entries[90:]])
    assert len(before) > 5
    assert len(after - before) <= 2


def test_row_groups_are_bounded(
    tmp_path: Path, out: OutputFolder, run_ingest: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document_shards, "ROW_GROUP_BYTES", 10_000)
    (tmp_path / "in").mkdir()
    for index in range(40):
        (tmp_path / f"in/{index}.h").write_bytes(b"%d;" % index * 1_000)
    (receipt,) = run_ingest([tmp_path / "in"], out).receipts
    with out.open_local(receipt.outputs[0].path) as path:
        metadata = pq.read_metadata(path)
    sizes = [metadata.row_group(index).num_rows for index in range(metadata.num_row_groups)]
    assert sum(sizes) == 40
    assert max(sizes) <= 5
    assert metadata.row_group(0).column(3).statistics is None
    assert metadata.metadata[b"cppmill.format"] == b"1"


def test_platforms_come_from_the_detector(corpus: Path, out: OutputFolder, run_first_pass: Any) -> None:
    def detect(documents: pa.RecordBatch) -> pa.RecordBatch:
        ids = [[3, 7] if path.endswith("cpp") else [] for path in documents.column("path").to_pylist()]
        assert documents.schema.names == ["path", "content"]
        return pa.RecordBatch.from_pydict({"platform_ids": ids, "platform_info": ['{"x":1}'] * len(ids)})

    result = run_first_pass([corpus], out, IngestOptions())
    for unit in result.units:
        ingest_unit(unit, WriteSettings(out, IngestOptions(), lambda: detect))
    rows = {row["path"]: row for row in result.table().to_pylist()}
    assert rows["p/a.cpp"]["platform_ids"] == [3, 7]
    assert rows["p/b.h"]["platform_ids"] == []
    assert rows["p/a.cpp"]["platform_info"] == '{"x":1}'


def test_licences_travel(tmp_path: Path, out: OutputFolder, run_ingest: Any) -> None:
    (tmp_path / "a.jsonl").write_text('{"content": "int a;", "terms": "MIT"}\n{"content": "int b;"}\n')
    result = run_ingest([tmp_path / "a.jsonl"], out, IngestOptions(license_column="terms"))
    assert result.table()["license"].to_pylist() == ["MIT", None]
    assert result.ledger.documents.kept == 2


def replace(path: Path, kind: str) -> None:
    """Remove a file, or put a link, a pipe or a socket in its place; no one can open a socket."""
    path.unlink()
    if kind == "link":
        path.symlink_to("b.h")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        os.mknod(path, stat.S_IFSOCK | 0o600)


@pytest.mark.parametrize(
    "scheme",
    ["memory", pytest.param("s3", marks=pytest.mark.engines), pytest.param("gs", marks=pytest.mark.engines)],
)
def test_an_object_store_is_read_like_a_folder(
    scheme: str, start_store: Any, tmp_path: Path, archives: Any, run_ingest: Any
) -> None:
    url = f"memory://{tmp_path.name}" if scheme == "memory" else new_prefix(start_store(scheme))
    system, folder = open_url(url)
    entries = archives.members(5)
    system.pipe(f"{folder}/p/a::b#1.cpp", b"int a;")
    system.pipe(f"{folder}/p/empty.cpp", b"")
    system.pipe(f"{folder}/p/big.cpp", b"x" * 2_000)
    system.pipe(f"{folder}/t.tar.gz", gzip.compress(archives.tar(entries)))
    system.pipe(f"{folder}/z.zip", archives.zip([("z.cpp", b"int z;")]))
    try:
        result = run_ingest([url], OutputFolder(tmp_path / "out"), IngestOptions(max_document_bytes=1_000))
        listings = [list_inputs([f"{url}/{pattern}"], IngestOptions()) for pattern in ("*/a*", "p*", "**/*.zip")]
    finally:
        system.rm(folder, recursive=True)
    matching = [[item.path for item in listing.inputs] for listing in listings]
    assert matching == [["p/a::b#1.cpp"], ["p/a::b#1.cpp", "p/big.cpp", "p/empty.cpp"], ["z.zip"]]
    tarred = {f"t.tar.gz/{name}": content for name, content in entries}
    assert result.contents == {"p/a::b#1.cpp": b"int a;", "z.zip/z.cpp": b"int z;", **tarred}
    assert result.rejects == [("p/big.cpp", "filtered", "size"), ("p/empty.cpp", "empty", "")]


def test_what_came_damaged_from_a_server_is_read_again_by_the_next_run(
    tmp_path: Path, archives: Any, run_first_pass: Any
) -> None:
    data = archives.tar(archives.members(5))[:-3000]
    (tmp_path / "a.tar").write_bytes(data)
    url = f"memory://{tmp_path.name}/a.tar"
    system, path = open_url(url)
    system.pipe(path, data)
    try:
        for number, (source, is_known) in enumerate([(tmp_path / "a.tar", True), (url, False)]):
            out = OutputFolder(tmp_path / f"out{number}")
            (unit,) = run_first_pass([source], out, IngestOptions()).found.units
            assert bool(find_digest(unit, out, IngestOptions())) == is_known
    finally:
        system.rm(path)


def test_converted_text_is_chosen_by_what_it_became(tmp_path: Path, out: OutputFolder, run_ingest: Any) -> None:
    header = (Path(np.get_include()) / "numpy" / "npy_common.h").read_text()
    root = tmp_path / "corpus"
    root.mkdir()
    for name, codec in (("a.h", "utf-16"), ("b.h", "utf-8"), ("c.h", "utf-32")):
        (root / name).write_bytes(header.encode(codec))
    (root / "d.h").write_bytes(header.encode("utf-16")[:-1])
    with tarfile.open(tmp_path / "more.tar", "w") as archive:
        archive.add(root / "a.h", "e.h")
    result = run_ingest([root, tmp_path / "more.tar"], out, IngestOptions(convert_wide_text=True))
    (row,) = result.table().to_pylist()
    assert (row["path"], row["content"]) == ("a.h", header.encode())
    assert row["doc_id"] == hashlib.sha256(header.encode()).hexdigest()
    assert row["source_doc_id"] == hashlib.sha256(header.encode("utf-16")).hexdigest()
    dropped = [("b.h", "duplicate", ""), ("c.h", "duplicate", ""), ("d.h", "filtered", "wide_text")]
    assert sorted(result.rejects) == [*dropped, ("more.tar/e.h", "duplicate", "")]
    assert sum(receipt.totals["altered"] for receipt in result.receipts) == 1


def test_an_archive_that_takes_too_long_ends_where_it_ended_first(
    tmp_path: Path, out: OutputFolder, run_first_pass: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "slow.jsonl"
    path.write_text("".join(json.dumps({"content": f"int a{row};"}) + "\n" for row in range(9)))
    ticks = count(step=100)  # each look at the clock is 100 seconds later
    monkeypatch.setattr("transforms.sources.document.time", SimpleNamespace(monotonic=lambda: next(ticks)))
    monkeypatch.setattr("transforms.sources.jsonl.BATCH_ROWS", 1)
    result = run_first_pass([path], out, IngestOptions(max_input_seconds=350))
    monkeypatch.undo()
    settings = WriteSettings(out, IngestOptions(max_input_seconds=900))
    result.receipts = [run_unit(unit, out, partial(ingest_unit, settings=settings)).result for unit in result.units]
    assert sorted(result.contents) == ["slow.jsonl/line-1", "slow.jsonl/line-2", "slow.jsonl/line-3"]
    assert result.rejects == [("slow.jsonl", "dead", "timeout")]
    assert not find_digest(result.found.units[0], out, settings.options), "the next run reads it again"
