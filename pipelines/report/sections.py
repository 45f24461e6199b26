"""The sections of a report: what is known of a run as the values and plots that the page shows.

Each function returns the values of one section, or None if the run has no data for it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from pipelines.console.progress import MEGABYTE
from pipelines.report import plots
from pipelines.report.facts import Facts
from pipelines.report.plots import Bar, Stream
from pipelines.report.text import percent
from pipelines.report.vocabulary_map import COLOURS, draw_map
from schemas.printing import count
from schemas.reasons import Column
from tokenizer_build.bands import Strength
from tokenizer_build.compare.origins import RESERVED
from tokenizer_build.decision_files import KEPT
from tokenizer_build.decisions import Rule
from transforms.tokens.losses import LOST
from transforms.tokens.usage import ProjectUsage

SHOWN_PROJECTS = 500
PLOTTED_PROJECTS = 12
_SHARES = (0.5, 0.9, 0.99, 0.999)

RULES: dict[str, str] = {
    Rule.USED: "frequent enough for an id, and in too few documents to be a generic word",
    Rule.DISTINCTIVE: "in many documents, but with a shape that generic text does not have, such as capitals",
    Rule.COMPOUND: "in many documents, but made of several words",
    Rule.RARE: "too few hits",
    Rule.GENERIC: "a generic word: in many documents, and without a distinctive shape",
    Rule.COMMON: "a common word: in many projects, and without a distinctive shape",
    Rule.CATEGORY: "cut with the rest of its category, which has too few hits or projects",
    Rule.OTHER_CATEGORY: "another category keeps it",
    Rule.OTHER_POSITION: "the morpheme is frequent in another position",
    Rule.OTHER_BAND: "its id is in a band whose tokens are always kept",
    Rule.MORPHEME: "a morpheme, which this profile always keeps",
    Rule.LOCKED: "a release pinned it (`ids.lock`)",
    Rule.KEEP: "its vocabulary file says keep = true",
    Rule.UNNEEDED: "less frequent in the text than the last learned token",
}
"""What each rule means."""


def ledger(facts: Facts) -> dict[str, Any]:
    """Return what came in and what became of it, as rows and as flows of documents and of bytes; and what is lost."""
    documents, sizes = facts.receipt["ledger"]["documents"], facts.receipt["ledger"]["bytes"]
    rows = []
    for column in Column:
        split = column in (Column.FILTERED, Column.DEAD)
        for reason in documents[column] if split else [None]:
            path = f"{column}.{reason}" if split else str(column)
            found = [side[column][reason] if split else side[column] for side in (documents, sizes)]
            label = f"{column}: {reason}" if split else str(column)
            rows.append({"label": label, "path": path, "documents": found[0], "bytes": found[1]})
    lost = facts.receipt["ledger"].get(LOST, {"documents": {}, "bytes": {}})
    return {
        "rows": rows,
        "lost": [
            {"label": f"kept, but text is lost: {reason}", "reason": reason, "documents": n, "bytes": size}
            for (reason, n), size in zip(lost["documents"].items(), lost["bytes"].values(), strict=True)
        ],
        "flows": [
            _flow(f"flow-{unit}", unit, side["in"], rows) for unit, side in (("documents", documents), ("bytes", sizes))
        ],
    }


def _flow(name: str, unit: str, whole: int, rows: Sequence[dict[str, Any]]) -> Markup:
    streams = [
        Stream(row["label"], row[unit], f"{row[unit]:,} ({percent(row[unit], whole)})", row["label"] == Column.KEPT)
        for row in rows
        if row[unit]
    ]
    return plots.flow(name, f"What became of the {unit}", f"{count(whole, unit.removesuffix('s'))} in", streams)


def vocabulary(facts: Facts) -> dict[str, Any]:
    """Return the map of the ids, the bands with what is used of them, and how few ids cover most of the text."""
    ids = pd.DataFrame({"band": facts.bands, "count": facts.usage.ids, "used": facts.usage.ids > 0})
    bands = ids.groupby("band").agg(ids=("used", "size"), used=("used", "sum"), tokens=("count", "sum"))
    bands = bands.reindex([band for band in COLOURS if band in bands.index]).reset_index()
    bands = bands.assign(unused=bands["ids"] - bands["used"], share=bands["tokens"] / (bands["tokens"].sum() or 1))
    rows = bands.to_dict("records")
    usable = [row for row in rows if row["band"] != RESERVED]
    return {
        "map": draw_map(facts.usage.ids, facts.bands),
        "colours": COLOURS,
        "rows": rows,
        "usable": sum(row["ids"] for row in usable),
        "used": sum(row["used"] for row in usable),
        **_coverage(facts),
    }


def _coverage(facts: Facts) -> dict[str, Any]:
    ordered = np.sort(facts.usage.ids)[::-1]
    shares = np.cumsum(ordered) / (ordered.sum() or 1)
    places = np.unique(np.geomspace(1, len(ordered), 120).astype(int))
    reached = [(share, int(np.searchsorted(shares, share) + 1)) for share in _SHARES if ordered.any()]
    return {
        "summary": ", ".join(f"{share:.1%} by {ids:,}" for share, ids in reached).replace(".0%", "%"),
        "curve": plots.curve(
            "coverage",
            "Share of the tokens that the most frequent ids cover",
            places.tolist(),
            shares[places - 1].tolist(),
            "ids, the most frequent first",
        ),
    }


def compression(facts: Facts) -> dict[str, Any]:
    """Return the projects, the largest first, and a plot of the bytes per token of some."""
    ordered = _largest_projects(facts)
    shown, rest = ordered[:SHOWN_PROJECTS], ProjectUsage()
    for _, project in ordered[SHOWN_PROJECTS:]:
        rest.add(project)
    bars = [
        Bar(name, ratio, f"{ratio:.2f}")
        for name, project in shown[:PLOTTED_PROJECTS]
        if (ratio := _bytes_a_token(project)) is not None
    ]
    return {
        "projects": len(ordered),
        "rest": len(ordered) - len(shown),
        "rest_usage": rest,
        "rest_ratio": _bytes_a_token(rest),
        "ratio": _bytes_a_token(facts.usage.total),
        "plot": plots.bars("projects", "Bytes per token of the largest projects", bars),
        "plotted": len(bars),
    }


def comparison(facts: Facts, records: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """Return what was measured of several tokenizers on one text, which may be the run's own."""
    if not records:
        return None
    text, *made = records
    projects = sorted(text["projects"], key=lambda name: (-text["projects"][name], name))
    bars = [Bar(row["tokenizer"], row["bytes_per_token"] or 0, f"{row['bytes_per_token'] or 0:.3f}") for row in made]
    return {
        "text": text,
        "same": text["digest"] == facts.receipt["corpus"]["digest"],
        "tokenizers": made,
        "projects": projects[:PLOTTED_PROJECTS],
        "rest": len(projects[PLOTTED_PROJECTS:]),
        "plot": plots.bars("comparison", "Bytes per token of each tokenizer", bars),
    }


