"""`--platform-ids`: the platforms of each document come with sequences, with `.bin` files and with Megatron pairs."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cppmill_core import CorruptDataError, load_tokenizer
from cppmill_core.batches import Ragged
from cppmill_core.loader import Loader
from cppmill_core.platforms.documents import DocumentPlatforms

from schemas.errors import IntegrityError
from schemas.export_options import SequenceOptions, ShardOptions
from schemas.options import TokenizeOptions
from schemas.tables import sequences_schema
from transforms.exports.sequences.export import make_rows, pad_id, read_texts
from transforms.exports.sequences.proofs import prove_sequences
from transforms.exports.sequences.repositories import ProjectRows, project_rows, read_repositories
from transforms.exports.sequences.segments import Encoding, SourceText, make_segments
from transforms.storage.folder import OutputFolder
from transforms.tokens.shards import token_shards

LENGTH = 512
SHARD_TOKENS = 20_000
SHARDS = ["--split-by", "document", "--validation-fraction", "0.2", "--shard-tokens", SHARD_TOKENS]


@pytest.fixture(scope="module")
def documents(run: Any) -> dict[str, dict[str, Any]]:
    """The rows of the run by doc_id; most have platforms, some have none."""
    columns = ["doc_id", "project", "path", "token_ids", "platform_ids"]
    rows = pq.read_table(run.out / "tokens", columns=columns).to_pylist()
    assert {bool(row["platform_ids"]) for row in rows} == {True, False}
    return {row["doc_id"]: row for row in rows}


@pytest.fixture(scope="module")
def make(run: Any, cppmill: Any, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Make an export of the run, once for the same flags, and return its folder, which is not to be changed."""

    @cache
    def export(command: str, *flags: Any) -> Path:
        out = tmp_path_factory.mktemp(command) / "out"
        cppmill(command, run.out, "--out", out, *flags)
        return out

    return export


def rows_of(out: Path) -> list[dict[str, Any]]:
    return [row for path in sorted(out.glob("sequences/part-*")) for row in pq.read_table(path).to_pylist()]


def manifest_of(out: Path) -> dict[str, Any]:
    return json.loads((out / "manifest.json").read_bytes())


@pytest.mark.parametrize("flags", [(), ("--mode", "pad"), ("--fim", "0.5"), ("--long", "cut")], ids=str)
def test_each_segment_has_the_platforms_of_its_document(make: Any, documents: Any, flags: tuple[str, ...]) -> None:
    out = make("sequences", "--length", LENGTH, "--platform-ids", *flags)
    rows = rows_of(out)
    for row in rows:
        assert row["platform_ids"] == [documents[name]["platform_ids"] for name in row["doc_ids"]]
    known = sum(bool(ids) for row in rows for ids in row["platform_ids"])
    assert known == manifest_of(out)["totals"]["segments_with_platforms"] > len(documents) / 2
    without = [{name: value for name, value in row.items() if name != "platform_ids"} for row in rows]
    assert rows_of(make("sequences", "--length", LENGTH, *flags)) == without


def places_of(rows: list[dict[str, Any]]) -> Iterator[tuple[str, int, int, list[int]]]:
    """The project, the place in it, the token and the platform ids of each position."""
    for row in rows:
        begun = dict(zip(row["file_starts"], row["file_platform_ids"], strict=True))
        ends = [*row["starts"][1:], row["num_tokens"]]
        for at, (start, end) in enumerate(zip(row["starts"], ends, strict=True)):
            platforms = row["platform_ids"][at]
            for position in range(start, end):
                platforms = begun.get(position, platforms)
                place = row["first_tokens"][at] + position - start
                yield row["doc_ids"][at], place, row["token_ids"][position], platforms


def test_each_position_of_a_repository_has_the_platforms_of_its_file(make: Any, run: Any, documents: Any) -> None:
    rows = rows_of(make("sequences", "--length", LENGTH, "--platform-ids", "--repositories"))
    separator = load_tokenizer(run.out / "tokenizer").control_id("<FILE_SEP>")
    files: dict[str, list[list[int]]] = {}
    for row in sorted(documents.values(), key=lambda row: row["path"].encode()):
        files.setdefault(row["project"], []).append(row["platform_ids"])
    number = dict.fromkeys(files, -1)
    for project, _, token, platforms in sorted(places_of(rows), key=lambda place: place[:2]):
        number[project] += token == separator
        assert platforms == files[project][max(0, number[project])]
    assert number == {project: len(found) - 1 for project, found in files.items()}


