from __future__ import annotations

import importlib
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Iterable
from itertools import zip_longest
from pathlib import Path
from typing import Any

import cppmill_core
import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest
from cppmill_core.batches import texts
from cppmill_core.loader import Dataset, Loader, Place
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.token_shards import FILES, ROWS, digest, in_order, loader_of, numbers, places, steps_of_ranks, write_shards


def as_lists(arrays: Iterable[Any]) -> list[Any]:
    return [array.tolist() for array in arrays]


COUNTS = st.tuples(st.integers(1, 5), st.integers(1, 4), st.integers(1, 5))


@pytest.fixture(scope="session")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_shards(tmp_path_factory.mktemp("shards"), FILES)


@pytest.fixture(scope="session")
def dataset(shards: Path) -> Dataset:
    return Dataset.open(shards)


@given(COUNTS, st.integers(1, 9), st.integers(0, 5), st.booleans())
@settings(max_examples=40)
def test_every_row_comes_once_an_epoch_and_in_one_order_for_any_ranks_and_workers(
    dataset: Dataset, counts: tuple[int, int, int], streams: int, seed: int, shuffle: bool
) -> None:
    ranks, workers, batch_rows = counts
    options = {"seed": seed, "streams": streams, "shuffle": shuffle}
    alone = [int(row["number"]) for row in loader_of(dataset, **options)]
    assert sorted(alone) == list(range(ROWS))
    assert (alone == list(range(ROWS))) == (not shuffle)
    found = steps_of_ranks(loader_of(dataset, batch_rows, **options, place=Place(ranks=ranks)), ranks, workers)
    assert in_order(found) == alone


@given(COUNTS, COUNTS, st.integers(0, 2), st.data())
@settings(max_examples=40)
def test_exactly_the_rest_follows_a_change_of_ranks_and_workers(
    dataset: Dataset, first: tuple[int, int, int], then: tuple[int, int, int], epoch: int, data: st.DataObject
) -> None:
    loader = loader_of(dataset, first[2], seed=3, place=Place(ranks=first[0], workers=first[1]))
    loader.epoch = epoch
    whole = in_order(steps_of_ranks(loader, first[0], first[1]))
    steps = data.draw(st.integers(0, loader.steps() - 1))
    begun = in_order([rank[:steps] for rank in steps_of_ranks(loader, first[0], first[1])])
    resumed = loader_of(dataset, then[2], seed=3, place=Place(ranks=then[0]))
    resumed.load_state_dict(json.loads(json.dumps(loader.state_dict(steps=steps))))
    rest = in_order(steps_of_ranks(resumed, then[0], then[1]))
    assert (resumed.epoch, begun + rest) == (epoch, whole)


