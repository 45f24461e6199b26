"""The figures of a trial: a row per tokenizer over its seeds, as a table, as JSON values, and as a plot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pipelines.console.progress import MEGABYTE
from pipelines.console.tables import format_frame
from pipelines.pages.figures import draw_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Cells = Sequence[Mapping[str, Any]]
"""Of each cell the name of its tokenizer, its seed and its points, as `train_cell` returns them."""

_AXES = {"bytes": "bytes trained on", "flops": "FLOPs"}


def summarize(tokenizers: Sequence[Mapping[str, Any]], cells: Cells) -> list[dict[str, Any]]:
    """Return a row per tokenizer.

    Args:
        tokenizers: Of each its `name`, and whatever else its row is to have.
        cells: What was measured.

    Returns:
        For each tokenizer the steps and bytes of its training, bits per byte at the end (mean over the seeds, and the
        spread: largest less smallest, None for one seed), and the same at `common_bytes`, which every cell has trained
        on: between two points, on a line over the logarithm of the bytes.
    """
    common = min(cell["points"][-1]["bytes"] for cell in cells)
    rows = []
    for tokenizer in tokenizers:
        mine = [cell["points"] for cell in cells if cell["tokenizer"] == tokenizer["name"]]
        rows.append(
            {
                **tokenizer,
                "steps": mine[0][-1]["step"],
                "bytes": round(float(np.mean([points[-1]["bytes"] for points in mine]))),
                **_spread("bits_per_byte", [points[-1]["bits_per_byte"] for points in mine]),
                "common_bytes": common,
                **_spread("bits_per_byte_at_common_bytes", [_bits_at(points, common) for points in mine]),
            }
        )
    return rows


def _spread(name: str, values: Sequence[float]) -> dict[str, float | None]:
    return {name: float(np.mean(values)), f"{name}_spread": max(values) - min(values) if len(values) > 1 else None}


def _bits_at(points: Sequence[Mapping[str, Any]], num_bytes: int) -> float:
    known = np.log([point["bytes"] for point in points])
    return float(np.interp(np.log(num_bytes), known, [point["bits_per_byte"] for point in points]))


def table(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the lines of the table; the best tokenizer for the same work comes first."""
    ordered = sorted(rows, key=lambda row: (row["bits_per_byte"], row["name"]))
    frame = pd.DataFrame(ordered)
    frame = frame.assign(megabytes=frame["bytes"] / MEGABYTE, parameters=frame["parameters"] / MEGABYTE)
    at = f"at {ordered[0]['common_bytes'] / MEGABYTE:,.2f} MB"
    return format_frame(
        frame,
        {
            "tokenizer": ("name", ""),
            "ids": ("vocab_size", ","),
            "bytes/token": ("bytes_per_token", ".3f"),
            "parameters": ("parameters", "{:,.1f} M".format),
            "steps": ("steps", ","),
            "trained on": ("megabytes", "{:,.2f} MB".format),
            "bits/byte": ("bits_per_byte", ".4f"),
            "spread": ("bits_per_byte_spread", ".4f"),
            at: ("bits_per_byte_at_common_bytes", ".4f"),
            "spread ": ("bits_per_byte_at_common_bytes_spread", ".4f"),
        },
    )


def plot(cells: Cells) -> bytes:
    """Draw bits per byte over bytes and over work: the mean of the seeds, and, of several, the area between them.

    Args:
        cells: What was measured.

    Returns:
        An SVG file; equal figures give equal bytes.
    """

    def paint(figure: Figure) -> None:
        for axes, (key, label) in zip(figure.subplots(1, 2, sharey=True), _AXES.items(), strict=True):
            for name in dict.fromkeys(cell["tokenizer"] for cell in cells):
                mine = [cell["points"] for cell in cells if cell["tokenizer"] == name]
                places = np.mean([[point[key] for point in points] for points in mine], axis=0)
                bits = np.array([[point["bits_per_byte"] for point in points] for points in mine])
                (line,) = axes.plot(places, bits.mean(axis=0), marker=".", label=name)
                if len(bits) > 1:
                    axes.fill_between(places, bits.min(axis=0), bits.max(axis=0), alpha=0.2, color=line.get_color())
            axes.set_xscale("log")
            axes.set_xlabel(label)
            axes.grid(alpha=0.3)
        figure.axes[0].set_ylabel("bits per byte, held out")
        figure.axes[0].legend()

    return draw_figure("svg", (10, 4.5), paint)
