"""The trend of a store of versions: what each version held, in two small files that stay when the version is removed.

    STORE/trend/v000002.json       totals, ledger, tokenizer, and which projects came and went
    STORE/trend/v000002.parquet    documents, bytes and tokens of each project

They are written when a version is finished. Of a version without them, which an older program made, the receipt or
`STORE/changes` gives what it can; neither says anything about projects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.digests import sha256_file
from schemas.errors import ConfigError, IntegrityError
from schemas.reasons import REASONS, Column
from schemas.tables import PROJECT_SUMS
from transforms.records.receipts import LEDGER_FORM, find_intact_receipt
from transforms.records.versions import TREND, Versions

TREND_FORMAT = "cppmill-trend-1"
SUMS = "sums"
"""The key of the SHA-256 of the projects' file; records of older versions lack it."""

_SOME_PROJECTS = (None, {"number": int, "named": [str]})
TREND_FORM: dict[str, Any] = {
    **dict.fromkeys(("version", "receipt", "tokenizer"), str),
    **dict.fromkeys(("documents", "bytes", "tokens"), int),
    **dict.fromkeys(("previous", "time"), (None, str)),
    "is_other_tokenizer": bool,
    "ledger": (None, LEDGER_FORM),
    "projects": (None, {"number": int, "added": _SOME_PROJECTS, "removed": _SOME_PROJECTS}),
}
"""What every record has, which commands read without looking whether it is there."""

SHOWN_VERSIONS = 200
"""How many versions a trend has at most: the newest."""

NAMED_PROJECTS = 20
"""How many projects that came or went are named per version."""


@dataclass(frozen=True, kw_only=True)
class VersionFacts:
    """What is known of a version.

    Attributes:
        version: Its name.
        previous: The version that it followed; None for the first, and if it is not known.
        time: When it was finished, in UTC; None if it is not known.
        receipt: The digest of its receipt.
        documents, num_bytes, tokens: Of the dataset.
        tokenizer: The tokenizer's digest.
        is_other_tokenizer: Whether the version before had another tokenizer.
        ledger: The receipt's ledger; None if it is not known.
        projects: `number`, and in `added` and `removed`, since the version before, `number` and `named`; None if not
            known.
    """

    version: str
    previous: str | None
    time: str | None
    receipt: str
    documents: int
    num_bytes: int
    tokens: int
    tokenizer: str
    is_other_tokenizer: bool
    ledger: Mapping[str, Any] | None
    projects: Mapping[str, Any] | None

    @property
    def bytes_per_token(self) -> float | None:
        """Its compression; None without tokens."""
        return self.num_bytes / self.tokens if self.tokens else None

    def count_in_ledger(self, column: str, reason: str = "", *, unit: str = "documents") -> int:
        """Return the documents, or the bytes, of a column of its ledger: those with a reason if the column splits."""
        found = {} if self.ledger is None else self.ledger[unit][column]
        return int(found.get(reason, 0) if isinstance(found, Mapping) else found)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        names = {"num_bytes": "bytes"}
        return {names.get(name, name): value for name, value in vars(self).items()}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> VersionFacts:
        """Read it back; other keys are ignored."""
        names = {"num_bytes": "bytes"}
        return cls(**{name: value[names.get(name, name)] for name in cls.__dataclass_fields__})


@dataclass(frozen=True, kw_only=True)
class Trend:
    """The versions of a store over time.

    Attributes:
        store: Its place.
        versions: The newest, at most `SHOWN_VERSIONS`, oldest first.
        older: How many more there are.
        current: The name of the current version.
        kept: The names of the finished versions that were not removed.
    """

    store: str
    versions: Sequence[VersionFacts]
    older: int
    current: str | None
    kept: frozenset[str]


def ledger_columns(versions: Sequence[VersionFacts]) -> dict[str, tuple[str, str]]:
    """Return what a table of ledgers needs: heading to column and reason, with the reasons that any version has."""
    columns = {name: (name, "") for name in ("in", Column.KEPT, Column.EMPTY, Column.DUPLICATE)}
    for column, reasons in REASONS.items():
        found = {reason for facts in versions if facts.ledger for reason in facts.ledger["documents"][column]}
        columns |= {f"{column}: {reason}": (column, reason) for reason in reasons if reason in found}
    return columns


def record_facts(versions: Versions, facts: VersionFacts, sums: pa.Table) -> None:
    """Write the two files of a version, the one with the totals last."""
    file = versions.folder.publish(f"{TREND}/{facts.version}.parquet", partial(_write_sums, sums=sums))
    versions.write_record(TREND, facts.version, {"format": TREND_FORMAT, **facts.to_json(), SUMS: file.sha256})