@given(st.integers(1, 4), st.data())
@settings(max_examples=40)
def test_a_position_between_rows_is_exact(dataset: Dataset, ranks: int, data: st.DataObject) -> None:
    rows = data.draw(st.integers(0, ROWS // ranks))
    begun, states = [], []
    for ((place,),) in [[place] for place in places(ranks, 1)]:
        loader = loader_of(dataset, place=place)
        mine = iter(loader)
        begun += [int(next(mine)["number"]) for _ in range(rows)]
        states.append(loader.state_dict())
    assert all(state == states[0] for state in states)
    resumed = loader_of(dataset)
    resumed.load_state_dict(states[0])
    rest = [] if resumed.epoch else [int(row["number"]) for row in resumed]
    assert sorted(begun + rest) == list(range(ROWS))


@given(COUNTS, st.integers(0, 3))
@settings(max_examples=40)
def test_with_drop_last_every_rank_makes_as_many_full_steps(
    dataset: Dataset, counts: tuple[int, int, int], begun: int
) -> None:
    ranks, workers, batch_rows = counts
    loader = loader_of(dataset, batch_rows, drop_last=True, place=Place(ranks=ranks))
    loader.consumed = begun
    found = steps_of_ranks(loader, ranks, workers)
    assert {len(steps) for steps in found} == {loader.steps()} == {(ROWS - begun) // (ranks * batch_rows)}
    assert all(len(step) == batch_rows for steps in found for step in steps)


def test_epochs_follow_one_another_in_other_orders(dataset: Dataset) -> None:
    loader = loader_of(dataset, seed=1)
    epochs = [[int(row["number"]) for row in loader] for _ in range(3)]
    assert loader.epoch == 3
    assert len({tuple(epoch) for epoch in epochs}) == 3
    again = loader_of(dataset, seed=1)
    again.next_epoch()
    assert [int(row["number"]) for row in again] == epochs[1]


def test_an_iteration_that_was_broken_off_is_begun_again(dataset: Dataset) -> None:
    loader = loader_of(dataset)
    first = next(iter(loader))
    assert next(iter(loader)) == first
    assert loader.state_dict()["consumed"] == 1


def test_the_end_of_an_epoch_is_the_beginning_of_the_next(dataset: Dataset) -> None:
    loader = loader_of(dataset, 34, place=Place(ranks=2, workers=2))
    assert loader.state_dict(steps=1) | {"epoch": 1, "consumed": 0} == loader.state_dict(steps=1)


@pytest.mark.parametrize("batch_rows", [1, 3, 5, 8, 40])
@pytest.mark.parametrize("ranks", [2, 3, 4, 7])
def test_ranks_that_made_the_same_steps_have_the_same_position(dataset: Dataset, ranks: int, batch_rows: int) -> None:
    loaders = [loader_of(dataset, batch_rows, place=Place(rank=rank, ranks=ranks)) for rank in range(ranks)]
    ends = object()
    for steps, batches in enumerate(zip_longest(*(loader.batches() for loader in loaders), fillvalue=ends), start=1):
        states = [loader.state_dict() for loader, batch in zip(loaders, batches, strict=True) if batch is not ends]
        assert states == [loaders[0].state_dict(steps=steps)] * len(states)
    assert {(loader.epoch, loader.consumed) for loader in loaders} == {(1, 0)}


def test_positions_of_workers_need_the_steps_of_their_consumer(dataset: Dataset) -> None:
    with pytest.raises(cppmill_core.InvalidInputError, match="pass the number of consumed steps"):
        loader_of(dataset, place=Place(workers=2)).state_dict()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"seed": 5}, "seed 5 is not 0"),
        ({"streams": 2}, "streams 2 is not 4"),
        ({"dataset": "x", "format": None}, "format None is not 'cppmill-loader-1'; dataset 'x' is not"),
        ({"consumed": 34}, "epoch 0, 34 consumed: no such position"),
    ],
)
def test_positions_of_another_order_are_refused(dataset: Dataset, changes: dict[str, Any], said: str) -> None:
    loader = loader_of(dataset, streams=4)
    with pytest.raises(cppmill_core.InvalidInputError, match=said):
        loader.load_state_dict(loader.state_dict() | changes)


@pytest.mark.parametrize("state", [None, [], 3, "position"])
def test_what_is_no_mapping_is_no_position(dataset: Dataset, state: Any) -> None:
    with pytest.raises(cppmill_core.InvalidInputError, match=f"the position is {type(state).__name__}: a mapping"):
        loader_of(dataset).load_state_dict(state)


@pytest.mark.parametrize("name", ["epoch", "consumed"])
@pytest.mark.parametrize("value", [None, "4", 2.5, -1, True])
def test_positions_that_are_not_whole_numbers_are_refused(dataset: Dataset, name: str, value: Any) -> None:
    loader = loader_of(dataset)
    state = loader.state_dict() | {name: value}
    with pytest.raises(
        cppmill_core.InvalidInputError, match=f"the position: {name} is {value!r}: a whole number from 0"
    ):
        loader.load_state_dict(state)
    del state[name]
    with pytest.raises(cppmill_core.InvalidInputError, match=f"the position: {name} is None: a whole number from 0"):
        loader.load_state_dict(state)
    assert (loader.epoch, loader.consumed) == (0, 0)


@pytest.mark.parametrize("steps", [-1, 1.5, "2", True])
def test_steps_that_are_not_a_whole_number_are_refused(dataset: Dataset, steps: Any) -> None:
    with pytest.raises(cppmill_core.InvalidInputError, match=f"steps is {steps!r}: a whole number from 0"):
        loader_of(dataset).state_dict(steps=steps)


