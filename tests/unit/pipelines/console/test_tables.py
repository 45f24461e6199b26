"""Tables of text: alignment, formats, and what is shown of a missing value."""

from __future__ import annotations

import pandas as pd
import pytest

from pipelines.console.tables import align, format_frame


def test_the_first_column_is_to_the_left_and_the_others_to_the_right():
    assert align([["name", "n"], ["a", "1,000"], ["longer", "2"]]) == [
        "name        n",
        "a       1,000",
        "longer      2",
    ]


def test_rows_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match="zip"):
        align([["name", "n"], ["a"]])


def test_columns_are_chosen_renamed_and_formatted_by_a_specification_or_a_function():
    frame = pd.DataFrame({"n": [1, 1000], "s": [0.5, 0.25], "left": [0, 0]})
    lines = format_frame(frame, {"ids": ("n", ","), "share": ("s", ".1%"), "twice": ("n", lambda n: str(2 * n))})
    assert lines == ["ids    share  twice", "1      50.0%      2", "1,000  25.0%   2000"]


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_a_missing_value_is_a_dash(missing):
    assert format_frame(pd.DataFrame({"n": ["a"], "s": [missing]}), {"n": ("n", ""), "s": ("s", ".1%")})[1] == "a  -"


def test_a_frame_without_rows_is_its_headings():
    assert format_frame(pd.DataFrame({"n": [], "s": []}), {"n": ("n", ""), "share": ("s", "")}) == ["n  share"]
