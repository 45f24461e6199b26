"""The steps of a training, computed from the last position alone, are those that its loaders made."""

from __future__ import annotations

import json
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

import cppmill_core
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest
from cppmill_core.loader import Dataset, Loader, Place
from cppmill_core.order.shuffling import EpochOrder
from cppmill_core.order.steps import History, Leg, Stretch, read_legs
from fsspec.implementations.local import LocalFileSystem
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.digests import canonical_json, sha256_file, sha256_json
from tests.token_shards import FILES, ROWS, write_shards

Made = list[tuple[int, int, int]]
"""Epoch, rank and row of what a step read, in its order."""


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return Dataset.open(write_shards(tmp_path_factory.mktemp("shards"), FILES))


def train(dataset: Dataset, state: dict[str, Any] | None, ranks: int, steps: int, **options: Any) -> tuple[Any, Any]:
    """Make steps after a position: what each read, and the position behind them, through JSON as in a checkpoint."""
    loaders = [
        Loader(dataset, columns=["number"], seed=3, streams=4, place=Place(rank=rank, ranks=ranks), **options)
        for rank in range(ranks)
    ]
    for loader in loaders:
        if state is not None:
            loader.load_state_dict(state)
    made: list[Made] = []
    while len(made) < steps:
        epoch, wanted = loaders[0].epoch, steps - len(made)
        batches = [list(loader.batches()) for loader in loaders]
        in_epoch = max(map(len, batches))
        for number in range(min(in_epoch, wanted)):
            read = [batch[number]["number"].tolist() if number < len(batch) else [] for batch in batches]
            width = max(map(len, read))
            made.append(
                [(epoch, rank, rows[at]) for at in range(width) for rank, rows in enumerate(read) if at < len(rows)]
            )
        if in_epoch > wanted:
            for loader in loaders:
                loader.epoch = epoch
                loader.consumed = state["consumed"] if state is not None and state["epoch"] == epoch else 0
            return made, json.loads(json.dumps(loaders[0].state_dict(steps=wanted)))
    return made, json.loads(json.dumps(loaders[0].state_dict(steps=0)))


def order_of(dataset: Dataset, epoch: int) -> EpochOrder:
    return EpochOrder([rows for _, _, rows in dataset.groups], 3, epoch, 4)


def row_numbers(dataset: Dataset, stretch: Stretch) -> Made:
    """What a stretch reads, by the order alone."""
    firsts = [sum(rows for _, _, rows in dataset.groups[:group]) for group in range(len(dataset.groups))]
    found = [
        (position, firsts[group] + row)
        for group, rows, positions in order_of(dataset, stretch.epoch).rows_between(stretch.start, stretch.end)
        for row, position in zip(rows.tolist(), positions.tolist(), strict=True)
    ]
    return [(stretch.epoch, stretch.locate(position)[1], row) for position, row in sorted(found)]


LEGS = st.lists(
    st.tuples(st.integers(1, 3), st.integers(1, 5), st.booleans(), st.integers(1, 14)), min_size=1, max_size=3
)


@given(LEGS)
@settings(max_examples=50)  # each trains for a whole epoch or several
def test_every_step_is_the_one_that_was_made(dataset: Dataset, legs: list[tuple[int, int, bool, int]]) -> None:
    made: list[Made] = []
    state: dict[str, Any] | None = None
    for ranks, batch_rows, drop_last, steps in legs:
        more, state = train(dataset, state, ranks, steps, batch_rows=batch_rows, drop_last=drop_last)
        made += more
    assert state is not None
    history = History(dataset.rows, read_legs(state))
    found = [
        stretch.only(n) for stretch in history.until(state["epoch"], state["consumed"]) for n in range(stretch.steps)
    ]
    assert [row_numbers(dataset, step) for step in found] == made
    assert [step.step for step in found] == list(range(len(made)))
    assert history.last(state["epoch"], state["consumed"]) == found[-1]
    for step in found:
        assert history.find(step.step) == history.find(step.step_in_epoch, step.epoch) == step
        assert {step.locate(position)[0] for position in range(step.start, step.end)} == {step.step}


