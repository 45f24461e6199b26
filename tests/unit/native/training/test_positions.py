"""The position of a loader is found wherever a checkpoint has it, and a pickle runs nothing."""

from __future__ import annotations

import json
import pickle
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import cppmill_core
import numpy as np
import pytest
import safetensors.numpy
from cppmill_core import VocabStamp, read_stamp, stamp
from cppmill_core.loader import Loader
from cppmill_core.order.steps import read_legs
from cppmill_core.positions import read_position

from tests.token_shards import FILES, write_shards

STAMP = VocabStamp(tokenizer="ab" * 32, revision="", vocab_size=100)


@pytest.fixture(scope="module")
def position(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return Loader(write_shards(tmp_path_factory.mktemp("shards"), FILES), batch_rows=2).state_dict(steps=3)


def save_torch(path: Path, value: Any) -> Path:
    """A file as torch saves it: a zip archive with a pickle in it."""
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("checkpoint/data.pkl", pickle.dumps(value, protocol=2))
        file.writestr("checkpoint/data/0", b"\0" * 8)
    return path


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "model.pt"])
def test_a_stamped_position_is_read_back(tmp_path: Path, position: dict[str, Any], name: str) -> None:
    path = tmp_path / name
    safetensors.numpy.save_file({"a": np.zeros(2)}, path)
    if name == "config.json":
        path.write_text('{"vocab_size": 100}')
    stamp(path, STAMP, position=position)
    assert read_position(path) == position
    found = read_stamp(path)
    assert found is not None
    assert (found.tokenizer, found.position) == (STAMP.tokenizer, position)
    stamp(path, STAMP)
    assert read_stamp(path) == STAMP


def test_a_dict_has_it_anywhere(tmp_path: Path, position: dict[str, Any]) -> None:
    value = {"model": [1, {"a": 2}], "train": {"data": position}}
    assert read_position(value) == read_position({"again": value, **value}) == position
    (tmp_path / "state.json").write_text(json.dumps(value))
    assert read_position(tmp_path / "state.json") == position
    with pytest.raises(cppmill_core.InvalidInputError, match="2 positions that differ"):
        read_position({"a": position, "b": position | {"consumed": 1}})
    with pytest.raises(cppmill_core.InvalidInputError, match="no position of a loader"):
        read_position({"a": {}})


@pytest.mark.parametrize("value", [None, [], {}, "x", 1.5, -1, True, 1 << 70, 1 << 20])
@pytest.mark.parametrize("name", ["epoch", "consumed", "streams", "dataset", "tokenizer", "seed", "shuffle", "source"])
def test_a_position_that_no_loader_writes_is_refused(
    tmp_path: Path, position: dict[str, Any], name: str, value: Any
) -> None:
    is_written = (name, str(value)) in {("source", "None"), ("source", "{}"), ("shuffle", "True")}
    is_written = is_written or (name in ("dataset", "tokenizer") and value == "x")
    is_written = is_written or (name == "seed" and value in (-1, 1 << 70, 1 << 20) and value is not True)
    is_written = is_written or (name in ("consumed", "streams") and value == 1 << 20)
    if is_written:
        assert read_position({"data": position | {name: value}})[name] == value
        return
    (tmp_path / "state.json").write_text(json.dumps({"data": position | {name: value}}))
    with pytest.raises(cppmill_core.CorruptDataError, match=f"state.json: its {name} is .* no loader writes"):
        read_position(tmp_path / "state.json")


@pytest.mark.parametrize(
    "data",
    [
        b"[" * 200_000,
        b'{"begun": 1, "steps": 2, "batch_rows": 3, "place": 4}',
        b'{"begun": {}, "steps": 2, "batch_rows": 3, "place": {"ranks": 2}}',
        b'{"format": "cppmill-loader-1"}',
        b'{"format": "cppmill-loader-1", "epoch": 0, "consumed": 0, "seed": 0, "streams": 0}',
    ],
)
def test_a_checkpoint_of_another_form_is_refused_in_a_line(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "state.json").write_bytes(data)
    with pytest.raises(cppmill_core.CorruptDataError, match=r"state\.json: "):
        read_position(tmp_path / "state.json")


@pytest.mark.parametrize(
    "change", [{"ranks": "x"}, {"batch_rows": 0}, {"epoch": -1}, {"drop_last": 1}, {"ranks": True}]
)
def test_legs_that_no_loader_writes_are_refused(position: dict[str, Any], change: dict[str, Any]) -> None:
    assert read_legs(position)
    with pytest.raises(cppmill_core.InvalidInputError, match="no loader writes the leg"):
        read_legs(position | {"legs": [position["legs"][0] | change]})