def test_numpy_integers_are_whole_numbers(dataset: Dataset) -> None:
    loader = loader_of(dataset)
    state = loader.state_dict(steps=3)
    assert loader.state_dict(steps=np.int64(3)) == state
    loader.load_state_dict(state | {"consumed": np.int64(3)})
    assert (loader.consumed, type(loader.consumed)) == (3, int)


class TestReading:
    """The content of rows, and the row groups that are decoded for them."""

    def test_rows_are_numpy_values_of_any_column(self, dataset: Dataset) -> None:
        for row in Loader(dataset):
            number = int(row["number"])
            assert type(row["number"]) is np.uint64
            assert row["path"] == f"{number}.h"
            assert row["token_ids"].dtype == np.uint16
            assert row["token_ids"].tolist() == [number % 100] * (number % 5)
            assert row["pair"].tolist() == [number % 2 == 0, True]
            assert row["names"].tolist() == [str(number), "ü"][: number % 3]
            assert row["license"] == (None if number % 2 else "MIT")

    def test_batches_hold_the_rows_of_the_same_steps(self, dataset: Dataset) -> None:
        rows = list(Loader(dataset, seed=1))
        for step, batch in enumerate(Loader(dataset, seed=1, batch_rows=4).batches()):
            mine = rows[4 * step : 4 * step + 4]
            assert batch["number"].tolist() == [row["number"] for row in mine]
            assert (batch["token_ids"].values.dtype, batch["token_ids"].offsets.dtype) == (np.uint16, np.int32)
            assert as_lists(batch["token_ids"].rows()) == as_lists(row["token_ids"] for row in mine)
            assert batch["pair"].tolist() == as_lists(row["pair"] for row in mine)
            assert texts(batch["path"]) == [row["path"] for row in mine]
            assert texts(batch["license"]) == [row["license"] or "" for row in mine]
            assert texts(batch["names"]) == as_lists(row["names"] for row in mine)
            assert [digest.tobytes().hex() for digest in batch["doc_id"]] == [row["doc_id"] for row in mine]
            assert [ids.shape for ids in batch["doc_ids"].rows()] == [(len(row["doc_ids"]), 32) for row in mine]

    @pytest.mark.parametrize("done", [0, 1, 5, 9])
    def test_the_first_steps_are_left_out_of_an_iteration(self, dataset: Dataset, done: int) -> None:
        whole, loader = numbers(loader_of(dataset, 4)), loader_of(dataset, 4)
        assert [batch["number"].tolist() for batch in loader.batches(done)] == whole[done:]
        rest = loader_of(dataset, 4).batches(3)
        assert next(rest)["number"].tolist() == whole[3]

    def test_the_position_counts_the_steps_left_out(self, dataset: Dataset) -> None:
        loader = loader_of(dataset, 4)
        next(loader.batches(done=3))
        assert loader.state_dict()["consumed"] == 16

    def test_rows_that_are_kept_keep_no_row_group(self, dataset: Dataset) -> None:
        assert all(row["token_ids"].base is None and row["pair"].base is None for row in Loader(dataset))

    @pytest.mark.parametrize("ranks", [1, 2, 4])
    def test_a_rank_decodes_its_share_of_the_row_groups(self, dataset: Dataset, ranks: int) -> None:
        loaders = [loader_of(dataset, streams=4, place=place) for (place,) in places(ranks, 1)]
        assert sorted(int(row["number"]) for loader in loaders for row in loader) == list(range(ROWS))
        assert sum(loader.groups_read for loader in loaders) <= len(dataset.groups) + 4 - 1

    def test_a_dataset_is_sent_to_workers_as_it_was_read(self, dataset: Dataset) -> None:
        assert pickle.loads(pickle.dumps(dataset)) == dataset

    def test_another_filesystem_reads_the_same(self, shards: Path, dataset: Dataset) -> None:
        below = pafs.SubTreeFileSystem(str(shards), pafs.LocalFileSystem())
        found = Dataset.open("", below)
        assert found.fingerprint == dataset.fingerprint
        assert numbers(loader_of(found)) == numbers(loader_of(dataset))

    def test_a_column_that_is_not_there_is_named(self, dataset: Dataset) -> None:
        with pytest.raises(cppmill_core.InvalidInputError, match=r"part-\d\.parquet: no column ids; number, path"):
            next(iter(Loader(dataset, columns=["ids"])))