def test_a_position_has_one_leg_for_each_change(dataset: Dataset) -> None:
    _, state = train(dataset, None, 2, 3, batch_rows=2)
    _, same = train(dataset, state, 2, 1, batch_rows=2)
    assert same["legs"] == state["legs"]
    _, other = train(dataset, same, 1, 1, batch_rows=3)
    assert [(leg["consumed"], leg["ranks"], leg["batch_rows"]) for leg in other["legs"]] == [(0, 2, 2), (16, 1, 3)]
    _, back = train(dataset, state, 1, 1, batch_rows=3)
    assert [leg["consumed"] for leg in back["legs"]] == [0, 12]
    loader = Loader(dataset, seed=3, streams=4, place=Place(ranks=3))
    loader.load_state_dict(other)
    again = Loader(dataset, seed=3, streams=4, batch_rows=3)
    again.load_state_dict(loader.state_dict(steps=0))
    assert again.state_dict(steps=0)["legs"] == other["legs"]


def test_a_position_without_legs_begins_one(dataset: Dataset) -> None:
    _, state = train(dataset, None, 1, 5)
    del state["legs"]
    _, later = train(dataset, state, 1, 2)
    [leg] = read_legs(later)
    assert (leg.epoch, leg.consumed) == (0, 5)
    assert [(found.start, found.end) for found in History(ROWS, [leg]).until(0, 7)] == [(5, 7)]


