"""The program of `cppmill report`: a finished run to one page that shows it, from the run's files alone.

The page grows with the vocabulary and with what is shown of each table, never with the documents.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pipelines import report_sections as sections
from pipelines import report_text
from pipelines.codec import load_tokenizer
from pipelines.pages import render_page
from pipelines.report_facts import Facts, read_facts
from schemas.errors import ConfigError, IntegrityError
from transforms.receipts import read_receipt
from transforms.storage import OutputFolder
from transforms.usage import Usage, read_usage


def write_report(run: str, page: Path, *, compare: Path | None = None, threads: int) -> str:
    """Write the page of a finished run.

    Args:
        run: The run's folder, or its URL.
        page: The HTML file to write.
        compare: Lines of JSON that `cppmill compare --json` printed.
        threads: Token shards that are read at once.

    Returns:
        What to print: a line with the figures.

    Raises:
        ConfigError: If there is no finished run, a file cannot stand there, or the comparison is none.
        IntegrityError: If the token shards are not what the receipt says of them.
    """
    _check_page(run, page)
    comparison = read_comparison(compare) if compare else []
    out = OutputFolder(run)
    receipt = read_receipt(out)
    if receipt is None:
        raise ConfigError(f"{run}: no receipt.json; give the folder of a finished run")
    shards = [shard["path"] for shard in receipt["dataset"]["shards"]]
    usage = read_usage(out, shards, receipt["tokenizer"]["vocab_size"], threads=threads)
    check_usage(usage, receipt, where=out.root)
    with out.open_local_folder("tokenizer") as directory:
        facts = read_facts(out, directory, load_tokenizer(directory, argument="OUT"), receipt, usage)
    html = render_report(facts, comparison, name=out.root.rstrip("/").rpartition("/")[2])
    page.write_text(html, encoding="utf-8")
    total = usage.total
    return (
        f"{page}: {len(html.encode()) / 1e6:.1f} MB; {total.documents:,} documents, {total.tokens:,} tokens, "
        f"{len(usage.projects):,} projects"
    )


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
        lengths=report_text.lengths(facts),
        text=report_text.text(facts),
        platforms=report_text.platforms(facts),
        speed=sections.speed(facts),
        decisions=sections.decisions(facts),
        findings=facts.findings,
        proof=sections.proof(facts),
        data=sections.data(facts),
    )


def read_comparison(file: Path) -> list[dict[str, Any]]:
    """Return what `cppmill compare --json` printed: a record of the text, then one a tokenizer.

    Raises:
        ConfigError: If the file is nothing of the kind.
    """
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
        records: list[dict[str, Any]] = [json.loads(line) for line in lines if line.strip()]
        kinds = [record["record"] for record in records]
        if kinds[:1] != ["text"] or set(kinds[1:]) != {"tokenizer"}:
            raise ValueError("not a record of a text, then one a tokenizer")
    except OSError as error:
        raise ConfigError(f"--compare {file}: cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"--compare {file}: not what `cppmill compare --json` prints ({error}); "
            f"write it with: cppmill compare … --json > {file}"
        ) from error
    return records


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


def _check_page(run: str, page: Path) -> None:
    if not page.parent.is_dir():
        raise ConfigError(f"--out {page}: there is no folder {page.parent}; make it, or name another")
    if page.is_dir():
        raise ConfigError(f"--out {page}: it is a folder; name a file in it")
    if page.resolve().is_relative_to(Path(run).resolve()):
        raise ConfigError(f"--out {page}: in the run's own folder, whose receipt names every file; name another folder")