class TestRefused:
    """Invalid datasets and places."""

    def test_folders_without_rows(self, tmp_path: Path) -> None:
        with pytest.raises(cppmill_core.InvalidInputError, match="no rows"):
            Dataset.open(tmp_path)
        with pytest.raises(OSError, match="nowhere"):
            Dataset.open(tmp_path / "nowhere")

    def test_shards_of_two_tokenizers(self, tmp_path: Path) -> None:
        write_shards(tmp_path, [[1]])
        (tmp_path / "part-0.parquet").rename(tmp_path / "part-9.parquet")
        write_shards(tmp_path, [[1]], **{"cppmill.tokenizer": "cd"})
        with pytest.raises(cppmill_core.CorruptDataError, match="more than one tokenizer: .*cd.*part-0.*part-9"):
            Dataset.open(tmp_path)

    @pytest.mark.parametrize("kept", [0, 100, 1000])
    def test_a_cut_file_is_named(self, tmp_path: Path, kept: int) -> None:
        path = write_shards(tmp_path, FILES) / "part-1.parquet"
        path.write_bytes(path.read_bytes()[:kept])
        with pytest.raises(cppmill_core.CorruptDataError, match=r"part-1\.parquet: damaged \(.*; `cppmill verify`"):
            Dataset.open(tmp_path)

    @pytest.mark.parametrize("name", ["tokens/part-1.parquet", "receipt.json", "manifest.json"])
    def test_a_pipe_or_device_is_named_and_not_waited_for(self, tmp_path: Path, name: str) -> None:
        (tmp_path / "tokens").mkdir()
        write_shards(tmp_path / "tokens", FILES)
        for make in (os.mkfifo, lambda path: path.symlink_to("/dev/zero")):
            (tmp_path / name).unlink(missing_ok=True)
            make(tmp_path / name)
            with pytest.raises(cppmill_core.CorruptDataError, match=f"{name}: no file; "):
                Dataset.open(tmp_path / "tokens")

    def test_a_file_that_is_damaged_behind_its_footer_is_named(self, tmp_path: Path) -> None:
        dataset = Dataset.open(write_shards(tmp_path, FILES))
        path = tmp_path / "part-1.parquet"
        content = path.read_bytes()
        path.write_bytes(content[:4] + b"\xff" * (len(content) // 2) + content[4 + len(content) // 2 :])
        with pytest.raises((cppmill_core.CorruptDataError, OSError), match=r"part-1\.parquet: "):
            list(loader_of(dataset))

    def test_foreign_parquet_files_are_refused(self, tmp_path: Path) -> None:
        pq.write_table(pa.table({"a": [1]}), tmp_path / "part-0.parquet")
        with pytest.raises(cppmill_core.CorruptDataError, match="not a shard of cppmill"):
            Dataset.open(tmp_path)

    @pytest.mark.parametrize("size", ["abc", "", "-5", "0", "1.0", "9" * 5000, b"\xff"])
    def test_a_footer_without_a_number_of_ids(self, tmp_path: Path, size: Any) -> None:
        write_shards(tmp_path, [[1]], **{"cppmill.vocab_size": size})
        with pytest.raises(cppmill_core.CorruptDataError, match=r"part-0\.parquet: its footer"):
            Dataset.open(tmp_path)

    def test_a_file_with_the_name_of_another_unit(self, tmp_path: Path) -> None:
        write_shards(tmp_path, [[1]], **{"cppmill.unit": digest(1)})
        (tmp_path / "part-0.parquet").rename(tmp_path / f"part-{digest(1)}.parquet")
        assert Dataset.open(tmp_path).rows == 1
        (tmp_path / f"part-{digest(1)}.parquet").rename(tmp_path / f"part-{digest(2)}.parquet")
        with pytest.raises(cppmill_core.CorruptDataError, match=f"{digest(2)}.parquet: .* another unit, {digest(1)}"):
            Dataset.open(tmp_path)

    def test_a_column_of_two_types_or_twice(self, tmp_path: Path) -> None:
        rows = pq.read_table(write_shards(tmp_path, [[1], [1]]) / "part-1.parquet", partitioning=None)
        pq.write_table(rows.append_column("path", rows["path"]), tmp_path / "part-1.parquet")
        with pytest.raises(cppmill_core.CorruptDataError, match=r"part-1\.parquet: it has the column path twice"):
            Dataset.open(tmp_path)
        pq.write_table(rows.set_column(0, "number", pa.array([1.0])), tmp_path / "part-1.parquet")
        with pytest.raises(cppmill_core.CorruptDataError, match=r"part-1\.parquet: number is double, .* uint64"):
            Dataset.open(tmp_path)

    @pytest.mark.parametrize(
        "ids",
        [
            pa.array([[1, 100]], pa.list_(pa.uint16())),
            pa.array([[100]], pa.list_(pa.uint32(), 1)),
            pa.array([[1]], pa.list_(pa.int32())),
            pa.array([["1"]]),
            pa.array([None], pa.list_(pa.uint16())),
        ],
    )
    def test_ids_that_the_tokenizer_does_not_have(self, tmp_path: Path, ids: pa.Array[Any]) -> None:
        rows = pq.read_table(write_shards(tmp_path, [[1]]) / "part-0.parquet", partitioning=None)
        pq.write_table(rows.set_column(2, "token_ids", ids), tmp_path / "part-0.parquet")
        loader = Loader(tmp_path, columns=["token_ids"])
        for rows_of_it in (loader, loader.batches()):
            with pytest.raises(cppmill_core.CorruptDataError, match=r"part-0\.parquet: .*ids?"):
                list(rows_of_it)

    @pytest.mark.parametrize(("place", "said"), [({"rank": 2, "ranks": 2}, "rank 2 of 2"), ({"worker": -1}, "worker")])
    def test_invalid_places_are_refused(self, place: dict[str, int], said: str) -> None:
        with pytest.raises(cppmill_core.InvalidInputError, match=said):
            Place(**place)

    def test_no_rows_a_batch(self, dataset: Dataset) -> None:
        with pytest.raises(cppmill_core.InvalidInputError, match="at least 1"):
            Loader(dataset, batch_rows=0)


def test_reading_imports_no_torch_no_beam_and_no_pandas(shards: Path) -> None:
    script = (
        "import sys; from cppmill_core.loader import Loader; next(Loader(sys.argv[1]).batches()); "
        "next(iter(Loader(sys.argv[1], columns=['number', 'pair', 'token_ids']))); "
        "assert not {'torch', 'apache_beam', 'pandas'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", script, str(shards)], check=True)


def test_without_torch_the_adapter_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match="needs torch: install it"):
        importlib.import_module("cppmill_core.torch_data")


