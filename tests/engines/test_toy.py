"""The trainer of toy models: what it trains on, what its files name, and how a killed one goes on."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from statistics import mean
from typing import Any

import pyarrow as pa
import pytest

from pipelines.engines.cache import engine_path
from schemas.digests import canonical_json
from tests.engines import toy_programs as programs
from tests.signing import seal

CODE = "import sys; sys.path.append({site!r}); from cppmill_core.toy.train import main; main()"
SIZE = ("--size", "16x1", "--length", "64", "--documents", "2", "--rows", "8", "--threads", "1", "--rate", "0.01")
STEPS = 4
EVERY = ("--steps", str(STEPS), "--save-every", "2")


@pytest.fixture(scope="module")
def held_out(run: Any, cppmill: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of other sources with the same tokenizer."""
    out = tmp_path_factory.mktemp("held_out") / "out"
    cppmill("run", Path(pa.get_include()) / "arrow" / "tensor", "--tokenizer", run.out / "tokenizer", "--out", out)
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
        saved = next(line for line in training.stdout if line.startswith("saved step "))
        training.send_signal(signal.SIGKILL)
    assert training.returncode == -signal.SIGKILL
    assert not saved.startswith(f"saved step {STEPS} ")
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
    assert sorted({line["step"] for line in found}) == [*range(STEPS)]
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
    assert "another training: seed 0 is not 1; name" in said


def refused(in_torch: Any, run: Any, held_out: Path, folder: Path) -> str:
    """What a training says that is continued in a folder with damaged files."""
    asked = (run.out, "--held-out", held_out, "--model", folder, *SIZE, *EVERY)
    return str(in_torch(programs.refuse_training, *asked))