def test_steps_that_are_none_are_refused(dataset: Dataset) -> None:
    leg = Leg(epoch=0, consumed=0, ranks=2, batch_rows=3, drop_last=True)
    history = History(ROWS, [leg])
    assert history.find(4, 7).step == 7 * (ROWS // 6) + 4
    assert history.last(0, 0) is None
    with pytest.raises(cppmill_core.InvalidInputError, match="step 5: epoch 1 has no such step"):
        history.find(5, 1)
    large = History(ROWS, [Leg(epoch=0, consumed=0, ranks=1, batch_rows=ROWS + 1, drop_last=True)])
    with pytest.raises(cppmill_core.InvalidInputError, match="a step of 35 rows: an epoch has 34"):
        large.find(0)
    with pytest.raises(cppmill_core.InvalidInputError, match="legs that cannot be read"):
        read_legs({"legs": [{"epoch": 0}]})


@pytest.mark.parametrize("name", ["receipt", "manifest"])
def test_a_position_names_the_record_beside_the_files(dataset: Dataset, tmp_path: Path, name: str) -> None:
    assert Loader(dataset).state_dict()["source"] is None
    folder = shutil.copytree(dataset.folder, tmp_path / "out" / "tokens")
    file, digest = tmp_path / "out" / f"{name}.json", write_record(tmp_path / "out", name, record_of(dataset))
    assert Loader(folder).state_dict()["source"] == {"dataset": "ab", name: digest}
    for other in ([], {"format": "other-1"}):
        file.write_text(json.dumps(other))
        assert Loader(folder).state_dict()["source"] is None


def record_of(dataset: Dataset, **more: Any) -> dict[str, Any]:
    return {
        "format": "cppmill-receipt-1",
        "dataset": {"digest": "ab"},
        "tokenizer": {"digest": dataset.tokenizer},
        **more,
    }


def write_record(folder: Path, name: str, record: dict[str, Any]) -> str:
    """Write a record with its digest, which is returned."""
    digest = sha256_json(record)
    (folder / f"{name}.json").write_bytes(canonical_json({**record, "digest": digest}))
    return digest


@pytest.mark.parametrize("name", ["receipt", "manifest"])
def test_a_record_that_is_damaged_is_not_passed_over(dataset: Dataset, tmp_path: Path, name: str) -> None:
    folder = shutil.copytree(dataset.folder, tmp_path / "out" / "tokens")
    write_record(folder.parent, name, record_of(dataset))
    file = folder.parent / f"{name}.json"
    data = file.read_bytes()
    damaged = [b"", data[:-1], data.replace(b'"ab"', b'"ac"'), data.replace(b"-receipt-", b"-receips-")]
    damaged += [data.replace(b'"dataset"', b'"datasex"'), data.replace(b'"tokenizer"', b'"tokenizes"')]
    for found in damaged:
        assert found != data
        file.write_bytes(found)
        with pytest.raises(cppmill_core.CorruptDataError, match=f"{name}.json: (damaged|its content does not)"):
            Loader(folder)
    write_record(folder.parent, name, record_of(dataset, tokenizer={"digest": "0" * 64}))
    with pytest.raises(cppmill_core.CorruptDataError, match=f"and the {name} beside the folder 0000"):
        Loader(folder)


@pytest.mark.parametrize(("name", "key"), [("receipt", "dataset"), ("manifest", "")])
def test_files_are_those_that_the_record_lists(dataset: Dataset, tmp_path: Path, name: str, key: str) -> None:
    folder = shutil.copytree(dataset.folder, tmp_path / "out" / "tokens")
    rows = dict.fromkeys((file for file, _, _ in dataset.groups), 0)
    for file, _, number in dataset.groups:
        rows[file] += number
    lines = [
        {"path": f"tokens/{file}", "rows": number, "sha256": sha256((folder / file).read_bytes()).hexdigest()}
        for file, number in rows.items()
    ]
    record = record_of(dataset, files={})
    (record[key] if key else record)["shards" if key else "files"] = lines

    def load(*, check_files: bool = False) -> int:
        write_record(folder.parent, name, record)
        return Loader(Dataset.open(folder, check_files=check_files)).dataset.rows

    assert load() == load(check_files=True) == ROWS
    data = bytearray((last := folder / max(rows)).read_bytes())
    data[len(data) // 3] ^= 1
    last.write_bytes(data)
    assert load() == ROWS
    with pytest.raises(cppmill_core.CorruptDataError, match=f"{last.name}: its SHA-256 is .*, the record in .* lists"):
        load(check_files=True)
    shutil.copy(folder / min(rows), folder / "part-more.parquet")
    with pytest.raises(cppmill_core.CorruptDataError, match="part-more.parquet: .* rows, and the .* no such file"):
        load()
    (folder / "part-more.parquet").unlink()
    lines[0]["rows"] = 1_000
    with pytest.raises(cppmill_core.CorruptDataError, match="lists 1000 rows; `cppmill verify` tells more"):
        load()
    (folder / Path(str(lines[0]["path"])).name).unlink()
    with pytest.raises(cppmill_core.CorruptDataError, match="no such file, and the record in .* lists 1000 rows"):
        load()
    del lines[0]["path"]
    with pytest.raises(cppmill_core.CorruptDataError, match="lists a file without path or rows"):
        load()
    (folder.parent / f"{name}.json").unlink()
    with pytest.raises(cppmill_core.CorruptDataError, match="nothing beside it lists its files"):
        Dataset.open(folder, check_files=True)


def test_a_file_that_is_replaced_while_it_is_read_is_named(dataset: Dataset, tmp_path: Path) -> None:
    opened = Dataset.open(folder := shutil.copytree(dataset.folder, tmp_path / "tokens"))
    last = folder / opened.groups[-1][0]
    table = pq.read_table(last)
    for rows in (table.slice(1), table.slice(0, 0)):
        pq.write_table(rows, last, row_group_size=1 << 20)
        with pytest.raises(cppmill_core.CorruptDataError, match=f"{last.name}: was replaced while it was read"):
            list(Loader(opened))


def test_a_file_that_is_replaced_after_its_digest_was_compared_is_named(dataset: Dataset, tmp_path: Path) -> None:
    folder = shutil.copytree(dataset.folder, tmp_path / "tokens")
    lines = [
        {"path": f"tokens/{path.name}", "rows": pq.read_metadata(path).num_rows, "sha256": sha256_file(path)}
        for path in folder.iterdir()
    ]
    write_record(tmp_path, "receipt", record_of(dataset, files=lines))
    opened = Dataset.open(folder, check_files=True)
    assert len(list(Loader(opened)))
    last = folder / opened.groups[-1][0]
    table = pq.read_table(last)
    pq.write_table(table.take(list(reversed(range(len(table))))), last, row_group_size=1 << 20)
    assert [group[2] for group in Dataset.open(folder).groups] == [group[2] for group in opened.groups]
    with pytest.raises(cppmill_core.CorruptDataError, match=f"{last.name}: was replaced while it was read"):
        list(Loader(opened))


class FailingStore(LocalFileSystem):
    """Files of a store that fails at one, without naming it."""

    def _open(self, path: str, *arguments: Any, **options: Any) -> Any:
        if path.endswith(self.storage_options["fails_at"]):
            raise OSError("AWS Error SERVICE_UNAVAILABLE during GetObject operation")
        return super()._open(path, *arguments, **options)


@pytest.mark.parametrize("name", ["receipt.json", ".parquet"])
def test_an_error_of_a_store_gets_the_name_of_the_file(dataset: Dataset, tmp_path: Path, name: str) -> None:
    folder = shutil.copytree(dataset.folder, tmp_path / "tokens")
    write_record(tmp_path, "receipt", record_of(dataset, files={}))
    store = pafs.PyFileSystem(pafs.FSSpecHandler(FailingStore(fails_at=name)))
    with pytest.raises(OSError, match=f"{name}: AWS Error"):
        Dataset.open(str(folder), store)
