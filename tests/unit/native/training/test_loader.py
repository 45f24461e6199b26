from __future__ import annotations

import importlib
import importlib.util
import json
import pickle
import subprocess
import sys
import types
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

import cppmill_core
import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest
from cppmill_core.loader import Dataset, Loader, Place
from hypothesis import given, settings
from hypothesis import strategies as st

FOOTER = {"cppmill.tokenizer": "ab" * 32, "cppmill.vocab_size": "100"}
FILES = [[5, 1, 7], [4], [9, 2, 2, 3], [1]]
COUNTS = st.tuples(st.integers(1, 5), st.integers(1, 4), st.integers(1, 5))


def write_shards(folder: Path, files: list[list[int]], **footer: str) -> Path:
    """Write shards whose row groups have the given numbers of rows; the column `number` counts all rows."""
    number = 0
    for index, groups in enumerate(files):
        schema = row_table(0, 1).schema.with_metadata(FOOTER | footer)
        with pq.ParquetWriter(folder / f"part-{index}.parquet", schema) as writer:
            for rows in groups:
                writer.write_table(row_table(number, rows).cast(schema), row_group_size=max(rows, 1))
                number += rows
    return folder


def row_table(first: int, rows: int) -> pa.Table:
    numbers = range(first, first + rows)
    return pa.table(
        {
            "number": pa.array(numbers, pa.uint64()),
            "path": pa.array([f"{n}.h" for n in numbers]),
            "token_ids": pa.array([[n % 100] * (n % 5) for n in numbers], pa.list_(pa.uint16())),
            "pair": pa.array([[n % 2 == 0, True] for n in numbers], pa.list_(pa.bool_(), 2)),
            "doc_ids": pa.array([[str(n), "x"] for n in numbers], pa.list_(pa.string())),
            "license": pa.array([None if n % 2 else "MIT" for n in numbers], pa.string()),
        }
    )


@pytest.fixture(scope="session")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_shards(tmp_path_factory.mktemp("shards"), FILES)


@pytest.fixture(scope="session")
def dataset(shards: Path) -> Dataset:
    return Dataset.open(shards)


def places(ranks: int, workers: int) -> list[list[Place]]:
    return [[Place(rank=r, ranks=ranks, worker=w, workers=workers) for w in range(workers)] for r in range(ranks)]


def numbers(loader: Loader) -> list[list[int]]:
    """The rows of each step."""
    return [batch["number"].tolist() for batch in loader.batches()]


def steps_of_ranks(loader: Loader, ranks: int, workers: int) -> list[list[list[int]]]:
    """The steps of each rank, taken from its workers in turn, as torch's DataLoader does."""
    found = []
    for row in places(ranks, workers):
        turns = zip_longest(*[numbers(loader.at(place)) for place in row])
        found.append([step for turn in turns for step in turn if step is not None])
    return found


def in_order(ranks: list[list[list[int]]]) -> list[int]:
    """The rows of all ranks in the order of the epoch."""
    found: list[int] = []
    for step in zip_longest(*ranks, fillvalue=[]):
        rows = [row for turn in zip_longest(*step) for row in turn]
        found += [row for row in rows if row is not None]
    return found


def loader_of(dataset: Dataset, batch_rows: int = 1, **options: Any) -> Loader:
    return Loader(dataset, columns=["number"], batch_rows=batch_rows, **options)


