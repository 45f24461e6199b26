"""Writes the decisions: `decisions.parquet` for programs, `decisions.txt` for people.

Both have a row for each candidate and category, then one for each morpheme and position, with its numbers and the rule.
They are not part of the tokenizer's digest, because counts may differ while the tokenizer is the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.errors import ConfigError
from tokenizer_build.decisions import Decision

DECISIONS_PARQUET = "decisions.parquet"
DECISIONS_TXT = "decisions.txt"

KEPT, CUT = "kept", "cut"

_COLUMNS = {
    "token": pa.string(),
    "id": pa.uint32(),
    "category": pa.string(),
    "hits": pa.uint64(),
    "documents": pa.uint64(),
    "projects": pa.uint64(),
    "document_share": pa.float64(),
    "shape": pa.string(),
    "decision": pa.string(),
    "rule": pa.string(),
}
DECISIONS = pa.schema([pa.field(name, kind, nullable=False) for name, kind in _COLUMNS.items()])
"""`decisions.parquet`: one row per candidate and category, then one per morpheme and position (`morpheme:suffix`)."""


def write_decisions(decisions: Iterable[Decision], morphemes: Iterable[Decision], out: Path) -> None:
    """Write the candidates, then the morphemes, in both forms.

    Args:
        decisions: What `decide` returned.
        morphemes: What `decide_morphemes` returned.
        out: An existing folder.
    """
    rows = decision_rows(decisions, morphemes)
    pq.write_table(pa.Table.from_pylist(rows, schema=DECISIONS), out / DECISIONS_PARQUET, compression="zstd")
    (out / DECISIONS_TXT).write_text("".join(decision_lines(rows)), encoding="utf-8", newline="")


def read_kept(folder: Path) -> set[str]:
    """Return the tokens that the decisions beside a tokenizer keep; none if there are no decisions.

    Raises:
        ConfigError: If there is no such table in the file.
    """
    path = folder / DECISIONS_PARQUET
    if not path.is_file():
        return set()
    try:
        rows = pq.read_table(path, columns=["token", "decision"], partitioning=None)
    except (pa.ArrowException, OSError) as error:
        raise ConfigError(f"{path}: cannot be read ({error}); restore it, or build again") from error
    columns: list[list[Any]] = [rows.column(name).to_pylist() for name in ("token", "decision")]
    return {token for token, decision in zip(*columns, strict=True) if decision == KEPT}


def decision_rows(decisions: Iterable[Decision], morphemes: Iterable[Decision]) -> list[dict[str, Any]]:
    """Return the rows of the table: the candidates, then the morphemes."""
    return [_row(decision) for decision in (*decisions, *morphemes)]


def _row(decision: Decision) -> dict[str, Any]:
    return {
        "token": decision.token,
        "id": decision.id,
        "category": decision.category,
        **vars(decision.counts),
        "document_share": decision.document_share,
        "shape": decision.shape.value,
        "decision": KEPT if decision.kept else CUT,
        "rule": decision.rule.value,
    }


def decision_lines(rows: Sequence[dict[str, Any]]) -> Iterable[str]:
    """Yield the lines of an aligned table; a share is in per cent."""
    shown = [[name if name != "document_share" else "share" for name in _COLUMNS], *map(_shown, rows)]
    widths = [max(len(line[column]) for line in shown) for column in range(len(_COLUMNS))]
    for line in shown:
        cells = (_padded(text, width, name) for text, width, name in zip(line, widths, _COLUMNS, strict=True))
        yield "  ".join(cells).rstrip() + "\n"


def _padded(text: str, width: int, column: str) -> str:
    return text.ljust(width) if _COLUMNS[column] == pa.string() else text.rjust(width)


def _shown(row: dict[str, Any]) -> list[str]:
    return [f"{value:.3%}" if name == "document_share" else str(value) for name, value in row.items()]