@pytest.mark.parametrize("value", [1.0, "1", None, True, object(), [1]])
@pytest.mark.parametrize("name", ["seed", "epoch", "consumed"])
def test_what_decides_the_order_is_a_whole_number(dataset: Any, name: str, value: object) -> None:
    """The text of another object may be another one in each rank, and so the order."""
    loader = Loader(dataset, seed=np.int64(-3))
    assert (loader.seed, type(loader.seed)) == (-3, int)
    with pytest.raises(cppmill_core.InvalidInputError, match=f"{name} is "):
        if name == "seed":
            Loader(dataset, seed=value)  # type: ignore[arg-type]  # what the test is about
        else:
            setattr(loader, name, value)


def test_a_batch_of_more_rows_than_there_are_is_all_of_them(dataset: Dataset) -> None:
    for batch_rows in (1 << 31, 1 << 70):
        (positions,) = Loader(dataset, batch_rows=batch_rows).positions()
        assert positions == list(range(ROWS))
        (positions,) = Loader(dataset, batch_rows=batch_rows, place=Place(rank=1, ranks=2)).positions()
        assert positions == list(range(1, ROWS, 2))


@pytest.mark.parametrize("ranks", [0, -1])
def test_there_is_at_least_one_rank(ranks: int) -> None:
    with pytest.raises(cppmill_core.InvalidInputError, match=f"rank 0 of {ranks}: there is at least one"):
        Place(rank=0, ranks=ranks)
