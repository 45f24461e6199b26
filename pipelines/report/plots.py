"""Plots for pages: drawn by matplotlib, given as inline SVG in the colours of the page.

A plot is 360 pixels wide, so that its text is read on a phone; a page sets several side by side. It is drawn with
stand-ins for colours, which become `currentColor` and CSS variables, so that it follows the page from light to dark.
Text stays text, and names from a corpus are shown literally.
"""

from __future__ import annotations

import io
import math
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup

from pipelines.pages.figures import import_matplotlib
from schemas.errors import ConfigError
from schemas.printing import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH = 360
"""Width of every plot, in CSS pixels."""

TEXT, QUIET, LINE, GROUND = "#0a0b01", "#0a0b02", "#0a0b03", "#0a0b04"
FIRST, SECOND, KEPT, LOST = "#0a0b05", "#0a0b06", "#0a0b07", "#0a0b08"
"""Stand-ins: what they become is in `_COLOURS`."""

_COLOURS = {
    TEXT: "currentColor",
    QUIET: "var(--quiet)",
    LINE: "var(--line)",
    GROUND: "var(--ground)",
    FIRST: "var(--first)",
    SECOND: "var(--second)",
    KEPT: "var(--kept)",
    LOST: "var(--lost)",
}
_FONT_PIXELS = 12
_ROW_PIXELS = 34
_LABELS = 4
"""How many labels of versions fit below a plot."""

_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "cppmill",
    "font.size": _FONT_PIXELS,
    "text.parse_math": False,
    "text.color": TEXT,
    "axes.edgecolor": LINE,
    "axes.labelcolor": QUIET,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": LINE,
    "grid.linewidth": 0.8,
    "xtick.color": LINE,
    "xtick.labelcolor": QUIET,
    "ytick.color": LINE,
    "ytick.labelcolor": QUIET,
    "legend.frameon": False,
    "lines.linewidth": 2,
}


class Bar(NamedTuple):
    """A bar: its label, its value, and the text behind it."""

    label: str
    value: float
    text: str


class Stream(NamedTuple):
    """A part of a flow: its label, its amount, the text below the label, and whether it is kept."""

    label: str
    amount: int
    text: str
    kept: bool


def draw(name: str, title: str, height: int, paint: Callable[[Axes], None], *, bare: bool = False) -> Markup:
    """Return a plot as SVG.

    Args:
        name: Its name on the page; begins the ids inside.
        title: What it shows, for those who do not see it.
        height: Its height in CSS pixels.
        paint: Draws.
        bare: Give the whole area in pixels, from the upper left corner, instead of axes.

    Raises:
        ConfigError: If matplotlib is not installed, or a variable has no value that it takes.
    """
    try:
        import_matplotlib()
    except ImportError as error:
        raise ConfigError("plots need matplotlib: pip install 'cppmill[plots]'") from error
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    target = io.StringIO()
    with rc_context(_SETTINGS), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = Figure(figsize=(WIDTH / 72, height / 72), dpi=72, layout=None if bare else "constrained")
        axes = figure.add_axes((0, 0, 1, 1)) if bare else figure.add_subplot()
        if bare:
            axes.set(xlim=(0, WIDTH), ylim=(height, 0))
            axes.axis("off")
        paint(axes)
        metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(target, format="svg", transparent=True, metadata=metadata)
    return Markup(_inline(target.getvalue(), name, title))


