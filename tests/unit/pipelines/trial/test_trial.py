"""Trials without torch: texts, budgets, figures, and what is said where torch is missing."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import Any

import pytest

from pipelines.console.progress import Reporters
from pipelines.trial.budget import Speed, parse_time, share_budget
from pipelines.trial.program import TrialRequest, run_trial, trial_lines
from pipelines.trial.results import plot, summarize, table
from pipelines.trial.texts import TrialText, read_trial_text
from schemas.errors import ConfigError
from schemas.study_options import TrialOptions
from transforms.storage.scratch import scratch_folder


def make_cell(name: str, seed: int, points: list[tuple[int, float]]) -> dict[str, Any]:
    found = [
        {"step": number, "bytes": size, "flops": 10 * size, "bits_per_byte": bits}
        for number, (size, bits) in enumerate(points, start=1)
    ]
    return {"tokenizer": name, "seed": seed, "points": found}


CELLS = [
    make_cell("a", 0, [(100, 4.0), (400, 2.0)]),
    make_cell("b", 0, [(100, 5.0), (200, 3.0)]),
    make_cell("a", 1, [(100, 4.0), (400, 2.5)]),
    make_cell("b", 1, [(100, 5.0), (200, 3.0)]),
]
REQUEST = TrialRequest(
    tokenizers=["/no/such"], text=["/no/such"], held_out=["/no/such"], out=Path("/no"), options=TrialOptions(), flops=1
)
TOKENIZERS = [{"name": name, "vocab_size": 10, "bytes_per_token": 2.0, "parameters": 5} for name in "ba"]


def test_torch_gets_a_folder_that_goes_with_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "")
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR")
    with pytest.raises(ConfigError, match="a trial needs|does not exist"):
        run_trial(REQUEST, Reporters())
    assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == str(scratch_folder())


def test_figures_are_over_seeds_and_at_the_bytes_of_the_slowest() -> None:
    b, a = summarize(TOKENIZERS, CELLS)
    assert (a["bits_per_byte"], a["bits_per_byte_spread"], a["bytes"]) == (2.25, 0.5, 400)
    assert a["common_bytes"] == b["common_bytes"] == 200
    # 200 is halfway between 100 and 400 on a scale of logarithms.
    assert a["bits_per_byte_at_common_bytes"] == pytest.approx((3.0 + 3.25) / 2)
    assert (b["bits_per_byte_at_common_bytes"], b["bits_per_byte_at_common_bytes_spread"]) == (3.0, 0.0)


def test_the_best_tokenizer_comes_first() -> None:
    lines = table(summarize(TOKENIZERS, CELLS))
    assert [line.split()[0] for line in lines] == ["tokenizer", "a", "b"]
    assert "at 0.00 MB" in lines[0]


def test_one_seed_has_no_spread() -> None:
    cells = CELLS[:2]
    rows = summarize(TOKENIZERS, cells)
    spreads = [value for row in rows for name, value in row.items() if name.endswith("_spread")]
    assert spreads == [None] * 4
    lines = [line.split() for line in table(rows)]
    assert [(line[-3], line[-1]) for line in lines[1:]] == [("-", "-"), ("-", "-")]
    assert all('"bits_per_byte_spread": null' in line for line in trial_lines(rows, as_json=True))
    areas = [b"FillBetweenPolyCollection" in plot(drawn) for drawn in (cells, CELLS)]
    assert areas == [False, True]


def test_help_says_what_is_trained_on(cppmill: Any) -> None:
    said = " ".join(cppmill("trial", "--help").stdout.split())
    assert "--on SOURCE Text to train on:" in said


def test_equal_figures_give_equal_plots() -> None:
    drawn = plot(CELLS)
    assert drawn == plot(CELLS)
    assert b"bytes trained on" in drawn
    assert b"FLOPs" in drawn


def test_the_budget_is_the_time_of_all_trainings_and_measurements() -> None:
    speeds = [Speed(2.0, 1.5), Speed(8.0, 0.5)]
    flops = share_budget(100.0, speeds, seeds=4)
    assert 4 * sum(flops / speed.flops_per_second + speed.measuring_seconds for speed in speeds) == pytest.approx(100.0)


@pytest.mark.parametrize("text", ["20", "m", "-1m", "0s", "1d"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="--budget .*not a time"):
        parse_time(text, argument="--budget")


def test_every_epoch_has_each_document_in_another_order() -> None:
    text = TrialText(contents={str(n): bytes([n]) for n in range(20)}, digest="", left_out=0)
    first, second = itertools.islice(text.mixed(0), 2)
    assert sorted(first) == sorted(second) == sorted(text.contents.values())
    assert first != second
    assert next(text.mixed(0)) == first
    assert next(text.mixed(1)) != first


def test_documents_are_taken_once_up_to_a_size_and_only_utf_8(tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"{number}.h").write_bytes(b"int x%02d;\n" % number)
    (tmp_path / "latin.h").write_bytes(b"// \xe9\n")
    whole = read_trial_text([str(tmp_path)], sample=1.0, argument="--on")
    assert (len(whole.contents), whole.num_bytes, whole.left_out) == (30, 270, 1)
    some = read_trial_text([str(tmp_path)], sample=1.0, argument="--held-out", most_bytes=85)
    assert list(some.contents) == sorted(whole.contents)[:9]
    rest = read_trial_text([str(tmp_path)], sample=1.0, argument="--on", without=some.contents)
    assert whole.contents.keys() - some.contents.keys() == rest.contents.keys()
    assert int(whole.digest, 16) == (int(some.digest, 16) + int(rest.digest, 16)) % (1 << 256)


def test_without_torch_the_extra_is_named(run: Any, cppmill: Any, tmp_path: Path) -> None:
    asked = ("--on", run.out, "--held-out", run.out, "--flops", "1e12", "--out", tmp_path / "out")
    done = cppmill("trial", run.out / "tokenizer", *asked, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: a trial needs torch: pip install 'cppmill[trial]'\n"


def test_options_are_checked(run: Any, cppmill: Any, tmp_path: Path) -> None:
    asked = ("--on", run.out, "--held-out", run.out, "--flops", "1e12", "--out", tmp_path / "out")
    done = cppmill("trial", run.out / "tokenizer", *asked, "--layers", "0", "--sample", "2", check=False)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 2
    assert "--layers 0: not allowed" in done.stderr
