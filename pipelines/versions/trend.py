"""The trend of a store of versions: what is recorded when a version is finished, and the tables of `cppmill changes`.

What each project has in a version is summed from three columns of the token shards that it does not share with the
version before. Only for the first version, and where nothing was recorded of the one before, all shards are read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.console.events import log_names, read_events
from pipelines.console.tables import align
from pipelines.versions.changes import FinishedRun
from schemas.errors import IntegrityError
from schemas.printing import one_line
from transforms.records.movers import Mover, find_movers
from transforms.records.receipts import check_named, find_altered
from transforms.records.trend import (
    NAMED_PROJECTS,
    Trend,
    VersionFacts,
    facts_of,
    find_facts,
    find_sums,
    ledger_columns,
    read_trend,
    record_facts,
)
from transforms.records.versions import Versions
from transforms.tokens.project_sums import add_project_sums, read_project_sums

_UNKNOWN = "-"


def record_version(
    versions: Versions, name: str, changes: Mapping[str, Any], before: FinishedRun | None, after: FinishedRun
) -> None:
    """Record what a version holds, before it becomes the current one; the version before too if it has no record.

    Args:
        versions: The store.
        name: The version.
        changes: What it changed.
        before: The run of the version before; None for the first.
        after: Its run.
    """
    previous = changes["previous"]
    old = None if before is None else _sums_before(versions, previous, before)
    new = _next_sums(old, before, after)
    time = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    facts = facts_of(after.receipt, version=name, previous=previous, changes=changes, time=time)
    record_facts(versions, replace(facts, projects=compare_projects(old, new)), new)


def _sums_before(versions: Versions, name: str, run: FinishedRun) -> pa.Table | None:
    """Return what each project has in the version before; count and record it if nothing was.

    None if token shards of it are damaged: the version that follows replaces it.
    """
    facts, sums = find_facts(versions, name), find_sums(versions, name)
    if facts is not None and facts.projects is not None and sums is not None and _is_whole(sums, run):
        return sums
    try:
        sums = _count(run)
    except IntegrityError:
        return None
    facts = facts or facts_of(run.receipt, version=name, previous=None, changes=None)
    projects = facts.projects or {"number": sums.num_rows, "added": None, "removed": None}
    record_facts(versions, replace(facts, time=facts.time or _time_of(run), projects=projects), sums)
    return sums


def _time_of(run: FinishedRun) -> str | None:
    """Return when a run ended, as its last event log says; None if there is none."""
    names = log_names(run.out)
    events = read_events(run.out, names[-1]) if names else []
    return str(events[-1]["time"]) if events else None


def _next_sums(old: pa.Table | None, before: FinishedRun | None, after: FinishedRun) -> pa.Table:
    """Return what each project has in a run, from the shards that the run before does not have, and those it lost."""
    if old is None or before is None:
        return _count(after)
    gone, come = before.shards, after.shards
    went = [gone[digest] for digest in gone.keys() - come.keys()]
    if any(find_altered(before.out, before.receipt, went)):
        return _count(after)
    lost = read_project_sums(before.out, went)
    made = read_project_sums(after.out, [come[digest] for digest in come.keys() - gone.keys()])
    sums = add_project_sums([old, made], without=lost)
    return sums if _is_whole(sums, after) else _count(after)


def _count(run: FinishedRun) -> pa.Table:
    """Return what each project has, from all token shards.

    Raises:
        IntegrityError: If they differ from the receipt.
    """
    check_named(run.out, run.receipt, list(run.shards.values()))
    sums = read_project_sums(run.out, run.shards.values())
    if not _is_whole(sums, run):
        raise IntegrityError(f"{run.out.root}: the token shards differ from the receipt; see `cppmill verify`")
    return sums


def _is_whole(sums: pa.Table, run: FinishedRun) -> bool:
    """Tell whether the sums of all projects are the totals of the receipt."""
    names = {"documents": "documents", "num_bytes": "bytes", "num_tokens": "tokens"}
    return all((pc.sum(sums[name]).as_py() or 0) == run.receipt["dataset"][said] for name, said in names.items())


def compare_projects(old: pa.Table | None, new: pa.Table) -> dict[str, Any]:
    """Return how many projects there are, and which came and went; the latter is not known of the first version."""
    if old is None:
        return {"number": new.num_rows, "added": None, "removed": None}
    return {"number": new.num_rows, "added": _lacking(new, old), "removed": _lacking(old, new)}


def _lacking(one: pa.Table, other: pa.Table) -> dict[str, Any]:
    """Return the projects that one table has and the other lacks: their number, and the first names."""
    found = one.filter(pc.invert(pc.is_in(one["project"], other["project"])))["project"]
    return {"number": len(found), "named": found.slice(0, NAMED_PROJECTS).to_pylist()}


def print_trend(store: str, *, as_json: bool) -> None:
    """Print the versions of a store, then the projects whose compression moved: tables, or a JSON object per line."""
    trend = read_trend(store)
    movers = find_movers(trend)
    lines = map(json.dumps, trend_records(trend, movers)) if as_json else describe_trend(trend, movers)
    for line in lines:
        print(line)


def trend_records(trend: Trend, movers: Sequence[Mover]) -> Iterator[dict[str, Any]]:
    """Yield a record of each version, then of each project whose compression moved."""
    for facts in trend.versions:
        state = {"is_current": facts.version == trend.current, "is_kept": facts.version in trend.kept}
        yield {"record": "version", **facts.to_json(), "bytes_per_token": facts.bytes_per_token, **state}
    for mover in movers:
        yield {"record": "project", "project": mover.project, "tokens": mover.tokens, "bytes_per_token": mover.ratios}


def describe_trend(trend: Trend, movers: Sequence[Mover]) -> Iterator[str]:
    """Yield the lines of the tables: totals, ledger, projects that came and went, projects that moved."""
    if trend.older:
        yield f"the newest {len(trend.versions):,} versions; {trend.older:,} older ones are not shown"
    yield from align([_HEADINGS, *map(_totals, trend.versions)])
    if any(facts.is_other_tokenizer for facts in trend.versions):
        yield "* another tokenizer than the version before"
    known = [facts for facts in trend.versions if facts.ledger is not None]
    if known:
        columns = ledger_columns(known)
        yield from ("", "documents by what became of them")
        yield from align([["version", *columns], *([facts.version, *_ledger(facts, columns)] for facts in known)])
    yield from _came_and_went(trend.versions)
    if movers:
        yield from _moved(movers)


_HEADINGS = [
    *("version", "finished", "documents", "bytes", "tokens", "bytes per token", "projects", "added", "removed"),
    "tokenizer",
]


def _totals(facts: VersionFacts) -> list[str]:
    """Return a row of the first table."""
    ratio, projects = facts.bytes_per_token, facts.projects or {}
    changed = [projects.get(kind) for kind in ("added", "removed")]
    return [
        facts.version,
        (facts.time or _UNKNOWN)[:10],
        *(f"{number:,}" for number in (facts.documents, facts.num_bytes, facts.tokens)),
        _UNKNOWN if ratio is None else f"{ratio:.3f}",
        f"{projects['number']:,}" if projects else _UNKNOWN,
        *(_UNKNOWN if kind is None else f"{kind['number']:,}" for kind in changed),
        f"{'*' if facts.is_other_tokenizer else ''}{facts.tokenizer[:12]}",
    ]


def _ledger(facts: VersionFacts, columns: Mapping[str, tuple[str, str]]) -> Iterator[str]:
    for column, reason in columns.values():
        yield f"{facts.count_in_ledger(column, reason):,}"


def _came_and_went(shown: Sequence[VersionFacts]) -> Iterator[str]:
    """Yield a line for each version with projects that came or went."""
    lines = []
    for facts in shown:
        for kind in ("added", "removed"):
            changed = (facts.projects or {}).get(kind)
            if changed and changed["number"]:
                more = changed["number"] - len(changed["named"])
                names = [*changed["named"], *([f"and {more:,} more"] if more else [])]
                lines.append(f"{facts.version}  {kind:7}  {', '.join(map(one_line, names))}")
    if lines:
        yield from ("", "projects that came and went", *lines)


def _moved(movers: Sequence[Mover]) -> Iterator[str]:
    """Yield the table of the projects whose compression moved."""
    names = list(movers[0].ratios)
    yield from ("", "bytes per token of the projects where compression changed the number of tokens most")
    rows = [[mover.project, *_ends(mover), f"{mover.tokens:+,}"] for mover in movers]
    yield from align([["project", names[0], names[-1], "tokens"], *rows])


def _ends(mover: Mover) -> list[str]:
    ratios = list(mover.ratios.values())
    return [f"{ratios[0]:.3f}", f"{ratios[-1]:.3f}"]