def speed(facts: Facts) -> dict[str, Any] | None:
    """Return how fast each stage was when it last did something; None if nothing is known."""
    if not facts.stages:
        return None
    speeds = [(stage.name, stage.num_bytes / stage.seconds / MEGABYTE) for stage in facts.stages]
    bars = [Bar(name, speed, f"{speed:,.1f} MB/s") for name, speed in speeds]
    return {"stages": facts.stages, "plot": plots.bars("speed", "Megabytes per second of each stage", bars)}


def decisions(facts: Facts) -> dict[str, Any] | None:
    """Return how many candidates were kept and cut by which rule."""
    if facts.decisions is None:
        return None
    rules = facts.decisions.groupby(["decision", "rule"], sort=False).size().reset_index(name="number")
    rules = rules.assign(cut=rules["decision"] != KEPT, why=rules["rule"].map(RULES).fillna(""))
    return {
        "number": len(facts.decisions),
        "counted": _what_was_counted(facts),
        "rules": rules.sort_values(["cut", "number"], ascending=[True, False], kind="stable").to_dict("records"),
    }


def _what_was_counted(facts: Facts) -> str | None:
    """Return what the build of a given tokenizer counted, which is another corpus than the run's; else None."""
    if facts.statistics is not None:
        return None
    return (facts.findings or "").partition("\n")[0].removesuffix(".").replace("Scanned ", "", 1) or "another corpus"


def proof(facts: Facts) -> dict[str, Any]:
    """Return the receipt as the page shows it: all of it, with the number of files instead of their names."""
    receipt = facts.receipt
    shards = sorted(shard["tokens"] for shard in receipt["dataset"]["shards"])
    short = {
        **receipt,
        "dataset": {**receipt["dataset"], "shards": count(len(shards), "shard")},
        "files": count(len(receipt["files"]), "file"),
    }
    return {
        "shards": len(shards),
        "files": len(receipt["files"]),
        "shard_tokens": [shards[0], shards[len(shards) // 2], shards[-1]] if shards else None,
        "json": json.dumps(short, indent=1, ensure_ascii=False),
    }


def data(facts: Facts) -> dict[str, Any]:
    """Return what the tables show that the page sorts and searches; the vocabulary by columns, as it is long."""
    bands, strengths = list(dict.fromkeys(facts.bands)), list(Strength)
    found: dict[str, Any] = {
        "bands": bands,
        "strengths": strengths,
        "colours": {band: COLOURS[band] for band in bands},
        "vocabulary": {
            "tokens": [str(entry) for entry in facts.entries],
            "bands": list(map(bands.index, facts.bands)),
            "strengths": [strengths.index(entry.strength) for entry in facts.entries],
            "counts": facts.usage.ids.tolist(),
        },
        "projects": [
            [name, one.documents, one.num_bytes, one.tokens, round(_bytes_a_token(one) or 0, 3)]
            for name, one in _largest_projects(facts)[:SHOWN_PROJECTS]
        ],
    }
    if facts.decisions is not None:
        columns = ["token", "id", "category", "decision", "rule", "hits", "documents", "projects", "document_share"]
        found["decisions"] = facts.decisions[columns].to_numpy().tolist()
    return found


def _largest_projects(facts: Facts) -> list[tuple[str, ProjectUsage]]:
    return sorted(facts.usage.projects.items(), key=lambda item: (-item[1].num_bytes, item[0]))


def _bytes_a_token(usage: ProjectUsage) -> float | None:
    return usage.num_bytes / usage.tokens if usage.tokens else None