def _inline(svg: str, name: str, title: str) -> str:
    """Return a drawing as a part of a page: the page's colours and font, ids that no other drawing has."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(?<=<svg )[^>]*?(viewBox="[^"]*")[^>]*', lambda found: found[1], svg, count=1)
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r'(?:xlink:)?href="#', f'href="#{name}-', svg)
    svg = svg.replace("url(#", f"url(#{name}-")
    svg = re.sub(r"font: ([\d.]+px) [^;\"]*", r"font-size: \1", svg)
    for colour, variable in _COLOURS.items():
        svg = svg.replace(colour, variable)
    return svg.replace("<svg ", f'<svg role="img" aria-label="{Markup.escape(title)}" class="plot" ', 1)


def bars(name: str, title: str, rows: Sequence[Bar], *, whole: float | None = None) -> Markup:
    """Return horizontal bars, each below its label and the text of its value.

    Args:
        name: Its name on the page.
        title: What it shows.
        rows: The bars.
        whole: What the values are shares of, drawn behind each; without it the longest bar is the largest value.
    """
    most = whole or max((row.value for row in rows), default=0) or 1

    def paint(axes: Axes) -> None:
        for place, row in enumerate(rows):
            top = place * _ROW_PIXELS
            axes.text(0, top + 14, shortened(row.label, 30))
            axes.text(WIDTH, top + 14, row.text, ha="right", color=QUIET)
            if whole:
                axes.barh(top + 23, WIDTH, height=8, color=LINE, alpha=0.5)
            axes.barh(top + 23, WIDTH * row.value / most, height=8, color=FIRST)

    return draw(name, title, max(len(rows), 1) * _ROW_PIXELS, paint, bare=True)


def flow(name: str, title: str, whole: str, streams: Sequence[Stream]) -> Markup:
    """Return a flow from one whole to its parts, as wide as they are.

    Args:
        name: Its name on the page.
        title: What it shows.
        whole: Label of the whole.
        streams: The parts, in order.
    """
    total = sum(stream.amount for stream in streams) or 1
    scale = 180 / total
    slots = [max(stream.amount * scale, 34) + 6 for stream in streams]
    height = int(sum(slots)) + 26

    def paint(axes: Axes) -> None:
        axes.text(0, 12, whole)
        if not streams:
            return
        left, right = 20 + (height - 26 - 180) / 2, 20.0
        axes.fill_between([0, 10], left, left + 180, color=TEXT, lw=0)
        for stream, slot in zip(streams, slots, strict=True):
            size = stream.amount * scale
            at = right + (slot - 6 - size) / 2
            colour = KEPT if stream.kept else LOST
            _ribbon(axes, (10, left), (180, at), size, colour)
            axes.fill_between([180, 190], at, at + max(size, 1), color=colour, lw=0)
            axes.text(198, right + slot / 2 - 6, shortened(stream.label, 24))
            axes.text(198, right + slot / 2 + 10, stream.text, color=QUIET)
            left, right = left + size, right + slot

    return draw(name, title, height, paint, bare=True)


def _ribbon(axes: Axes, start: tuple[float, float], end: tuple[float, float], size: float, colour: str) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    (x0, y0), (x1, y1) = start, end
    half = (x0 + x1) / 2
    points = [(x0, y0), (half, y0), (half, y1), (x1, y1)]
    points += [(x1, y1 + size), (half, y1 + size), (half, y0 + size), (x0, y0 + size), (x0, y0)]
    codes = [Path.MOVETO, *[Path.CURVE4] * 3, Path.LINETO, *[Path.CURVE4] * 3, Path.CLOSEPOLY]
    axes.add_patch(PathPatch(Path(points, codes), facecolor=colour, alpha=0.35, lw=0))


def histogram(
    name: str, title: str, labels: Sequence[str], series: Iterable[tuple[str, Sequence[float]]], axis: str
) -> Markup:
    """Return shares as groups of bars.

    Args:
        name: Its name on the page.
        title: What it shows.
        labels: Of the groups.
        series: One or two, each with its name and a share, of 1, for each group.
        axis: What the groups are.
    """

    def paint(axes: Axes) -> None:
        shown = list(series)
        width = 0.8 / len(shown)
        for place, (label, shares) in enumerate(shown):
            at = [group + (place - (len(shown) - 1) / 2) * width for group in range(len(labels))]
            axes.bar(at, [100 * share for share in shares], width, color=(FIRST, SECOND)[place], label=label)
        axes.set_xticks(range(len(labels)), labels)
        axes.set(xlabel=axis, ylabel="%", ylim=(0, None if any(any(shares) for _, shares in shown) else 100))
        axes.grid(axis="x", visible=False)
        if len(shown) > 1:
            axes.legend(labelcolor=TEXT)

    return draw(name, title, 260, paint)


def curve(name: str, title: str, x: Sequence[float], y: Sequence[float], axis: str) -> Markup:
    """Return a share, of 1, that grows with a number on a logarithmic axis."""

    def paint(axes: Axes) -> None:
        axes.plot(x, [100 * share for share in y], color=FIRST)
        axes.set_xscale("log")
        axes.set(xlabel=axis, ylabel="%", ylim=(0, 102))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.minorticks_off()

    return draw(name, title, 260, paint)


def trend(
    name: str,
    title: str,
    labels: Sequence[str],
    series: Iterable[tuple[str, Sequence[float | None]]],
    *,
    marks: Iterable[int] = (),
) -> Markup:
    """Return numbers as lines from one label to the next.

    Args:
        name: Its name on the page.
        title: What it shows.
        labels: Of the places, in order; a few of them are written.
        series: At most three, each with its name and a number for each label, None for a gap.
        marks: Places with a dashed line.
    """
    shown = [(label, [math.nan if value is None else value for value in values]) for label, values in series]
    step = max(1, math.ceil((len(labels) - 1) / (_LABELS - 1)))

    def paint(axes: Axes) -> None:
        full_height = axes.get_xaxis_transform()
        axes.vlines(list(marks), 0, 1, transform=full_height, color=QUIET, linewidth=1, linestyle=(0, (3, 3)))
        for colour, (label, values) in zip((FIRST, SECOND, LOST), shown, strict=False):
            axes.plot(range(len(labels)), values, color=colour, label=shortened(label, 24), marker=".", markersize=4)
        axes.set_xticks(range(0, len(labels), step), [shortened(label, 24) for label in labels[::step]])
        axes.yaxis.set_major_formatter(short_number)
        axes.margins(x=0.08)
        if len(shown) > 1:
            axes.legend(labelcolor=TEXT)

    return draw(name, title, 220, paint)


def short_number(value: float, _: float = 0) -> str:
    """Return a number as an axis shows it.

    Example:
        >>> short_number(72_700_000), short_number(1500), short_number(4.25)
        ('72.7 M', '1.5 k', '4.25')
    """
    power = next((power for power in (12, 9, 6, 3) if abs(value) >= 10**power), 0)
    unit = {12: " T", 9: " G", 6: " M", 3: " k", 0: ""}[power]
    return f"{value / 10**power:.4g}{unit}"


def shortened(text: str, length: int) -> str:
    r"""Return a text of at most so many characters, and nothing in it that is not printed.

    Example:
        >>> shortened("a\nb", 9), shortened("abcdef", 4)
        ('a\\nb', 'abc…')
    """
    printed = printable(text).replace("\n", "\\n").replace("\t", "\\t")
    return printed if len(printed) <= length else f"{printed[: length - 1]}…"