def test_batches_of_sequences_have_them_by_segment(make: Any) -> None:
    out = make("sequences", "--length", LENGTH, "--platform-ids")
    columns = ["doc_ids", "platform_ids"]
    batches = Loader(out / "sequences", columns=columns, batch_rows=4).batches()
    for batch, rows in zip(batches, _four_by_four(Loader(out / "sequences", columns=columns)), strict=True):
        by_row = batch["platform_ids"]
        assert isinstance(by_row.values, Ragged)
        assert by_row.offsets.tolist() == batch["doc_ids"].offsets.tolist()
        assert [[ids.tolist() for ids in row.rows()] for row in by_row.rows()] == [
            [ids.tolist() for ids in row["platform_ids"]] for row in rows
        ]


def _four_by_four(rows: Any) -> Iterator[list[Any]]:
    held = list(rows)
    yield from (held[start : start + 4] for start in range(0, len(held), 4))


@pytest.fixture(scope="module")
def encoding(run: Any) -> Encoding:
    return Encoding(load_tokenizer(run.out / "tokenizer"), TokenizeOptions())


@pytest.fixture(scope="module")
def texts(run: Any, encoding: Encoding) -> dict[bool, list[SourceText]]:
    """The documents of the run, and its repositories."""
    out, shards = OutputFolder(run.out), token_shards(run.receipt)
    found = []
    for shard in shards:
        table = pq.read_table(run.out / shard.path)
        names, tokens = table["project"].to_pylist(), table["num_tokens"].to_pylist()
        found += [ProjectRows(row[0], shard.path, *row[1:]) for row in project_rows(names, tokens)]
    joined = read_repositories(out, shards, found, encoding, platforms=True)
    options = SequenceOptions(length=LENGTH, platform_ids=True)
    return {False: list(read_texts(out, shards, options)), True: joined}


def _another(row: dict[str, Any], column: str) -> None:
    row[column] = [[*ids, 113] for ids in row[column]]


def _none(row: dict[str, Any], column: str) -> None:
    row[column] = [[] for _ in row[column]]


def _reversed(row: dict[str, Any], column: str) -> None:
    row[column] = row[column][::-1]


@pytest.mark.parametrize(
    ("column", "harm"),
    [
        *((column, harm) for column in ("platform_ids", "file_platform_ids") for harm in (_another, _none, None)),
        ("file_doc_ids", _reversed),
        ("file_starts", _reversed),
    ],
)
def test_reading_back_finds_every_difference(
    texts: Any, encoding: Encoding, tmp_path: Path, column: str, harm: Any
) -> None:
    repositories, pad = column.startswith("file"), pad_id(encoding.tokenizer)
    options = SequenceOptions(length=8192, platform_ids=True, repositories=repositories)
    made, ledger = make_segments(texts[repositories], options, encoding)
    schema = sequences_schema(encoding.tokenizer.vocab_size, options)
    batches = make_rows(made, texts[repositories], options, pad_id=pad, schema=schema)
    rows = pa.Table.from_batches(batches).to_pylist()
    for row in rows if harm else []:
        harm(row, column)
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path)

    def prove() -> Any:
        return prove_sequences(path, texts[repositories], options, encoding, pad_id=pad, ledger=ledger)

    if harm is None:
        assert prove()["sequences"] == len(rows)
        return
    with pytest.raises(IntegrityError, match=r"rows\.parquet, from row 0, row \d+: (the platform ids of|its files,)"):
        prove()


def by_tokens(documents: dict[str, dict[str, Any]], cut: slice) -> dict[tuple[int, ...], list[int]]:
    return {tuple(row["token_ids"][cut]): row["platform_ids"] for row in documents.values()}


