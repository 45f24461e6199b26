"""The map of a vocabulary: its ids row by row, coloured by band, stronger where an id occurs more often."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

_COLUMNS, _MANY_COLUMNS, _MANY_IDS = 256, 512, 1 << 15

COLOURS = {
    "control": "#ef4444",
    "keywords": "#3b82f6",
    "operators": "#f59e0b",
    "preprocessor": "#a855f7",
    "numbers": "#14b8a6",
    "whitespace": "#a8896a",
    "library": "#22a447",
    "morphemes": "#c9a80a",
    "integers": "#06a5c9",
    "domain": "#ec4899",
    "reserved": "#9aa0a6",
    "learned": "#5673a8",
    "superwords": "#7c6cf0",
}
"""A colour of each band that is seen on light and dark ground."""

_UNUSED, _LEAST = 0.14, 0.4


class Map(NamedTuple):
    """A picture as a `data:` URL, with the number of ids per row and of rows."""

    url: str
    columns: int
    rows: int


def draw_map(counts: npt.NDArray[np.int64], bands: Sequence[str]) -> Map:
    """Draw the ids; an unused one is pale.

    Args:
        counts: Occurrences by id.
        bands: The band of each id.
    """
    from matplotlib.image import imsave

    columns = _MANY_COLUMNS if len(counts) > _MANY_IDS else _COLUMNS
    rows = -(-len(counts) // columns)
    picture = np.zeros((rows * columns, 4), np.uint8)
    picture[: len(counts)] = colour_ids(counts, bands)
    target = io.BytesIO()
    imsave(target, picture.reshape(rows, columns, 4), format="png", pil_kwargs={"optimize": True})
    return Map(f"data:image/png;base64,{base64.b64encode(target.getvalue()).decode()}", columns, rows)


def colour_ids(counts: npt.NDArray[np.int64], bands: Sequence[str]) -> npt.NDArray[np.uint8]:
    """Return red, green, blue and opacity of each id."""
    opacity = _LEAST + (1 - _LEAST) * np.log1p(counts) / max(np.log1p(counts.max(initial=0)), 1)
    opacity[counts == 0] = _UNUSED
    channels = {band: [int(colour[at : at + 2], 16) for at in (1, 3, 5)] for band, colour in COLOURS.items()}
    colours = np.array([channels[band] for band in bands], np.uint8).reshape(-1, 3)
    return np.column_stack([colours, np.round(255 * opacity).astype(np.uint8)])