@given(COUNTS, st.integers(1, 9), st.integers(0, 5), st.booleans())
@settings(max_examples=40)
def test_every_row_comes_once_an_epoch_and_in_one_order_for_any_ranks_and_workers(
    dataset: Dataset, counts: tuple[int, int, int], streams: int, seed: int, shuffle: bool
) -> None:
    ranks, workers, batch_rows = counts
    options = {"seed": seed, "streams": streams, "shuffle": shuffle}
    alone = [int(row["number"]) for row in loader_of(dataset, **options)]
    assert sorted(alone) == list(range(34))
    assert (alone == list(range(34))) == (not shuffle)
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
    rows = data.draw(st.integers(0, 34 // ranks))
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
    assert sorted(begun + rest) == list(range(34))


@given(COUNTS, st.integers(0, 3))
@settings(max_examples=40)
def test_with_drop_last_every_rank_makes_as_many_full_steps(
    dataset: Dataset, counts: tuple[int, int, int], begun: int
) -> None:
    ranks, workers, batch_rows = counts
    loader = loader_of(dataset, batch_rows, drop_last=True, place=Place(ranks=ranks))
    loader.consumed = begun
    found = steps_of_ranks(loader, ranks, workers)
    assert {len(steps) for steps in found} == {loader.steps()} == {(34 - begun) // (ranks * batch_rows)}
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
            assert row["doc_ids"].tolist() == [str(number), "x"]
            assert row["license"] == (None if number % 2 else "MIT")

    def test_batches_stack_what_has_one_shape(self, dataset: Dataset) -> None:
        batch = next(Loader(dataset, batch_rows=4).batches())
        assert batch["number"].shape == (4,)
        assert (batch["pair"].shape, batch["pair"].dtype) == ((4, 2), np.bool_)
        assert [ids.dtype for ids in batch["token_ids"]] == [np.uint16] * 4
        assert [len(ids) for ids in batch["token_ids"]] == (batch["number"] % 5).tolist()
        assert isinstance(batch["path"], list)

    def test_rows_that_are_kept_keep_no_row_group(self, dataset: Dataset) -> None:
        assert all(row["token_ids"].base is None and row["pair"].base is None for row in Loader(dataset))

    @pytest.mark.parametrize("ranks", [1, 2, 4])
    def test_a_rank_decodes_its_share_of_the_row_groups(self, dataset: Dataset, ranks: int) -> None:
        loaders = [loader_of(dataset, streams=4, place=place) for (place,) in places(ranks, 1)]
        assert sorted(int(row["number"]) for loader in loaders for row in loader) == list(range(34))
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

    def test_foreign_parquet_files_are_refused(self, tmp_path: Path) -> None:
        pq.write_table(pa.table({"a": [1]}), tmp_path / "part-0.parquet")
        with pytest.raises(cppmill_core.CorruptDataError, match="not a shard of cppmill"):
            Dataset.open(tmp_path)

    @pytest.mark.parametrize(("place", "said"), [({"rank": 2, "ranks": 2}, "rank 2 of 2"), ({"worker": -1}, "worker")])
    def test_invalid_places_are_refused(self, place: dict[str, int], said: str) -> None:
        with pytest.raises(cppmill_core.InvalidInputError, match=said):
            Place(**place)

    def test_no_rows_a_batch(self, dataset: Dataset) -> None:
        with pytest.raises(cppmill_core.InvalidInputError, match="at least 1"):
            Loader(dataset, batch_rows=0)


def test_no_torch_and_no_beam_is_imported() -> None:
    script = "import sys, cppmill_core.loader; assert not {'torch', 'apache_beam', 'pandas'} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.fixture
def worker_info() -> list[Any]:
    """The answers of the fake torch about the worker; it returns the last entry."""
    return [None]


@pytest.fixture
def torch_data(worker_info: list[Any], monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The adapter, with a fake of the parts of torch that it uses."""
    data = types.ModuleType("torch.utils.data")
    data.__dict__.update(IterableDataset=object, get_worker_info=lambda: worker_info[-1])
    torch = types.ModuleType("torch")
    torch.__dict__.update(from_numpy=lambda array: array)
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "torch.utils.data", data)
    monkeypatch.delitem(sys.modules, "cppmill_core.torch_data", raising=False)
    yield importlib.import_module("cppmill_core.torch_data")
    sys.modules.pop("cppmill_core.torch_data", None)


def test_the_torch_dataset_deals_the_steps_to_its_workers(
    torch_data: Any, worker_info: list[Any], dataset: Dataset
) -> None:
    dealt = torch_data.TokenDataset(Loader(dataset, batch_rows=4, place=Place(ranks=2)))
    alone = [batch["number"].tolist() for batch in dealt]
    turns = []
    for worker in range(3):
        worker_info.append(types.SimpleNamespace(id=worker, num_workers=3))
        turns.append([batch["number"].tolist() for batch in dealt])
    assert [step for turn in zip_longest(*turns) for step in turn if step] == alone
    assert (dealt.loader.epoch, dealt.loader.state_dict(steps=0)["consumed"]) == (0, 0)


def test_a_torch_dataset_needs_the_steps_of_the_training_loop(torch_data: Any, dataset: Dataset) -> None:
    dealt = torch_data.TokenDataset(loader_of(dataset, 2))
    batches = iter(dealt)
    begun = [row for _ in range(5) for row in next(batches)["number"].tolist()]
    for loader in (dealt.loader, pickle.loads(pickle.dumps(dealt.loader))):
        with pytest.raises(
            cppmill_core.InvalidInputError, match=r"state_dict\(steps=…\): .* so only the training loop"
        ):
            loader.state_dict()
    resumed = loader_of(dataset, 2)
    resumed.load_state_dict(dealt.loader.state_dict(steps=5))
    assert resumed.state_dict()["consumed"] == 10
    rest = [row for batch in torch_data.TokenDataset(resumed) for row in batch["number"].tolist()]
    assert begun + rest == [int(row["number"]) for row in loader_of(dataset)]


def test_tensors_hold_what_embeddings_take(torch_data: Any, dataset: Dataset) -> None:
    batch = next(iter(torch_data.TokenDataset(Loader(dataset, batch_rows=2))))
    assert batch["number"].dtype == np.int64
    assert [ids.dtype for ids in batch["token_ids"]] == [np.int64] * 2
    assert batch["pair"].dtype == np.bool_
    assert all(path.endswith(".h") for path in batch["path"])


def test_without_torch_the_adapter_says_what_to_install() -> None:
    if importlib.util.find_spec("torch") is None:
        with pytest.raises(ImportError, match="needs torch: install it"):
            importlib.import_module("cppmill_core.torch_data")


def test_real_torch_reads_an_epoch_with_workers(dataset: Dataset) -> None:
    pytest.importorskip("torch")
    data: Any = importlib.import_module("torch.utils.data")
    adapter = importlib.import_module("cppmill_core.torch_data")
    found = data.DataLoader(adapter.TokenDataset(loader_of(dataset, 4)), batch_size=None, num_workers=2)
    assert [batch["number"].tolist() for batch in found] == numbers(loader_of(dataset, 4))
