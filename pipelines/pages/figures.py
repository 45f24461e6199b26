"""Figures that commands draw with matplotlib, each in a file. Equal figures give equal SVG files."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from configs.outputs import check_file
from pipelines.pages import write_output
from schemas.errors import ConfigError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FORMATS = (".svg", ".png", ".pdf")
_NO_MOMENT = 253_402_300_800
"""The first second of the year 10000, for which Python has no date."""


def check_plot(file: Path) -> None:
    """Check that a plot can be drawn, before anything is read.

    Raises:
        ConfigError: If matplotlib is not installed, or the file is of no kind that is drawn, or has no folder.
    """
    if file.suffix not in _FORMATS:
        raise ConfigError(f"--plot {file}: not allowed; its name ends with {', '.join(_FORMATS)}")
    check_file(file, option="--plot")
    try:
        import_matplotlib()
    except ImportError as error:
        raise ConfigError("--plot needs matplotlib: pip install 'cppmill[plots]'") from error


def import_matplotlib() -> None:
    """Import matplotlib, and check the variables that it reads whatever is drawn.

    Raises:
        ConfigError: If one of them has no value that it takes.
        ImportError: If it is not installed.
    """
    try:
        import matplotlib  # noqa: F401
    except ValueError as error:
        backend = os.environ.get("MPLBACKEND", "")
        raise ConfigError(f"MPLBACKEND={backend}: matplotlib has no such backend; unset it, none is needed") from error
    moment = os.environ.get("SOURCE_DATE_EPOCH", "0")
    if not (moment.isascii() and moment.isdigit() and int(moment[:99]) < _NO_MOMENT):
        allowed = "a whole number of seconds since 1970, before the year 10000"
        raise ConfigError(f"SOURCE_DATE_EPOCH={moment}: not {allowed}; unset it, or mend it")


def draw_figure(kind: str, size: tuple[float, float], paint: Callable[[Figure], None]) -> bytes:
    """Return a figure as the bytes of its file.

    Args:
        kind: `svg`, `png` or `pdf`.
        size: Width and height in inches.
        paint: Draws on the empty figure.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    target = io.BytesIO()
    with rc_context({"svg.hashsalt": "cppmill", "svg.fonttype": "none"}):
        figure = Figure(figsize=size, layout="constrained")
        paint(figure)
        figure.savefig(target, format=kind, metadata={"Date": None} if kind == "svg" else None)
    return target.getvalue()


def write_plot(file: Path, size: tuple[float, float], paint: Callable[[Figure], None]) -> None:
    """Draw a figure into the file of `--plot`, whose ending is the format; the other arguments as above.

    Raises:
        ConfigError: If the file cannot be written.
        ResourceError: If there is no space for it.
    """
    write_output(draw_figure(file.suffix[1:], size, paint), file, option="--plot")
