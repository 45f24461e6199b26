"""The page of a store of versions: documents, tokens, compression, ledger and projects from version to version.

It is made from the small records that the store keeps of each version, removed ones too; no token shard is read. The
page shows the newest `transforms.records.trend.SHOWN_VERSIONS` versions, and of each a few names of projects.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from pipelines.pages import render_page
from pipelines.report import plots
from schemas.printing import count
from transforms.records.movers import COMPARED_VERSIONS, Mover
from transforms.records.trend import Trend, VersionFacts, ledger_columns

NAMED = 5
"""How many projects that came or went are named per version."""

PLOTTED_MOVERS = 6

_LONGEST_NAME = 60


def render_trend(
    trend: Trend, movers: Sequence[Mover], *, name: str, drift: Mapping[str, Mapping[str, Any]] | None = None
) -> str:
    """Return the page of the versions of a store.

    Args:
        trend: The versions.
        movers: The projects whose compression moved.
        name: What the store is called.
        drift: The records of drift by version; None if there are none.
    """
    return render_page(
        "trend.html.j2",
        title=name,
        trend=trend,
        last=trend.versions[-1],
        plots=_plots(trend.versions),
        ledger=_ledger(trend.versions),
        projects=[_projects(facts) for facts in reversed(trend.versions) if facts.projects is not None],
        movers=[_mover(mover) for mover in movers],
        mover_plots=[_plot_mover(place, mover) for place, mover in enumerate(movers[:PLOTTED_MOVERS])],
        compared=COMPARED_VERSIONS,
        drift=[_drift(version, record) for version, record in reversed(list((drift or {}).items()))],
    )


def describe(trend: Trend) -> str:
    """Return the figures to print: versions, and the documents and tokens of the last one."""
    last = trend.versions[-1]
    amounts = ((len(trend.versions), "version"), (last.documents, "document"), (last.tokens, "token"))
    return ", ".join(count(*amount) for amount in amounts)


def _plots(versions: Sequence[VersionFacts]) -> dict[str, Markup]:
    """Return the plots over all versions by their captions; what a version does not tell is a gap."""
    marks = [place for place, facts in enumerate(versions) if facts.is_other_tokenizer]

    def draw(name: str, caption: str, series: dict[str, Callable[[VersionFacts], float | None]]) -> Markup:
        labels = [facts.version for facts in versions]
        values = [(label, [value(facts) for facts in versions]) for label, value in series.items()]
        return plots.trend(name, f"{caption} by version", labels, values, marks=marks)

    return {
        "Documents": draw("documents", "Documents", {"documents": lambda facts: facts.documents}),
        "Bytes": draw("bytes", "Bytes", {"bytes": lambda facts: facts.num_bytes}),
        "Tokens": draw("tokens", "Tokens", {"tokens": lambda facts: facts.tokens}),
        "Bytes per token": draw("ratio", "Bytes per token", {"": lambda facts: facts.bytes_per_token}),
        "Documents that were left out, %": draw(
            "left-out",
            "Share of the documents that were left out",
            {
                "filtered": lambda facts: _share(facts, "filtered"),
                "duplicate": lambda facts: _share(facts, "duplicate"),
                "dead": lambda facts: _share(facts, "dead"),
            },
        ),
        "Projects": draw("projects", "Projects", {"": lambda facts: (facts.projects or {}).get("number")}),
    }


def _share(facts: VersionFacts, column: str) -> float | None:
    """Return the share of a ledger column in the documents that came in, in per cent."""
    if facts.ledger is None:
        return None
    found = facts.ledger["documents"][column]
    number = sum(found.values()) if isinstance(found, dict) else found
    return float(100 * number / (facts.ledger["documents"]["in"] or 1))


def _ledger(versions: Sequence[VersionFacts]) -> dict[str, Any] | None:
    """Return the ledgers as headings and rows, newest first; None if none is known."""
    known = [facts for facts in versions if facts.ledger is not None]
    columns = ledger_columns(known)
    rows = [
        (facts.version, [facts.count_in_ledger(column, reason) for column, reason in columns.values()])
        for facts in reversed(known)
    ]
    return {"columns": list(columns), "rows": rows} if known else None


def _projects(facts: VersionFacts) -> dict[str, Any]:
    """Return a version's number of projects, and in words which came and went."""
    found = facts.projects or {}
    words = {kind: _words(found[kind]) for kind in ("added", "removed")}
    return {"version": facts.version, "number": found["number"], **words}


def _drift(version: str, record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a version's row of the table of drift; None is what its record does not know."""
    row: dict[str, Any] = {"version": version, "alerts": [alert["message"] for alert in record["alerts"]]}
    for kind in ("before", "after", "new"):
        amount = record[kind] or {}
        row[kind], row[f"rare_{kind}"] = amount.get("bytes_per_token"), amount.get("rare_share")
    for what, found in (("died", record["ids"]["died"]), ("families", record["families"])):
        row[what] = found and found["number"]
    return row


def _words(changed: dict[str, Any] | None) -> str | None:
    """Return the names of the first projects and the number of the others; None if they are not known."""
    if changed is None:
        return None
    names = [plots.shortened(name, _LONGEST_NAME) for name in changed["named"][:NAMED]]
    more = changed["number"] - len(names)
    return ", ".join([*names, *([f"and {more:,} more"] if more else [])])


def _mover(mover: Mover) -> dict[str, Any]:
    first, *_, last = mover.ratios.values()
    name = plots.shortened(mover.project, _LONGEST_NAME)
    return {"project": name, "first": first, "last": last, "change": last - first, "tokens": mover.tokens}


def _plot_mover(place: int, mover: Mover) -> tuple[str, Markup]:
    name = plots.shortened(mover.project, _LONGEST_NAME)
    labels, values = list(mover.ratios), list(mover.ratios.values())
    return name, plots.trend(f"mover-{place}", f"Bytes per token of {name} by version", labels, [("", values)])
