"""Filters on lines, against what the standard library's split gives."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from transforms.filters.lines import longest_line_bytes, unique_line_ratio


@given(st.lists(st.binary(max_size=20).map(lambda line: line.replace(b"\n", b"")), max_size=20))
def test_the_longest_line_is_the_longest(lines: list[bytes]) -> None:
    assert longest_line_bytes(b"\n".join(lines)) == max(map(len, lines), default=0)


@given(st.lists(st.sampled_from([b"a", b" a ", b"b", b"", b"  "]), max_size=20))
def test_the_ratio_counts_lines_that_are_not_blank(lines: list[bytes]) -> None:
    stripped = [line.strip() for line in lines if line.strip()]
    expected = len(set(stripped)) / len(stripped) if stripped else 1.0
    assert unique_line_ratio(b"\n".join(lines)) == expected
