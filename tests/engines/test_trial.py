"""Trials: the work and the losses are what they are said to be, cells are kept, and the receipt holds the files."""

from __future__ import annotations

import json
import math
import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipelines.stages.session import locked
from schemas.study_options import TrialOptions
from tests.engines import toy_programs as programs
from transforms.storage.folder import OutputFolder

FLOPS = 1.2e6 * 64 * 40
OPTIONS = {"width": 16, "layers": 1, "length": 16, "rows": 4, "held_out_bytes": 6_000}


@pytest.fixture(scope="module")
def asked(run: Any, other_tokenizer: Path) -> dict[str, Any]:
    """What is asked for, but for the folder: two tokenizers, on the arrays of Arrow."""
    return {
        "tokenizers": [f"ours={run.out / 'tokenizer'}", f"other={other_tokenizer}"],
        "text": [str(run.out)],
        "held_out": [str(Path(pa.get_include()) / "arrow" / "io")],
        "options": TrialOptions(**OPTIONS),
        "flops": FLOPS,
    }


@pytest.fixture(scope="module")
def trial(in_torch: Any, asked: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The folder of a trial, its rows, and what it reported."""
    out = tmp_path_factory.mktemp("trial") / "out"
    return out, *in_torch(programs.carry_out, **asked, out=out)


def read(out: Path, name: str) -> Any:
    return json.loads((out / name).read_bytes())


def test_the_work_is_what_torch_counts(in_torch: Any) -> None:
    counted, expected = in_torch(programs.count_flops)
    assert counted == expected > 0


def test_losses_are_those_of_each_token_after_those_before_it(in_torch: Any) -> None:
    found, expected = in_torch(programs.compare_losses)
    assert found == pytest.approx(expected, rel=1e-5)


def test_a_step_does_not_depend_on_the_parts_it_is_made_in(in_torch: Any) -> None:
    moved, apart = in_torch(programs.train_in_parts)
    assert apart < 1e-3 * moved


def test_a_model_learns_its_text(in_torch: Any, run: Any) -> None:
    points = in_torch(programs.learn, b"int main() { return 0; }\n" * 200, run.out / "tokenizer")
    assert points[0]["bits_per_byte"] > 1
    assert points[-1]["bits_per_byte"] < 0.1
    assert points[-1]["bytes"] > 5000  # more than one epoch


def test_every_cell_has_the_same_work(trial: Any) -> None:
    out, rows, told = trial
    assert [row["name"] for row in rows] == ["ours", "other"]
    figures = read(out, "trial.json")
    assert [(cell["tokenizer"], cell["seed"]) for cell in figures["cells"]] == [
        *(("ours", 0), ("other", 0)),
        *(("ours", 1), ("other", 1)),
    ]
    assert len(told) == 4
    for cell in figures["cells"]:
        [row] = [row for row in rows if row["name"] == cell["tokenizer"]]
        last = cell["points"][-1]
        assert last["tokens"] == last["step"] * 64
        assert last["flops"] == last["tokens"] * row["flops_per_token"]
        assert FLOPS - 64 * row["flops_per_token"] < last["flops"] <= FLOPS
        assert [point["bytes"] for point in cell["points"]] == sorted({point["bytes"] for point in cell["points"]})


def test_a_row_is_the_mean_and_the_spread_of_the_seeds(trial: Any) -> None:
    out, rows, _ = trial
    for row in rows:
        cells = [cell["points"] for cell in read(out, "trial.json")["cells"] if cell["tokenizer"] == row["name"]]
        one, two = (points[-1]["bits_per_byte"] for points in cells)
        assert one != two
        assert row["bits_per_byte"] == pytest.approx((one + two) / 2)
        assert row["bits_per_byte_spread"] == pytest.approx(abs(one - two))
        # A model that knows nothing spends the logarithm of the ids on a token; this one has begun to learn.
        assert row["bits_per_byte"] < math.log2(row["vocab_size"] + 1) / row["bytes_per_token"]


def test_the_receipt_names_tokenizers_texts_and_files(trial: Any, run: Any, asked: Any, cppmill: Any) -> None:
    out, _, _ = trial
    receipt, corpus = read(out, "receipt.json"), run.receipt["corpus"]
    assert receipt["text"] == {"corpus": corpus["digest"], "not_utf_8": 0} | {
        name: corpus[name] for name in ("documents", "bytes")
    }
    assert 3_000 < receipt["held_out"]["bytes"] <= OPTIONS["held_out_bytes"]
    assert receipt["tokenizers"][0]["digest"] == run.receipt["tokenizer"]["digest"]
    assert receipt["code"]["torch"].startswith("2.")
    assert {file["path"] for file in receipt["files"]} == {"trial.json", "trial.svg"}
    assert cppmill("verify", out).returncode == 0


def test_a_changed_figure_is_found(trial: Any, cppmill: Any, tmp_path: Path) -> None:
    shutil.copytree(trial[0], tmp_path / "out")
    (tmp_path / "out/trial.json").write_bytes(b"{}")
    done = cppmill("verify", tmp_path / "out", check=False)
    assert done.returncode == 1
    assert "trial.json: its SHA-256 is" in done.stdout + done.stderr


def test_cells_are_kept_and_more_seeds_add_some(in_torch: Any, trial: Any, asked: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(trial[0], out)
    before = {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}
    (out / "receipt.json").unlink()
    (out / ".cache/trial/other-0.json").unlink()
    (out / ".cache/trial/ours-1.json").write_bytes(b"{")
    other = out / ".cache/trial/other-1.json"
    other.write_bytes(re.sub(rb'("bits_per_byte":\d)', rb"\g<1>1", other.read_bytes(), count=1))
    rows, told = in_torch(programs.carry_out, **asked, out=out)
    assert [line.split(":")[0] for line in told] == ["2 of 4", "3 of 4", "4 of 4"]
    assert {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()} == before
    more = {**asked, "options": TrialOptions(**OPTIONS, seeds=3)}
    rows, told = in_torch(programs.carry_out, **more, out=out)
    assert [line.split(":")[0] for line in told] == ["5 of 6", "6 of 6"]


def test_a_refused_budget_is_measured_again(in_torch: Any, asked: Any, tmp_path: Path) -> None:
    budget = {**asked, "flops": None, "budget_seconds": 4.0, "out": tmp_path / "out"}
    # A second for each of four cells: on a slow machine, on a fast one, and what the fast one came to, kept.
    slow, fast, kept = in_torch(programs.at_speeds, [FLOPS / 64, FLOPS, FLOPS / 64], **budget)
    assert len(slow) == 1
    assert "at least 32 are needed" in slow[0]
    assert "GFLOP/s here; --flops 3.072e+09 is this work again" in fast[0]
    assert len(fast) == 1 + 4
    assert kept == []


def test_what_cannot_be_tried_is_refused(in_torch: Any, run: Any, asked: Any, tmp_path: Path) -> None:
    lossy = json.loads((run.out / "tokenizer/tokenizer.json").read_bytes())
    lossy["normalizer"] = {"type": "Lowercase"}
    (tmp_path / "lower.json").write_text(json.dumps(lossy))
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").touch()

    def said(**changed: Any) -> str:
        return str(in_torch(programs.refused, **{**asked, "out": tmp_path / "out", **changed}))

    assert "do not decode to themselves" in said(tokenizers=[str(tmp_path / "lower.json")])
    assert "at least 32 are needed" in said(flops=1e6)
    assert "measuring alone takes" in said(flops=None, budget_seconds=1e-6)
    assert "give one of --budget and --flops" in said(budget_seconds=60.0)
    assert "no document to take" in said(held_out=asked["text"])
    assert "it holds file, which no trial wrote" in said(out=tmp_path / "full")
    assert "whose receipt names every file" in said(out=run.out / "trial")
    assert "finds no GPU" in said(device="cuda")


def test_the_folder_of_another_command_is_left_alone(in_torch: Any, trial: Any, asked: Any, tmp_path: Path) -> None:
    own = tmp_path / "own"
    shutil.copytree(trial[0], own)
    before = (own / "trial.json").read_bytes()
    with locked(OutputFolder(own)):
        assert "another run is writing here" in in_torch(programs.refused, **asked, out=own)
    (own / "tokens").mkdir()
    (own / "tokens/mine.parquet").touch()
    assert "it holds tokens/mine.parquet, which no trial wrote" in in_torch(programs.refused, **asked, out=own)
    assert (own / "trial.json").read_bytes() == before
    for written in ("receipt.json", "manifest.json"):
        new = tmp_path / written
        assert f"it holds {written}, which no trial" in in_torch(programs.refused_late, written, **asked, out=new)
        assert list(OutputFolder(new).files()) == [written]