def test_files_of_platforms_say_where_documents_of_bin_shards_start(make: Any, documents: Any) -> None:
    out = make("shards", *SHARDS, "--platform-ids", "--bos", "none")
    expected, found = by_tokens(documents, slice(1, -1)), []
    for split in ("train", "val"):
        paths = sorted(out.glob(f"shards/cpp_{split}_*.bin"))
        tokens = np.concatenate([np.fromfile(path, "<u2", offset=1024) for path in paths])
        parts = [DocumentPlatforms.load(path.with_suffix(".platforms")) for path in paths]
        assert [part.tokens for part in parts] == [(path.stat().st_size - 1024) // 2 for path in paths]
        joined = DocumentPlatforms.load(*(path.with_suffix(".platforms") for path in paths))
        assert joined.tokens == len(tokens)
        # A document that goes on in the next file is there again, at its first place.
        bounds = np.cumsum([part.tokens for part in parts])
        bags, begun = joined.ids.rows(), 0
        ends = [*joined.starts[1:].tolist(), len(tokens)]
        for bag, end in zip(bags, ends, strict=True):
            text = tuple(tokens[begun:end].tolist())
            if text in expected:
                assert bag.tolist() == expected[text]
                found.append(text)
                begun = end
            else:
                assert end in bounds
    assert sorted(found) == sorted(expected)


def test_pairs_have_the_platforms_of_each_document_in_their_order(make: Any, documents: Any) -> None:
    out = make("shards", *SHARDS, "--platform-ids", "--format", "megatron")
    expected, found = by_tokens(documents, slice(None)), 0
    for path in sorted(out.glob("shards/*.bin")):
        tokens, platforms = np.fromfile(path, "<u2"), DocumentPlatforms.load(path.with_suffix(".platforms"))
        parts = np.split(tokens, platforms.starts[1:])
        assert [expected[tuple(part.tolist())] for part in parts] == [ids.tolist() for ids in platforms.ids.rows()]
        assert platforms.documents_at(np.arange(len(tokens))).tolist() == [
            number for number, part in enumerate(parts) for _ in part
        ]
        found += len(parts)
    assert found == len(documents)


@pytest.mark.parametrize("flags", [(), ("--format", "megatron")], ids=["bin", "megatron"])
def test_the_manifest_names_them_and_other_files_stay_the_same(
    make: Any, run: Any, cppmill: Any, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    out, without = make("shards", *SHARDS, *flags, "--platform-ids"), make("shards", *SHARDS, *flags)
    manifest, plain = manifest_of(out), manifest_of(without)
    assert manifest["platform_vocab"] == {"digest": run.receipt["platform_vocab"]["digest"], "size": 113}
    assert "platform_vocab" not in plain
    assert plain["options"] == {name: v for name, v in manifest["options"].items() if name != "platform_ids"}
    added = [file for file in manifest["files"] if file["path"].endswith(".platforms")]
    assert [file for file in manifest["files"] if file not in added] == plain["files"]
    tokens = {file["path"]: file["tokens"] for file in plain["files"] if file["path"].endswith(".bin")}
    assert {file["path"].replace(".platforms", ".bin"): file["tokens"] for file in added} == tokens
    shutil.copytree(out, tmp_path / "copy")
    assert cppmill("verify", tmp_path / "copy").returncode == 0
    damaged = tmp_path / "copy" / added[0]["path"]
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"\xff")
    assert cppmill("verify", tmp_path / "copy", check=False).returncode == 1


def test_the_lines_of_the_page_read_a_file_of_platforms(make: Any, repository: Path) -> None:
    page = (repository / "docs/reference/formats.md").read_text(encoding="utf-8")
    [code] = re.findall(r"^```python\n(.*?fromfile.*?)^```$", page, re.M | re.S)
    path = sorted(make("shards", *SHARDS, "--platform-ids").glob("shards/*.platforms"))[0]
    names = {"path": path}
    exec(compile("import numpy as np\n" + code, "page", "exec"), names)
    platforms = DocumentPlatforms.load(path)
    arrays = zip(("starts", "offsets", "ids"), (platforms.starts, *reversed(platforms.ids)), strict=True)
    assert all(np.array_equal(names[name], array) and len(array) for name, array in arrays)


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.platforms"
    ids = Ragged(np.array([1, 2, 5], np.uint16), np.array([0, 2, 2, 3], np.int32))
    DocumentPlatforms(20, np.array([0, 4, 9]), ids).save(path)
    whole = path.read_bytes()
    assert DocumentPlatforms.load(path, path).starts.tolist() == [0, 4, 9, 20, 24, 29]
    assert [row.tolist() for row in DocumentPlatforms.load(path, path).ids.rows()] == 2 * [[1, 2], [], [5]]
    for data, message in (
        (b"", "not a file of platforms"),
        (b"x" + whole[1:], "not a file of platforms"),
        (whole[:8] + b"\2" + whole[9:], "of version 1"),
        (whole[:-1], "bytes, and its header says"),
        (whole[:40] + b"\7" + whole[41:], "not in order"),
        (whole[:64] + b"\7" + whole[65:], "not in order"),
    ):
        path.write_bytes(data)
        with pytest.raises(CorruptDataError, match=message):
            DocumentPlatforms.load(path)


def test_options_of_exports_without_them_have_the_form_of_before() -> None:
    assert "platform_ids" not in SequenceOptions(length=LENGTH).to_json()
    assert "platform_ids" not in ShardOptions().to_json()
