"""The loader in torch: DataLoader with workers, pinned memory, persistent workers, StatefulDataLoader, the pages."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from cppmill_core.loader import Loader, Place
from cppmill_core.working_set import logit_mask

from schemas.tables import MAX_PLATFORM_IDS
from tests.engines import torch_programs as programs
from tests.token_shards import ROWS, in_order, loader_of, numbers

STEPS = -(-ROWS // programs.BATCH_ROWS)


def epochs_of(shards: Path, count: int) -> list[list[list[int]]]:
    """The steps of the first epochs, by the loader itself."""
    loader = loader_of(shards, programs.BATCH_ROWS)
    return [numbers(loader) for _ in range(count)]


@pytest.mark.parametrize(("workers", "start"), [(0, "fork"), (1, "fork"), (3, "fork"), (1, "spawn")])
def test_workers_make_the_steps_of_one_reader(in_torch: Any, shards: Path, workers: int, start: str) -> None:
    assert [in_torch(programs.read_epoch, shards, workers, start=start)] == epochs_of(shards, 1)


def test_ranks_with_workers_make_the_order_of_one_reader(in_torch: Any, shards: Path) -> None:
    ranks = [in_torch(programs.read_epoch, shards, 2, rank=rank, ranks=2) for rank in range(2)]
    assert in_order(ranks) == [number for step in epochs_of(shards, 1)[0] for number in step]


@pytest.mark.parametrize("workers", [0, 2])
def test_tensors_are_the_arrays_of_the_loader(in_torch: Any, shards: Path, workers: int) -> None:
    assert in_torch(programs.compare_columns, shards, workers) == {
        "number": ["int64"],
        "path": ["uint8", "int32"],
        "token_ids": ["int64", "int32"],
        "pair": ["bool"],
        "names": ["uint8", "int32", "int32"],
        "doc_id": ["uint8"],
        "doc_ids": ["uint8", "int32"],
        "license": ["uint8", "int32"],
    }


def test_a_run_has_a_fixed_number_of_tensors(in_torch: Any, run: Any) -> None:
    found = in_torch(programs.compare_columns, run.out / "tokens", 1)
    assert found == {
        "doc_id": ["uint8"],
        **dict.fromkeys(["project", "path"], ["uint8", "int32"]),
        **dict.fromkeys(["num_bytes", "num_tokens"], ["int64"]),
        **dict.fromkeys(["token_ids", "platform_ids"], ["int64", "int32"]),
        "platform_info": ["uint8", "int32"],
    }


def test_held_batches_hold_no_files(in_torch: Any, shards: Path) -> None:
    held, before, after = in_torch(programs.hold_batches, shards, 4)
    assert held == 4 * ROWS > programs.MAX_FILES
    assert after <= before


def test_every_tensor_is_pinned(in_torch: Any, shards: Path) -> None:
    assert in_torch(programs.pin_columns, shards) == ("Batch", 14, 14)
    assert [in_torch(programs.read_pinned, shards)] == epochs_of(shards, 1)


def test_a_batch_moves_to_a_device(in_torch: Any, shards: Path) -> None:
    assert in_torch(programs.move_batch, shards) == {"meta"}


def test_columns_that_a_worker_adds_are_sent_too(in_torch: Any) -> None:
    assert in_torch(programs.send_other_columns) == (["half", "weight", "name"], True)


def test_persistent_workers_go_from_epoch_to_epoch(in_torch: Any, shards: Path) -> None:
    assert in_torch(programs.read_epochs_persistently, shards, 3) == (epochs_of(shards, 3), 2)


def test_persistent_workers_follow_a_position_that_is_loaded(in_torch: Any, shards: Path) -> None:
    loader = loader_of(shards, programs.BATCH_ROWS)
    loader.next_epoch()
    first, second = epochs_of(shards, 2)
    assert in_torch(programs.resume_persistently, shards, loader.state_dict(steps=2)) == [first, second[2:]]


@pytest.mark.parametrize(("workers", "then"), [(2, 0), (0, 3), (3, 1)])
def test_exactly_the_rest_follows_with_other_workers(in_torch: Any, shards: Path, workers: int, then: int) -> None:
    begun, state = in_torch(programs.break_off, shards, 4, workers)
    rest = in_torch(programs.resume, shards, json.loads(json.dumps(state)), then)
    assert [begun + rest] == epochs_of(shards, 1)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("steps", [1, 4, STEPS])
def test_a_stateful_loader_makes_exactly_the_rest(in_torch: Any, shards: Path, steps: int, workers: int) -> None:
    first, second = epochs_of(shards, 2)
    found = in_torch(programs.resume_stateful, shards, steps, workers, after=False)
    assert found == [first[:steps], first[steps:], second]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_stateful_loader_begins_the_next_epoch_after_a_whole_one(in_torch: Any, shards: Path, workers: int) -> None:
    assert in_torch(programs.resume_stateful, shards, 0, workers, after=True) == epochs_of(shards, 2)


@pytest.mark.parametrize("persistent", [False, True])
def test_a_stateful_loader_goes_from_epoch_to_epoch(in_torch: Any, shards: Path, persistent: bool) -> None:
    found = in_torch(programs.read_epochs_stateful, shards, 3, persistent_workers=persistent)
    assert found == epochs_of(shards, 3)


def test_a_worker_refuses_the_state_of_another(in_torch: Any, shards: Path) -> None:
    said = in_torch(programs.load_state_of_another, shards, place=Place(ranks=2))
    assert re.search(r"the state is for .*'ranks': 1.*, not for .*'ranks': 2.*loader\.state_dict\(steps=…\)", said)
    assert "seed 0 is not 5" in in_torch(programs.load_state_of_another, shards, seed=5)
    for changes in ({"place": None}, {"place": 3}, {"steps": None}):
        said = in_torch(programs.load_state_of_another, shards, changes)
        assert said.startswith("the state is not that of a worker")


def test_ids_of_platforms_are_padded_to_bags_for_embeddings(in_torch: Any, run: Any) -> None:
    found = in_torch(programs.pad_ids, run.out / "tokens", MAX_PLATFORM_IDS)
    expected = [row["platform_ids"].tolist() for row in Loader(run.out / "tokens", columns=["platform_ids"])]
    assert found == [ids + [0] * (MAX_PLATFORM_IDS - len(ids)) for ids in expected]
    assert any(expected)
    assert "a row has 3 ids, and width = 2" in in_torch(programs.refuse_narrow_bags)


@pytest.fixture
def loops(run: Any, repository: Path) -> tuple[str, str]:
    """The loops of the page, with DataLoader and with StatefulDataLoader, over the shards of the run."""
    page = (repository / "docs/how-to/loader.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S)
    [plain] = [code for code in blocks if "torch.utils.data" in code]
    [stateful] = [code for code in blocks if "torchdata" in code]
    return plain.replace("out/demo/tokens", str(run.out / "tokens")), stateful


def test_the_loops_of_the_page_train_every_step_of_every_epoch(in_torch: Any, run: Any, loops: tuple[str, str]) -> None:
    plain, stateful = loops
    steps = Loader(run.out / "tokens", batch_rows=8).steps()
    names = {"rank": 0, "world_size": 1}
    trained, checkpoint = in_torch(programs.run_page, [(plain, 2)], names)
    assert trained == [["platform_ids", "token_ids"]] * (2 * steps)
    assert (checkpoint["data"]["epoch"], checkpoint["data"]["consumed"]) == (2, 0)
    trained, checkpoint = in_torch(programs.run_page, [(plain, 0), (stateful, 1)], names)
    assert len(trained) == steps
    assert "_snapshot" in checkpoint["data"]


def test_a_torch_mask_is_the_numpy_mask(in_torch: Any) -> None:
    assert in_torch(programs.make_mask, [5, 1, 9], 12) == ("torch.float64", logit_mask([5, 1, 9], 12).tolist())


@pytest.mark.parametrize("columns", [None, ("token_ids",)], ids=["all", "ids"])
def test_the_candidates_of_the_benchmark_read_the_same_rows(
    in_torch: Any, run: Any, tmp_path: Path, columns: tuple[str, ...] | None
) -> None:
    found = in_torch(programs.read_candidates, run.out / "tokens", columns, tmp_path)
    assert len(set(found)) == 1
    assert len(found) == 3
    assert found[0].startswith(f"{run.receipt['dataset']['tokens']} ")
