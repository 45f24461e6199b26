"""The lines about a stage are readable, whatever is known of it."""

from __future__ import annotations

import pytest

from pipelines.console.lines import done_line, format_seconds, format_summary, progress_line
from pipelines.console.progress import Meter


def test_nothing_is_divided_by_zero() -> None:
    now = [100.0]
    meter = Meter("scan", 0, 0, lambda: now[0])
    assert (meter.bytes_per_second, meter.eta_seconds) == (0.0, None)
    assert progress_line(meter) == "scan: 0 of 0 units"
    meter = Meter("scan", 4, 0, lambda: now[0])
    now[0] += 10
    meter.done_units = 1
    assert meter.eta_seconds == 30.0  # by units where there are no bytes


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0.0 s"), (59.94, "59.9 s"), (60, "1 min 00 s"), (3599, "59 min 59 s"), (3600, "1 h 00 min")],
)
def test_durations_are_readable(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text


@pytest.mark.parametrize(
    ("summary", "text"),
    [
        ({}, ""),
        ({"max_token_id": 65535, "tokens": 12}, "65,535 max token id, 12 tokens"),
        ({"source_bytes": 2_500_000}, "source 2.5 MB"),
        ({"bytes_per_token": 3.91234}, "3.912 bytes per token"),
        ({"tokenizer": "kept"}, "tokenizer kept"),
        ({"units run": 1, "units reused": 0}, "1 unit run, 0 units reused"),
        ({"near-duplicates": 1, "ids": 2}, "1 near-duplicate, 2 ids"),
    ],
)
def test_summaries_are_readable(summary: dict[str, int | float | str], text: str) -> None:
    assert format_summary(summary) == text


def test_a_stage_with_nothing_to_do_says_so() -> None:
    assert done_line(Meter("scan", 0, 0), 0.1, {}) == "scan: nothing to do, every unit is up to date"
    assert done_line(Meter("build", 1, 0), 2.0, {}) == "build: 1 unit in 2.0 s"


def test_one_thing_is_not_called_several() -> None:
    meter = Meter("build", 1, 0)
    assert done_line(meter, 2.0, {"units run": 1}) == "build: 1 unit in 2.0 s (1 unit run)"
    assert progress_line(meter).startswith("build: 0 of 1 unit")
