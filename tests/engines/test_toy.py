"""The trainer of toy models: what it trains on, what its files name, and how a killed one goes on."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from statistics import mean
from typing import Any

import pyarrow as pa
import pytest

from pipelines.engines.cache import engine_path
from tests.engines import toy_programs as programs

CODE = "import sys; sys.path.append({site!r}); from cppmill_core.toy.train import main; main()"
SIZE = ("--size", "16x1", "--length", "64", "--rows", "4", "--documents", "2", "--threads", "1", "--rate", "0.01")
STEPS = 60
EVERY = ("--steps", str(STEPS), "--save-every", "10")


@pytest.fixture(scope="module")
def held_out(run: Any, cppmill: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of other sources with the same tokenizer."""
    out = tmp_path_factory.mktemp("held_out") / "out"
    cppmill("run", Path(pa.get_include()) / "arrow" / "io", "--tokenizer", run.out / "tokenizer", "--out", out)
    return out


@pytest.fixture(scope="module")
def model(in_torch: Any, run: Any, held_out: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that was trained without a break."""
    folder = tmp_path_factory.mktemp("model") / "model"
    in_torch(programs.train_model, run.out, "--held-out", held_out, "--model", folder, *SIZE, *EVERY)
    return folder


def start(*arguments: object) -> subprocess.Popen[str]:
    """Start a training in a process of its own."""
    command = [sys.executable, "-c", CODE.format(site=str(engine_path("torch"))), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def losses(folder: Path) -> list[Any]:
    return [json.loads(line) for line in (folder / "losses.jsonl").read_text().splitlines()]


def test_documents_are_cut_into_rows_with_their_platforms(in_torch: Any) -> None:
    targets, inputs, bags = in_torch(programs.cut, [[1, 5, 6, 7], [1], [1, 8]], [[3], [], [2, 4]], 2, 3)
    assert targets == [[5, 6], [7, -100], [8, -100]]
    assert inputs == [[1, 5], [6, 0], [1, 0]]
    assert bags == [[3, 0, 0], [3, 0, 0], [2, 4, 0]]


def test_a_killed_training_goes_on_with_the_same_losses(in_torch: Any, run: Any, held_out: Path, model: Path) -> None:
    folder = model.parent / "killed"
    asked = (run.out, "--held-out", held_out, "--model", folder, *SIZE, *EVERY)
    with start(*asked) as training:
        assert training.stdout is not None
        saved = [line for line, _ in zip(training.stdout, range(2), strict=False)]
        training.send_signal(signal.SIGKILL)
    assert training.returncode == -signal.SIGKILL
    assert saved[1].startswith("saved step ")
    assert not saved[1].startswith(f"saved step {STEPS} ")
    assert not (folder / "result.json").exists()
    with (folder / "losses.jsonl").open("a") as log:
        log.write('{"step": 9')  # what a write leaves that is cut off
    in_torch(programs.train_model, *asked)
    for name in ("losses.jsonl", "result.json", "config.json"):
        assert (folder / name).read_bytes() == (model / name).read_bytes(), name
    assert in_torch(programs.read_checkpoint, folder / "checkpoint.pt") == in_torch(
        programs.read_checkpoint, model / "checkpoint.pt"
    )


def test_every_file_names_tokenizer_and_datasets(in_torch: Any, run: Any, held_out: Path, model: Path) -> None:
    digests = {
        "tokenizer": run.receipt["tokenizer"]["digest"],
        "dataset": run.receipt["dataset"]["digest"],
        "held_out": json.loads((held_out / "receipt.json").read_bytes())["dataset"]["digest"],
    }
    checkpoint = in_torch(programs.read_checkpoint, model / "checkpoint.pt")
    config = json.loads((model / "config.json").read_bytes())
    assert config["digests"] == checkpoint["digests"] == losses(model)[0] == digests
    assert json.loads((model / "result.json").read_bytes()).items() >= digests.items()
    assert config["cppmill"]["tokenizer"] == checkpoint["cppmill"]["tokenizer"] == digests["tokenizer"]
    assert {path.name for path in model.iterdir()} == {"config.json", "losses.jsonl", "checkpoint.pt", "result.json"}


def test_the_model_learns_text_and_platforms(in_torch: Any, model: Path, held_out: Path) -> None:
    found = losses(model)[1:]
    assert [line["step"] for line in found] == [*range(1, STEPS + 1)]
    assert mean(line["loss"] for line in found[-20:]) < mean(line["loss"] for line in found[:5]) - 0.5
    assert in_torch(programs.read_checkpoint, model / "checkpoint.pt")["platforms"] > 0
    result, dataset = json.loads((model / "result.json").read_bytes()), held_out / "receipt.json"
    totals = json.loads(dataset.read_bytes())["dataset"]
    assert (result["documents"], result["bytes"]) == (totals["documents"], totals["bytes"])
    assert result["tokens"] == totals["tokens"] - 2 * totals["documents"]
    assert 0 < result["bits_per_byte"] < 8


def test_another_training_in_the_folder_is_refused(run: Any, held_out: Path, model: Path) -> None:
    with start(run.out, "--held-out", held_out, "--model", model, *SIZE, *EVERY, "--seed", "1") as training:
        _, said = training.communicate()
    assert training.returncode == 1
    assert "seed 0 is not 1" in said


def test_held_out_text_of_another_tokenizer_is_refused(in_torch: Any, run: Any, held_out: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    receipt = json.loads((held_out / "receipt.json").read_bytes())
    receipt["tokenizer"]["digest"] = "0" * 64
    (other / "receipt.json").write_text(json.dumps(receipt))
    with pytest.raises(Exception, match="with one tokenizer"):
        in_torch(programs.train_model, run.out, "--held-out", other, "--model", tmp_path / "model", *SIZE)
