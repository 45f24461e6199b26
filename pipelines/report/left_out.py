"""The page of what a run left out, and of what its filters change beside another run of the same sources.

Of each reason: documents, bytes, sizes beside those of the documents that are kept, projects, and some documents. Which
ones are shown depends on their names alone, so two pages show the same. A run keeps the names of what it left out, and
no text; the text comes from the other run, which kept it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from markupsafe import Markup

from pipelines.pages import render_page
from pipelines.report import plots
from pipelines.report.plots import Bar
from pipelines.report.text import percent
from schemas.errors import ConfigError, IntegrityError
from schemas.ledger import Ledger
from schemas.printing import printable
from schemas.reasons import Column
from schemas.units import DOCUMENTS_PREFIX, REJECTS_PREFIX
from transforms.records.receipts import check_named, named_files
from transforms.storage.folder import OutputFolder

EXAMPLES, PROJECTS, PLOTTED = 8, 8, 6
"""How many documents and projects a reason shows, and how many reasons have a plot."""

EXCERPT_BYTES = 600

"""How the names of the files begin."""

_LEAST_POWER, _MOST_POWER = 4, 22
"""Sizes below and above are in the first and the last bar."""


class Example(NamedTuple):
    """A document that was left out: where its name falls among all, and what its row says."""

    order: int
    project: str
    path: str
    num_bytes: int
    detail: str


@dataclass
class Dropped:
    """What was left out for one reason; frames of rejects add up in any order."""

    documents: int = 0
    num_bytes: int = 0
    largest: int = 0
    projects: Counter[str] = field(default_factory=Counter)
    sizes: Counter[int] = field(default_factory=Counter)
    examples: list[Example] = field(default_factory=list)

    def add(self, rows: pd.DataFrame) -> None:
        """Add rows of rejects of this reason."""
        self.documents += len(rows)
        self.num_bytes += int(rows["num_bytes"].sum())
        self.largest = max(self.largest, int(rows["num_bytes"].max()))
        self.projects.update(rows["project"])
        self.sizes.update(_powers(rows["num_bytes"]))
        order = pd.util.hash_array(names_of(rows).to_numpy(object), categorize=False)
        first = rows.assign(order=order).nsmallest(EXAMPLES, "order")
        found = [Example(*row) for row in first[[*Example._fields]].itertuples(index=False)]
        self.examples = sorted([*self.examples, *found])[:EXAMPLES]


Reasons = dict[str, Dropped]


def names_of(rows: pd.DataFrame) -> pd.Series[str]:
    """Return the name of each document: its project and its path."""
    return rows["project"] + "\0" + rows["path"]


def _powers(sizes: pd.Series[int]) -> list[int]:
    """Return the bar of each size: the power of two that it does not exceed."""
    powers = np.ceil(np.log2(np.maximum(sizes.to_numpy(np.float64), 1)))
    return [int(power) for power in np.clip(powers, _LEAST_POWER, _MOST_POWER)]


def count_left_out(frames: Iterable[pd.DataFrame]) -> Reasons:
    """Return what rejects amount to by reason (`duplicate`, `filtered: secret`), most documents first."""
    found: Reasons = {}
    for frame in frames:
        for (column, reason), rows in frame.groupby(["column", "reason"]):
            found.setdefault(_label(str(column), str(reason)), Dropped()).add(rows)
    return dict(sorted(found.items(), key=lambda item: (-item[1].documents, item[0])))


def _label(column: str, reason: str) -> str:
    return f"{column}: {reason}" if reason else column


class RunFiles:
    """The documents and rejects of a finished run, read a batch of rows at a time.

    Args:
        out: Its folder.
        receipt: Its receipt.
    """

    def __init__(self, out: OutputFolder, receipt: Mapping[str, Any]) -> None:
        """Keep folder and receipt."""
        self.out, self.receipt = out, receipt
        self._names = sorted(named_files(dict(receipt)))

    def rejects(self) -> Iterator[pd.DataFrame]:
        """Yield the rows of what was left out."""
        yield from self._frames(REJECTS_PREFIX, None)

    def documents(self, *columns: str) -> Iterator[pd.DataFrame]:
        """Yield columns of the documents that were kept."""
        yield from self._frames(DOCUMENTS_PREFIX, columns)

    def kept_names(self) -> frozenset[str]:
        """Return the names of the documents that were kept."""
        return frozenset(name for rows in self.documents("project", "path") for name in names_of(rows))

    def excerpts(self, names: frozenset[str]) -> dict[str, str]:
        """Return how documents begin, by their names; only row groups that hold one of them are read whole."""
        found: dict[str, str] = {}
        for file in self._files(DOCUMENTS_PREFIX):
            for place in range(file.num_row_groups):
                keys = names_of(file.read_row_group(place, columns=["project", "path"]).to_pandas())
                wanted = [row for row, key in enumerate(keys) if key in names]
                if wanted:
                    texts = file.read_row_group(place, columns=["content"])["content"].take(wanted).to_pylist()
                    found |= {keys[row]: _excerpt(text or b"") for row, text in zip(wanted, texts, strict=True)}
        return found

    def check(self, reasons: Reasons) -> None:
        """Compare what was counted with the ledger.

        Raises:
            IntegrityError: If they differ.
        """
        ledger = Ledger.from_json(dict(self.receipt["ledger"]), where=self.out.root)
        for what, tally in (("documents", ledger.documents), ("num_bytes", ledger.num_bytes)):
            said = {_label(c, reason): amount for c, reason, amount in tally.entries() if c != Column.KEPT and amount}
            found = {label: getattr(dropped, what) for label, dropped in reasons.items() if getattr(dropped, what)}
            if said != found:
                raise IntegrityError(
                    f"{self.out.root}: the rejects have {what} {found}, the receipt says {said}; see `cppmill verify`"
                )

    def _frames(self, begin: str, columns: Sequence[str] | None) -> Iterator[pd.DataFrame]:
        for file in self._files(begin):
            for batch in file.iter_batches(columns=None if columns is None else list(columns)):
                yield batch.to_pandas()

    def _files(self, begin: str) -> Iterator[pq.ParquetFile]:
        """Yield the files whose names begin so.

        Raises:
            IntegrityError: If they are not those that the receipt names.
        """
        names = [name for name in self._names if name.startswith(begin)]
        check_named(self.out, self.receipt, names)
        for name in names:
            with self.out.open_ranges(name) as source, pq.ParquetFile(source) as file:
                yield file


def _excerpt(content: bytes) -> str:
    text = printable(content[:EXCERPT_BYTES].decode("utf-8", "backslashreplace"))
    return f"{text} …" if len(content) > EXCERPT_BYTES else text


def render_left_out(run: RunFiles, other: RunFiles | None, *, names: Sequence[str]) -> tuple[str, str]:
    """Return the page of what a run left out, and the figures to print.

    Args:
        run: The run.
        other: Another run of the same sources, to compare with; None for none.
        names: What the run is called, and the other one if there is one.

    Raises:
        ConfigError: If the other run is of other sources.
        IntegrityError: If the rejects are not what the receipt says.
    """
    kept = Counter(power for rows in run.documents("num_bytes") for power in _powers(rows["num_bytes"]))
    reasons = count_left_out(run.rejects())
    run.check(reasons)
    if other is None:
        sections = [_section("all", "What was left out", reasons, kept, {})]
        told = _figures(reasons, "left out")
    else:
        here, there = run.kept_names(), other.kept_names()
        only_here = count_left_out(_among(run.rejects(), there))
        only_there = count_left_out(_among(other.rejects(), here))
        if here and there and not (only_here or only_there or here & there):
            raise ConfigError(
                f"--against {other.out.root}: it has no project and path of {run.out.root}, neither kept nor left out; "
                "give a run of the same sources"
            )
        heading = f"Kept in {names[1]}, left out in {names[0]}", f"Kept in {names[0]}, left out in {names[1]}"
        sections = [
            _section("here", heading[0], only_here, kept, other.excerpts(_example_names(only_here))),
            _section("there", heading[1], only_there, kept, run.excerpts(_example_names(only_there))),
        ]
        told = f"{_figures(only_here, 'left out only in this run')}, "
        told += f"{_figures(only_there, 'left out only in the other')}, {len(here & there):,} kept in both"
    page = render_page(
        "left_out.html.j2",
        title=" and ".join(names),
        receipt=run.receipt,
        sections=sections,
        compared=other is not None,
    )
    return page, told


def _among(frames: Iterable[pd.DataFrame], names: frozenset[str]) -> Iterator[pd.DataFrame]:
    """Yield the rows whose names are among some."""
    for frame in frames:
        yield frame[[name in names for name in names_of(frame)]]


def _example_names(reasons: Reasons) -> frozenset[str]:
    return frozenset(f"{one.project}\0{one.path}" for dropped in reasons.values() for one in dropped.examples)


def _figures(reasons: Reasons, what: str) -> str:
    return f"{sum(dropped.documents for dropped in reasons.values()):,} documents {what}"


def _section(
    name: str, heading: str, reasons: Reasons, kept: Counter[int], excerpts: Mapping[str, str]
) -> dict[str, Any]:
    """Return a part of the page: plots of all reasons, then each."""
    amounts: dict[str, Callable[[Dropped], int]] = {"documents": lambda d: d.documents, "bytes": lambda d: d.num_bytes}
    drawn = {
        f"{unit.capitalize()} by reason": plots.bars(
            f"{name}-{unit}", f"{unit.capitalize()} by reason", _bars(reasons, amount)
        )
        for unit, amount in amounts.items()
    }
    return {
        "name": name,
        "heading": heading,
        "documents": sum(dropped.documents for dropped in reasons.values()),
        "bytes": sum(dropped.num_bytes for dropped in reasons.values()),
        "plots": drawn if reasons else {},
        "reasons": [
            _reason(f"{name}-{place}", label, dropped, kept if place < PLOTTED else None, excerpts)
            for place, (label, dropped) in enumerate(reasons.items())
        ],
    }


def _bars(reasons: Reasons, amount: Callable[[Dropped], int]) -> list[Bar]:
    whole = sum(map(amount, reasons.values()))
    return [
        Bar(label, amount(one), f"{amount(one):,} ({percent(amount(one), whole)})") for label, one in reasons.items()
    ]


def _reason(
    name: str, label: str, dropped: Dropped, kept: Counter[int] | None, excerpts: Mapping[str, str]
) -> dict[str, Any]:
    """Return what the page shows of a reason; sizes only beside those of the documents that are kept."""
    projects = [(plots.shortened(name, 60), number) for name, number in dropped.projects.most_common(PROJECTS)]
    return {
        "label": label,
        "documents": dropped.documents,
        "bytes": dropped.num_bytes,
        "mean": round(dropped.num_bytes / dropped.documents),
        "largest": dropped.largest,
        "projects": projects,
        "more_projects": max(0, len(dropped.projects) - PROJECTS),
        "sizes": None if kept is None else _draw_sizes(name, label, dropped.sizes, kept),
        "examples": [{**one._asdict(), "text": excerpts.get(f"{one.project}\0{one.path}")} for one in dropped.examples],
    }


def _draw_sizes(name: str, label: str, sizes: Counter[int], kept: Counter[int]) -> Markup:
    powers = range(_LEAST_POWER, _MOST_POWER + 1)
    labels = [_size_label(power) if power % 4 == 2 else "" for power in powers]
    series = [
        (what, [counted[power] / (counted.total() or 1) for power in powers])
        for what, counted in ((label, sizes), ("kept", kept))
    ]
    return plots.histogram(
        f"sizes-{name}", f"Sizes of documents: {label}", labels, series, "bytes of a document, up to"
    )


def _size_label(power: int) -> str:
    unit = power // 10
    return f"{1 << power - 10 * unit} {('B', 'KiB', 'MiB')[unit]}"
