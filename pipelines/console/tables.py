"""Tables of text: what `compare`, `sweep` and `lengths` print."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from schemas.printing import one_line

if TYPE_CHECKING:
    import pandas as pd

Columns = Mapping[str, tuple[str, str | Callable[[Any], str]]]
"""Heading to the column of a frame and how its values are shown: a format specification or a function."""


def format_frame(frame: pd.DataFrame, columns: Columns) -> list[str]:
    """Return some columns of a frame as aligned lines, below their headings; a missing value is `-`.

    Example:
        >>> import pandas as pd
        >>> format_frame(pd.DataFrame({"n": [1, 1000], "s": [0.5, None]}), {"ids": ("n", ","), "share": ("s", ".1%")})
        ['ids    share', '1      50.0%', '1,000      -']
    """
    cells = [[_cell(value, how) for value in frame[name]] for name, how in columns.values()]
    return align([list(columns), *map(list, zip(*cells, strict=True))])


def _cell(value: Any, how: str | Callable[[Any], str]) -> str:  # noqa: ANN401 - a value of any column
    if value is None or value != value:  # NaN alone differs from itself
        return "-"
    return format(value, how) if isinstance(how, str) else how(value)


def align(rows: Sequence[Sequence[str]]) -> list[str]:
    r"""Return rows as lines: the first column to the left, the others to the right; a cell is never several lines.

    Example:
        >>> align([["path", "bytes"], ["a\nb", "1"]])
        ['path  bytes', 'a\\nb      1']
    """
    rows = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  ".join([f"{row[0]:{widths[0]}}", *cells]))
    return lines
