"""The ledger: every document and every byte that came in, and what became of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from schemas.errors import IntegrityError
from schemas.reasons import Column

LEFT_OUT = ("weight", "long")
"""Why a document is in no sequence: the weight of its project, or its length."""

_TOKENS_ADDED = ("tokens_rearranged", "tokens_of_cursors", "tokens_of_prefixes")


@dataclass(kw_only=True)
class Tally:
    """Counts of one quantity (documents or bytes) by ledger column and reason."""

    kept: int = 0
    empty: int = 0
    duplicate: int = 0
    filtered: dict[str, int] = field(default_factory=dict)
    dead: dict[str, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """The sum of all columns: what came in."""
        return self.kept + self.empty + self.duplicate + sum(self.filtered.values()) + sum(self.dead.values())

    def add(self, column: Column, reason: str, amount: int) -> None:
        """Count `amount` under `column`, and under `reason` where the column has reasons."""
        if column in (Column.FILTERED, Column.DEAD):
            reasons: dict[str, int] = getattr(self, column)
            reasons[reason] = reasons.get(reason, 0) + amount
        else:
            setattr(self, column, getattr(self, column) + amount)

    def entries(self) -> Iterator[tuple[Column, str, int]]:
        """Yield (column, reason, amount) for every column."""
        for column in (Column.KEPT, Column.EMPTY, Column.DUPLICATE):
            yield column, "", getattr(self, column)
        for column in (Column.FILTERED, Column.DEAD):
            for reason, amount in getattr(self, column).items():
                yield column, reason, amount

    def to_json(self) -> dict[str, Any]:
        """Return the tally as JSON with `in`, reasons sorted."""
        return {
            "in": self.total,
            "kept": self.kept,
            "empty": self.empty,
            "duplicate": self.duplicate,
            "filtered": dict(sorted(self.filtered.items())),
            "dead": dict(sorted(self.dead.items())),
        }

    @classmethod
    def of_columns(cls, value: Mapping[str, Any]) -> Tally:
        """Read the columns of a tally back, whatever it says came in."""
        return cls(
            kept=value["kept"],
            empty=value["empty"],
            duplicate=value["duplicate"],
            filtered=dict(value["filtered"]),
            dead=dict(value["dead"]),
        )

    @classmethod
    def from_json(cls, value: dict[str, Any], *, where: str) -> Tally:
        """Read a tally back.

        Raises:
            IntegrityError: If `in` is not the sum of the other columns.
        """
        tally = cls.of_columns(value)
        if tally.total != value["in"]:
            raise IntegrityError(
                f"{where}: the ledger does not balance: in is {value['in']}, its columns sum to {tally.total}"
            )
        return tally


@dataclass(kw_only=True)
class Ledger:
    """The tallies of documents and of bytes.

    Example:
        >>> ledger = Ledger()
        >>> ledger.add(Column.KEPT, "", num_bytes=10)
        >>> ledger.to_json()["documents"]["in"], ledger.to_json()["bytes"]["in"]
        (1, 10)
    """

    documents: Tally = field(default_factory=Tally)
    num_bytes: Tally = field(default_factory=Tally)

    def add(self, column: Column, reason: str, *, num_bytes: int, documents: int = 1) -> None:
        """Count documents and their bytes under a column and a reason."""
        self.documents.add(column, reason, documents)
        self.num_bytes.add(column, reason, num_bytes)

    def to_json(self) -> dict[str, Any]:
        """Return `{documents, bytes}`, each with `in` and the columns."""
        return {"documents": self.documents.to_json(), "bytes": self.num_bytes.to_json()}

    @classmethod
    def from_json(cls, value: dict[str, Any], *, where: str) -> Ledger:
        """Read a ledger back; raises IntegrityError if it does not balance."""
        return cls(
            documents=Tally.from_json(value["documents"], where=f"{where}, documents"),
            num_bytes=Tally.from_json(value["bytes"], where=f"{where}, bytes"),
        )

    @classmethod
    def sum(cls, ledgers: Iterable[Ledger]) -> Ledger:
        """Return the ledger of everything in `ledgers`."""
        total = cls()
        for ledger in ledgers:
            for column, reason, amount in ledger.documents.entries():
                total.documents.add(column, reason, amount)
            for column, reason, amount in ledger.num_bytes.entries():
                total.num_bytes.add(column, reason, amount)
        return total


def check_sequence_ledger(ledger: Mapping[str, int], *, where: str) -> None:
    """Raise IntegrityError, with the figures, if documents or tokens came in that are not accounted for."""
    for come, gone in (
        (("documents_in",), ("documents_in_sequences", *(f"documents_left_out_{why}" for why in LEFT_OUT))),
        (
            ("tokens_in", "tokens_repeated", "tokens_joined", *_TOKENS_ADDED),
            ("tokens_in_sequences", "tokens_cut", *(f"tokens_left_out_{why}" for why in LEFT_OUT)),
        ),
    ):
        if sum(ledger.get(name, 0) for name in come) != sum(ledger.get(name, 0) for name in gone):
            figures = ", ".join(f"{name} {ledger.get(name, 0):,}" for name in (*come, *gone))
            raise IntegrityError(f"{where}: the ledger of sequences does not balance: {figures}")