def read_trend(place: str) -> Trend:
    """Return the trend of a store; one small file is read per version, and a receipt where there is no such file.

    Raises:
        ConfigError: If it is not a store with a finished version.
        IntegrityError: If a file is not of this format.
    """
    versions = Versions(place)
    current, building, kept = versions.current, versions.building, versions.names
    names = [name for name in versions.recorded if name == current or name != building]
    found = versions.folder.each(lambda name: find_facts(versions, name), names[-SHOWN_VERSIONS:])
    shown = [facts for facts in found if facts is not None]
    if not shown:
        raise ConfigError(f"{place}: no version of a dataset; give the --store of `cppmill retokenize`")
    older = max(0, len(names) - SHOWN_VERSIONS)
    return Trend(store=place, versions=shown, older=older, current=current, kept=frozenset(names).intersection(kept))


def find_facts(versions: Versions, name: str) -> VersionFacts | None:
    """Return what is known of a version: what was recorded, else what receipt and changes say; None if nothing is."""
    record = versions.read(TREND, name, TREND_FORMAT, TREND_FORM)
    if record is not None:
        return VersionFacts.from_json(record)
    changes = versions.read_changes(name)
    receipt = find_intact_receipt(versions.out(name))
    if receipt is not None:
        return facts_of(receipt, version=name, previous=changes["previous"] if changes else None, changes=changes)
    return None if changes is None else _facts_of_changes(changes)


def facts_of(
    receipt: Mapping[str, Any],
    *,
    version: str,
    previous: str | None,
    changes: Mapping[str, Any] | None,
    time: str | None = None,
    projects: Mapping[str, Any] | None = None,
) -> VersionFacts:
    """Return what a receipt says of a version.

    Args:
        receipt: The version's.
        version: Its name.
        previous: The version that it followed.
        changes: What it changed, as `STORE/changes` has it; None if that is not known.
        time: When it was finished.
        projects: Which projects it has, came and went.
    """
    dataset = receipt["dataset"]
    return VersionFacts(
        version=version,
        previous=previous,
        time=time,
        receipt=receipt["digest"],
        documents=dataset["documents"],
        num_bytes=dataset["bytes"],
        tokens=dataset["tokens"],
        tokenizer=receipt["tokenizer"]["digest"],
        is_other_tokenizer=changes is not None and is_other_tokenizer(changes),
        ledger=receipt["ledger"],
        projects=projects,
    )


def find_sums(versions: Versions, name: str) -> pa.Table | None:
    """Return what each project has in a version (`schemas.tables.PROJECT_SUMS`); None if it was not recorded.

    Raises:
        IntegrityError: If the file cannot be read, or is not the one of the version's record.
    """
    path, record = f"{TREND}/{name}.parquet", versions.read(TREND, name, TREND_FORMAT, TREND_FORM)
    try:
        with versions.folder.open_local(path) as file:
            found = sha256_file(file)
            if found != (record or {}).get(SUMS, found):
                raise OSError(f"its SHA-256 is {found}, the record beside it says {record and record[SUMS]}")
            return pq.read_table(file, schema=PROJECT_SUMS, partitioning=None)
    except FileNotFoundError:
        return None
    except (pa.ArrowException, OSError) as error:  # Arrow says of most damages that a file cannot be opened
        raise IntegrityError(
            f"{versions.folder.where(path)}: cannot be read ({error}); remove the file, and the projects of {name} "
            "are counted again"
        ) from error


def _facts_of_changes(changes: Mapping[str, Any]) -> VersionFacts:
    """Return what is known of a version that was removed."""
    documents, num_bytes, tokens = (changes[name]["after"] for name in ("documents", "bytes", "tokens"))
    return VersionFacts(
        version=changes["version"],
        previous=changes["previous"],
        time=None,
        receipt=changes["receipt"]["after"],
        documents=documents,
        num_bytes=num_bytes,
        tokens=tokens,
        tokenizer=changes["ids"]["tokenizer"]["after"],
        is_other_tokenizer=is_other_tokenizer(changes),
        ledger=None,
        projects=None,
    )


def is_other_tokenizer(changes: Mapping[str, Any]) -> bool:
    """Return whether a version has another tokenizer than the one before, by the record of what it changed."""
    digests = changes["ids"]["tokenizer"]
    return digests["before"] not in (None, digests["after"])


def _write_sums(path: Path, sums: pa.Table) -> int:
    pq.write_table(sums, path, compression="zstd")
    return int(sums.num_rows)