@pytest.mark.parametrize("places", [[(0, 0), (0, 0)], [(0, 8), (0, 4)], [(1, 0), (0, 8)], [(0, 4), (1, 0), (0, 8)]])
def test_legs_out_of_order_are_refused(position: dict[str, Any], places: list[tuple[int, int]]) -> None:
    legs = [position["legs"][0] | {"epoch": epoch, "consumed": consumed} for epoch, consumed in places]
    in_order = [legs[places.index(place)] for place in sorted(set(places))]
    assert len(read_legs(position | {"legs": in_order})) == len(in_order)
    with pytest.raises(cppmill_core.InvalidInputError, match="no loader writes the leg"):
        read_legs(position | {"legs": legs})


def test_workers_of_a_stateful_loader_make_one_position(position: dict[str, Any]) -> None:
    place = {"rank": 1, "ranks": 2, "workers": 2}
    states = [
        {"begun": position, "steps": steps, "batch_rows": 2, "place": place | {"worker": worker}}
        for worker, steps in enumerate([3, 2])
    ]
    found = read_position({"_snapshot": {f"worker_{n}": {"dataset_state": state} for n, state in enumerate(states)}})
    assert found == position | {"consumed": position["consumed"] + 5 * 2 * 2}


@pytest.mark.parametrize(
    ("workers", "said"),
    [([0], r"2 workers, here are states of \[0\]"), ([0, 1, 2], r"states of \[0, 1, 2\]"), ([0, 1, 1], "differ")],
)
def test_states_of_some_workers_make_no_position(position: dict[str, Any], workers: list[int], said: str) -> None:
    place = {"rank": 0, "ranks": 1, "workers": 2}
    states = [
        {"begun": position, "steps": steps, "batch_rows": 2, "place": place | {"worker": worker}}
        for steps, worker in enumerate(workers)
    ]
    with pytest.raises(cppmill_core.InvalidInputError, match=said):
        read_position({f"worker_{number}": state for number, state in enumerate(states)})


def test_states_of_all_ranks_are_one_position_and_not_the_sum(position: dict[str, Any]) -> None:
    state = {"begun": position, "steps": 3, "batch_rows": 2}
    place = {"ranks": 2, "worker": 0, "workers": 1}
    states = {str(rank): state | {"place": place | {"rank": rank}} for rank in (0, 1)}
    found = read_position({"ranks": states, "again": states})
    assert found == position | {"consumed": position["consumed"] + 3 * 2 * 2}
    with pytest.raises(cppmill_core.InvalidInputError, match="2 positions that differ"):
        read_position(states | {"1": states["1"] | {"steps": 4}})


def test_a_file_of_torch_is_read_without_torch(tmp_path: Path, position: dict[str, Any]) -> None:
    value = OrderedDict(model={"weight": np.arange(4), "set": {1, 2}}, data=position, path=Path("a"))
    assert read_position(save_torch(tmp_path / "model.pt", value)) == position


class Harm:
    """Writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def test_a_pickle_runs_nothing(tmp_path: Path, position: dict[str, Any]) -> None:
    path = save_torch(tmp_path / "model.pt", {"harm": Harm(tmp_path / "harm"), "data": position})
    assert read_position(path) == position
    assert not (tmp_path / "harm").exists()
    with zipfile.ZipFile(path) as file:
        pickle.loads(file.read("checkpoint/data.pkl"))
    assert (tmp_path / "harm").exists()


def test_damaged_files_are_named(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "model.pt", "w") as file:
        file.writestr("checkpoint/data.pkl", b"\x80\x02}q\x00")
    with pytest.raises(cppmill_core.CorruptDataError, match=r"model\.pt: damaged, not a checkpoint of torch"):
        read_position(tmp_path / "model.pt")
    (tmp_path / "other.pt").write_bytes(b"text")
    with pytest.raises(cppmill_core.InvalidInputError, match=r"other\.pt: no position of a loader"):
        read_position(tmp_path / "other.pt")


@pytest.mark.parametrize("kept", [0, 2, 60, -1])
def test_a_cut_file_of_torch_is_damaged(tmp_path: Path, position: dict[str, Any], kept: int) -> None:
    path = save_torch(tmp_path / "model.pt", {"data": position})
    assert read_position(path) == position
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(cppmill_core.CorruptDataError, match=r"model\.pt: damaged"):
        read_position(path)


def test_a_file_of_torch_with_another_byte_is_damaged(tmp_path: Path, position: dict[str, Any]) -> None:
    path = save_torch(tmp_path / "model.pt", {"data": position})
    path.write_bytes(path.read_bytes().replace(b"consumed", b"cOnsumed", 1))
    with pytest.raises(cppmill_core.CorruptDataError, match=r"model\.pt: damaged"):
        read_position(path)


@pytest.mark.parametrize(("place", "bit"), [(8, 1), (10, 64)], ids=["said to be encrypted", "no such compression"])
def test_a_file_of_torch_with_another_bit_in_its_directory_is_damaged(
    tmp_path: Path, position: dict[str, Any], place: int, bit: int
) -> None:
    path = save_torch(tmp_path / "model.pt", {"data": position})
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\x01\x02") + place] ^= bit
    path.write_bytes(data)
    with pytest.raises(cppmill_core.CorruptDataError, match=r"model\.pt: damaged"):
        read_position(path)
