"""The program of `cppmill report`: it shows a finished run, or a store of versions, on one page, from its files alone.

The page of a run grows with the vocabulary and with the rows shown of each table, never with the documents.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from configs.outputs import check_outside
from pipelines.pages import check_page, render_page, write_page
from pipelines.report import sections, text
from pipelines.report.facts import Facts, read_facts
from pipelines.report.left_out import RunFiles, render_left_out
from pipelines.report.shard_rows import render_rows
from pipelines.report.trend import describe, render_trend
from pipelines.tokenizers.codec import load_tokenizer
from pipelines.tokenizers.show import Palette
from schemas.digests import parse_json
from schemas.errors import ConfigError, IntegrityError
from schemas.files import read_regular
from schemas.places import is_remote
from schemas.printing import count
from tokenizer_build.artifact import MANIFEST_JSON
from transforms.drift.record import read_drift
from transforms.records.movers import find_movers
from transforms.records.platforms import platform_vocab_size
from transforms.records.receipts import (
    RECEIPT,
    check_named,
    find_intact_receipt,
    named_files,
    read_receipt,
    unchanged_receipt,
)
from transforms.records.trend import Trend, read_trend
from transforms.records.versions import Versions, find_run
from transforms.storage.folder import OutputFolder
from transforms.tokens.tokenizer import check_tokenizer
from transforms.tokens.usage import Usage, read_usage

_TEXT_ENTRIES = {"documents", "bytes", "digest", "projects"}
_TOKENIZER_ENTRIES = {
    "tokenizer",
    "vocab_size",
    "bytes_per_token",
    "lossy_documents",
    "megabytes_per_second",
    "projects",
}
"""The fields of each record of a comparison that the page shows."""


SHOWN_ROWS = 50
"""How many rows of a file are shown if nobody says."""


def write_report(run: str, page: Path, *, compare: Path | None = None, threads: int) -> str:
    """Write the page of a finished run, or of a store of versions.

    Args:
        run: The run's folder or the store, or its URL.
        page: The HTML file to write.
        compare: Lines of JSON that `cppmill compare --json` printed.
        threads: Token shards that are read at once.

    Returns:
        What to print: a line with the figures.

    Raises:
        ConfigError: If there is no finished run, the page cannot be written, or the file is not a comparison.
        IntegrityError: If the token shards differ from the receipt.
    """
    _check_page(run, page)
    if not OutputFolder(run).exists(RECEIPT) and Versions(run).names:
        return _write_trend(run, page, compare=compare)
    comparison = read_comparison(compare) if compare else []
    out = OutputFolder(run)
    with unchanged_receipt(out) as check_unchanged:
        receipt = read_receipt(out)
        usage = count_tokens(out, receipt, threads=threads)
        with out.open_local_folder("tokenizer") as directory:
            facts = read_facts(out, directory, load_tokenizer(directory, argument="RUN"), receipt, usage)
        html = render_report(facts, comparison, name=run_name(run))
        check_unchanged()
    written = write_page(html, page, option="--out")
    total = usage.total
    amounts = ((total.documents, "document"), (total.tokens, "token"), (len(usage.projects), "project"))
    return f"{written}; {', '.join(count(*amount) for amount in amounts)}"


def write_left_out(run: str, page: Path, *, against: str | None) -> str:
    """Write the page of what a run left out, or of what its filters change beside another run.

    Args:
        run: The run's folder, or its URL.
        page: The HTML file to write.
        against: Another run of the same sources.

    Returns:
        What to print: a line with the figures.

    Raises:
        ConfigError: If there is no finished run, or the page cannot be written.
        IntegrityError: If the rejects differ from the receipt.
    """
    places = [find_run(place) for place in (run, against) if place is not None]
    for place in places:
        _check_page(place, page)
    outs = list(map(OutputFolder, places))
    with ExitStack() as stack:
        checks = [stack.enter_context(unchanged_receipt(out)) for out in outs]
        runs = [RunFiles(out, read_receipt(out)) for out in outs]
        html, told = render_left_out(runs[0], runs[1] if against else None, names=list(map(run_name, places)))
        for check_unchanged in checks:
            check_unchanged()
    return f"{write_page(html, page, option='--out')}; {told}"


def write_rows(run: str, page: Path, *, shard: str, first: int, rows: int) -> str:
    """Write the page of rows of a Parquet file of a run or an export.

    Args:
        run: The folder, or its URL.
        page: The HTML file to write.
        shard: The file, relative to it.
        first: The first row, from 0.
        rows: How many.

    Returns:
        What to print: a line with the figures.

    Raises:
        ConfigError: If there is no such file or row, or the page cannot be written.
    """
    out = OutputFolder(find_run(run))
    _check_page(out.root, page)
    receipt = find_intact_receipt(out)
    if receipt is not None and shard in named_files(receipt):
        check_named(out, receipt, [shard])
    if not out.exists(f"tokenizer/{MANIFEST_JSON}"):
        html, told = render_rows(out, shard, first=first, rows=rows, palette=None)
    else:
        with out.open_local_folder("tokenizer") as directory:
            html, told = render_rows(out, shard, first=first, rows=rows, palette=Palette.read(directory))
    return f"{write_page(html, page, option='--out')}; {told}"


def _write_trend(store: str, page: Path, *, compare: Path | None) -> str:
    """Write the page of a store, and return what to print."""
    if compare is not None:
        raise ConfigError(f"--compare {compare}: {store} is a store of versions; it takes one run, {store}/current")
    trend = read_trend(store)
    html = render_trend(trend, find_movers(trend), name=run_name(store), drift=_read_drift(store, trend))
    return f"{write_page(html, page, option='--out')}; {describe(trend)}"


def _read_drift(store: str, trend: Trend) -> dict[str, dict[str, Any]]:
    """Return the records of drift of the versions that are shown."""
    versions = Versions(store)
    found = {facts.version: read_drift(versions, facts.version) for facts in trend.versions}
    return {version: record for version, record in found.items() if record is not None}


def default_page(run: str, kind: str = "report") -> Path:
    """Return the file of a page that nobody named: in the working folder, after the run and what it shows."""
    return Path(f"{run_name(run)}-{kind}.html")


def run_name(run: str) -> str:
    """Return what a run is called: the last part of its place."""
    return run.rstrip("/").rpartition("/")[2] if is_remote(run) else Path(run).resolve().name


def render_report(facts: Facts, comparison: Sequence[dict[str, Any]], *, name: str) -> str:
    """Return the page of what is known of a run.

    Args:
        facts: What is known.
        comparison: Records of a comparison, the text's first; none if there was none.
        name: What the run is called.
    """
    return render_page(
        "report.html.j2",
        title=name,
        receipt=facts.receipt,
        ledger=sections.ledger(facts),
        vocabulary=sections.vocabulary(facts),
        compression=sections.compression(facts),
        comparison=sections.comparison(facts, comparison),
        lengths=text.lengths(facts),
        text=text.text(facts),
        platforms=text.platforms(facts),
        speed=sections.speed(facts),
        decisions=sections.decisions(facts),
        findings=facts.findings,
        proof=sections.proof(facts),
        data=sections.data(facts),
    )


def read_comparison(file: Path) -> list[dict[str, Any]]:
    """Return what `cppmill compare --json` printed: a record of the text, then one per tokenizer.

    Raises:
        ConfigError: If the file is anything else.
    """
    try:
        lines = read_regular(file).decode("utf-8").splitlines()
        records: list[dict[str, Any]] = [parse_json(line) for line in lines if line.strip()]
        kinds = [record["record"] for record in records]
        if kinds[:1] != ["text"] or set(kinds[1:]) != {"tokenizer"}:
            raise ValueError("not a record of a text, then one per tokenizer")
        _check_entries(records)
    except OSError as error:
        raise ConfigError(f"--compare {file}: cannot be read: {error.strerror}") from error
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise ConfigError(
            f"--compare {file}: not what `cppmill compare --json` prints ({error}); "
            f"write it with: cppmill compare … --json > {file}"
        ) from error
    return records


def count_tokens(out: OutputFolder, receipt: dict[str, Any], *, threads: int) -> Usage:
    """Return what the token shards of a run hold, which is what its receipt says.

    Raises:
        IntegrityError: If they differ, or one is missing; or the tokenizer is not the one that the receipt names.
    """
    check_tokenizer(out, receipt)
    shards = [shard["path"] for shard in receipt["dataset"]["shards"]]
    check_named(out, receipt, shards)  # sums do not show which project, platform or id was counted
    sizes = receipt["tokenizer"]["vocab_size"], platform_vocab_size(receipt)
    usage = read_usage(out, shards, sizes[0], platforms=sizes[1], threads=threads)
    check_usage(usage, receipt, where=out.root)
    return usage


def check_usage(usage: Usage, receipt: dict[str, Any], *, where: str) -> None:
    """Compare what was counted in the token shards with the receipt.

    Raises:
        IntegrityError: If they differ.
    """
    total, said = usage.total, receipt["dataset"]
    for name, found in (
        ("documents", total.documents),
        ("bytes", total.num_bytes),
        ("tokens", total.tokens),
        ("tokens", int(usage.ids.sum())),
    ):
        if found != said[name]:
            raise IntegrityError(
                f"{where}: the receipt says {said[name]:,} {name}, the token shards have {found:,}; "
                "see `cppmill verify`, and run again"
            )


def _check_entries(records: Sequence[dict[str, Any]]) -> None:
    """Raise ValueError for the first entry that the page shows and a record does not have."""
    text, *made = records
    for record in records:
        names = _TEXT_ENTRIES if record is text else _TOKENIZER_ENTRIES
        missing = sorted(names - record.keys())
        if missing:
            raise ValueError(f"a record without {missing[0]!r}")
    for row in made:
        missing = sorted(text["projects"].keys() - row["projects"].keys())
        if missing:
            raise ValueError(f"no project {missing[0]!r} in the record of {row['tokenizer']}")


def _check_page(run: str, page: Path) -> None:
    check_outside(page, run, option="--out")
    check_page(page, option="--out")
