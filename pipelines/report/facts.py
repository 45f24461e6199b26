"""What a report reads of a finished run besides its token shards: tokenizer, counts, decisions.

Of tables that grow with the corpus, only the first rows are kept. Whatever a run does not have is None and is not
shown; for example, a run with a given tokenizer has no counts.
"""

from __future__ import annotations

import io
from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
from cppmill_core import AnyTokenizer, PlatformVocab

from pipelines.console.stage_status import StageTime, read_stage_times
from tokenizer_build.compare.diff import Entry, read_ids
from tokenizer_build.compare.origins import bands_of
from tokenizer_build.decision_files import DECISIONS_PARQUET
from tokenizer_build.findings import FINDINGS_MD
from transforms.records.platforms import PLATFORM_VOCAB, read_platform_vocab
from transforms.records.receipts import check_named
from transforms.scan.tables import read_statistics
from transforms.storage.folder import OutputFolder
from transforms.tokens.usage import Usage

SHOWN_NAMESPACES = 16


@dataclass(frozen=True)
class Namespaces:
    """The namespaces that are referred to most, and how many references and namespaces there are in all."""

    rows: list[dict[Hashable, Any]]
    hits: int
    number: int


@dataclass(frozen=True)
class Facts:
    """All that a page is made of.

    Attributes:
        receipt: The run's receipt.
        usage: What the token shards hold.
        entries: Every id, in order.
        bands: The band of each id: its band in the vocabulary's files, or how it was learned.
        statistics: `counts/statistics.json`.
        namespaces: The head of `counts/namespaces.parquet`.
        decisions: `decisions.parquet`.
        findings: `findings.md`.
        stages: How fast the stages were; none if it is not known.
        platforms: The labels of the platform ids; None for a run of old that had another vocabulary of them.
    """

    receipt: dict[str, Any]
    usage: Usage
    entries: tuple[Entry, ...]
    bands: tuple[str, ...]
    statistics: dict[str, Any] | None
    namespaces: Namespaces | None
    decisions: pd.DataFrame | None
    findings: str | None
    stages: list[StageTime]
    platforms: PlatformVocab | None


_SHOWN_FILES = (
    "counts/statistics.json",
    "counts/namespaces.parquet",
    f"tokenizer/{DECISIONS_PARQUET}",
    f"tokenizer/{FINDINGS_MD}",
    PLATFORM_VOCAB,
)
"""What is shown besides receipt, tokenizer and token shards, as far as a run has it."""


def read_facts(
    out: OutputFolder,
    directory: Path,
    tokenizer: AnyTokenizer,
    receipt: dict[str, Any],
    usage: Usage,
) -> Facts:
    """Read what a report needs of a run.

    Args:
        out: The run's folder.
        directory: Its tokenizer directory, local.
        tokenizer: The same, loaded.
        receipt: Its receipt.
        usage: What its token shards hold.

    Raises:
        IntegrityError: If a file that is shown is not the one that the receipt names.
    """
    check_named(out, receipt, (name for name in _SHOWN_FILES if name in receipt["files"]))
    entries = read_ids(directory, tokenizer).entries
    decisions, findings = directory / DECISIONS_PARQUET, directory / FINDINGS_MD
    counted = "counts/statistics.json" in receipt["files"]
    return Facts(
        receipt=receipt,
        usage=usage,
        entries=entries,
        bands=bands_of(directory, entries),
        statistics=read_statistics(out) if counted else None,
        namespaces=_read_namespaces(out) if counted else None,
        decisions=pd.read_parquet(io.BytesIO(decisions.read_bytes())) if decisions.is_file() else None,
        findings=findings.read_text(encoding="utf-8") if findings.is_file() else None,
        stages=read_stage_times(out),
        platforms=read_platform_vocab(out, receipt),
    )


def _read_namespaces(out: OutputFolder) -> Namespaces:
    """Read the namespaces a row group at a time, and keep those with the most hits."""
    head, hits, number = pd.DataFrame(), 0, 0
    with out.open_ranges("counts/namespaces.parquet") as source, pq.ParquetFile(source) as file:
        for place in range(file.num_row_groups):
            rows = file.read_row_group(place).to_pandas()
            hits, number = hits + int(rows["hits"].sum()), number + len(rows)
            most = pd.concat([head, rows]).sort_values(["hits", "namespace"], ascending=[False, True])
            head = most.head(SHOWN_NAMESPACES)
    return Namespaces(head.to_dict("records"), hits, number)