def test_a_checkpoint_of_another_training_is_refused(
    in_torch: Any, run: Any, held_out: Path, model: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(model, folder)
    (folder / "config.json").unlink()
    asked = (run.out, "--held-out", held_out, "--model", folder, *SIZE, *EVERY, "--seed", "1")
    assert "checkpoint.pt: another training: seed 0 is not 1; name" in in_torch(programs.refuse_training, *asked)


@pytest.mark.parametrize("content", ["{", "[1]"])
def test_a_damaged_configuration_is_refused(
    in_torch: Any, run: Any, held_out: Path, model: Path, tmp_path: Path, content: str
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(model, folder)
    (folder / "config.json").write_text(content)
    assert "config.json: damaged" in refused(in_torch, run, held_out, folder)


def test_a_log_without_the_lines_of_the_checkpoint_is_refused(
    in_torch: Any, run: Any, held_out: Path, model: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(model, folder)
    content = (model / "losses.jsonl").read_text()
    updates = len(losses(model)) - 1
    (folder / "losses.jsonl").write_text(content[:-1])
    assert f"losses.jsonl: {updates - 1} of the {updates} updates" in refused(in_torch, run, held_out, folder)
    (folder / "losses.jsonl").unlink()
    assert f"losses.jsonl: 0 of the {updates} updates" in refused(in_torch, run, held_out, folder)


def test_held_out_text_of_another_tokenizer_is_refused(in_torch: Any, run: Any, held_out: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    receipt = json.loads((held_out / "receipt.json").read_bytes())
    receipt["tokenizer"]["digest"] = "0" * 64
    (other / "receipt.json").write_text(json.dumps(receipt))
    digest = json.loads((run.out / "receipt.json").read_bytes())["tokenizer"]["digest"]
    words = f"its tokenizer has the digest {'0' * 64}, but that of {run.out} has {digest}; make both runs with one"
    with pytest.raises(Exception, match=re.escape(words)):
        in_torch(programs.train_model, run.out, "--held-out", other, "--model", tmp_path / "model", *SIZE)


def test_a_held_out_run_that_kept_the_tokenizer_is_accepted(
    in_torch: Any, run: Any, held_out: Path, tmp_path: Path
) -> None:
    kept = tmp_path / "kept"
    shutil.copytree(held_out, kept)
    receipt = json.loads((kept / "receipt.json").read_bytes())
    receipt["tokenizer"].update(kept=True, revision="1.0")
    seal(receipt)
    (kept / "receipt.json").write_bytes(canonical_json(receipt))
    folder = tmp_path / "model"
    in_torch(programs.train_model, run.out, "--held-out", kept, "--model", folder, *SIZE, "--steps", "1")
    assert json.loads((folder / "result.json").read_bytes())["bits_per_byte"] > 0


def trace(cppmill: Any, *arguments: object) -> list[int]:
    """The tokens of the documents that a trace names."""
    records = [json.loads(line) for line in cppmill("trace", *arguments, "--json").stdout.splitlines()]
    return [record["tokens"] for record in records if record["record"] == "document"]


def test_a_trace_names_what_was_trained_on(cppmill: Any, run: Any, model: Path) -> None:
    checkpoint, lines = model / "checkpoint.pt", losses(model)[1:]
    named = trace(cppmill, checkpoint, "--data", run.out, "--until")
    # The first token of each document is given; every other one is a target once.
    assert (len(named), sum(named) - len(named)) == (2 * STEPS, sum(line["targets"] for line in lines))
    for step in (2, STEPS - 1):
        named = trace(cppmill, checkpoint, "--data", run.out, "--step", step)
        targets = sum(line["targets"] for line in lines if line["step"] == step)
        assert (len(named), sum(named) - len(named)) == (2, targets)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("--size", "foo"), "--size: foo: not a width and a number of layers, such as 64x2"),
        (("--size", "64x0"), "--size: 64x0: not a width"),
        (("--length", "0"), "--length: 0: not a whole number from 1 on"),
        (("--steps", "0"), "--steps: 0: not a whole number from 1 on"),
        (("--save-every", "0"), "--save-every: 0: not a whole number from 1 on"),
        (("--documents", "-1"), "--documents: -1: not a whole number from 1 on"),
        (("--rate", "nan"), "--rate: nan: not a number above 0"),
        (("--rate", "0"), "--rate: 0: not a number above 0"),
        (("--rate", "fast"), "--rate: fast: not a number above 0"),
        (("--device", "tpu"), "--device: invalid choice: 'tpu'"),
    ],
)
def test_options_that_cannot_be_are_refused(
    in_torch: Any, run: Any, tmp_path: Path, asked: tuple[str, str], said: str
) -> None:
    told = in_torch(programs.refuse_training, run.out, "--held-out", run.out, "--model", tmp_path / "model", *asked)
    assert said in told
    assert not (tmp_path / "model").exists()


def test_a_gpu_that_is_not_there_is_refused(in_torch: Any, run: Any, tmp_path: Path) -> None:
    asked = (run.out, "--held-out", run.out, "--model", tmp_path / "model", "--device", "cuda", *SIZE, "--steps", "1")
    if in_torch(programs.has_gpu):
        in_torch(programs.train_model, *asked)
        return
    assert "--device cuda: torch finds no GPU" in in_torch(programs.refuse_training, *asked)
    assert not (tmp_path / "model").exists()


def test_a_run_without_text_is_refused_before_the_training(in_torch: Any, run: Any, tmp_path: Path) -> None:
    empty = tmp_path / "empty"  # as earlier versions left one
    empty.mkdir()
    receipt = run.receipt
    (empty / "receipt.json").write_text(json.dumps({**receipt, "dataset": {**receipt["dataset"], "bytes": 0}}))
    for text, held_out in ((run.out, empty), (empty, run.out)):
        told = in_torch(programs.refuse_training, text, "--held-out", held_out, "--model", tmp_path / "model", *SIZE)
        assert f"{empty}: a run without text" in told
    assert not (tmp_path / "model").exists()


def test_a_cut_checkpoint_is_damaged(
    in_torch: Any, cppmill: Any, run: Any, held_out: Path, model: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(model, folder)
    content = (folder / "checkpoint.pt").read_bytes()
    for kept in (0, 100, len(content) // 2):
        (folder / "checkpoint.pt").write_bytes(content[:kept])
        asked = (run.out, "--held-out", held_out, "--model", folder, *SIZE, *EVERY)
        assert "checkpoint.pt: damaged, or of another version" in in_torch(programs.refuse_training, *asked)
        told = cppmill("trace", folder / "checkpoint.pt", "--data", run.out, check=False).stderr
        assert "checkpoint.pt: damaged" in told


def test_a_training_without_torch_says_what_to_install() -> None:
    code = (
        "import runpy, sys; sys.modules['torch'] = None; "
        "runpy.run_module('cppmill_core.toy.train', run_name='__main__')"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert found.returncode == 1
    assert found.stderr.startswith("error: training needs torch: pip install torch")
    assert len(found.stderr.splitlines()) == 1
