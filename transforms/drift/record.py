"""The record of drift: how the text of a version differs from what its tokenizer was made for, beside the one before.

    STORE/drift/v000002.json    the record; it stays when the version is removed
    OUT/.cache/drift_totals/    how often the version has each id and name, from which the next one goes on

Of a version whose previous one has no record, or no counts any more, nothing is compared but what receipts say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from schemas.digests import parse_json, seal
from schemas.errors import IntegrityError
from schemas.study_options import DriftOptions
from schemas.tables import ID_COUNTS
from transforms.drift.names import TOTALS
from transforms.drift.parts import add_ids, check_parts
from transforms.records.receipts import find_intact_receipt
from transforms.records.record import MALFORMED
from transforms.records.versions import DRIFT, Versions
from transforms.storage.folder import CACHE, OutputFolder
from transforms.tokens.usage import Counts
from transforms.units.parts import write_rows

DRIFT_FORMAT = "cppmill-drift-1"

_NUMBER = (None, int, float)
_AMOUNT = {
    **dict.fromkeys(("documents", "bytes", "tokens"), int),
    **dict.fromkeys(("bytes_per_token", "rare_share", "fixed_bytes_share"), _NUMBER),
}
_FAMILY = {"kind": str, "name": str, "hits": int, "documents": int}
DRIFT_FORM: dict[str, Any] = {
    **dict.fromkeys(("version", "receipt", "tokenizer"), str),
    "reference": {"version": str},
    "after": _AMOUNT,
    **dict.fromkeys(("before", "new"), (None, _AMOUNT)),
    "ids": {"died": (None, {"number": int, "named": [{"token": str}]})},
    "families": (None, {"number": int, "named": [_FAMILY]}),
    "proposals": (None, {"": int}),
    "alerts": [{"message": str}],
}
"""What every record has, which commands read without looking whether it is there."""

SHOWN = 20
"""How many projects, ids and families are named."""

_IDS = f"{CACHE}/drift_totals/ids.parquet"
_DIGESTS = f"{CACHE}/drift_totals/digests.json"
"""The SHA-256 of the totals."""


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """What drift needs to know of the ids of a tokenizer.

    Attributes:
        names: Each token, as one line of text.
        num_bytes: The bytes of each; 0 of control and reserved ids.
        is_fixed: Whether the vocabulary's files give it its id, and it has text.
        is_learned: Whether it was learned.
    """

    names: Sequence[str]
    num_bytes: Counts
    is_fixed: npt.NDArray[np.bool_]
    is_learned: npt.NDArray[np.bool_]

    @cached_property
    def is_text(self) -> npt.NDArray[np.bool_]:
        """Whether it has text."""
        return self.num_bytes > 0


@dataclass(frozen=True, kw_only=True)
class IdTotals:
    """How often each id occurs.

    Attributes:
        counts: In a version.
        reference: In the first version that has its tokenizer and counted.
        reference_version: The name of that one.
    """

    counts: Counts
    reference: Counts
    reference_version: str

    def is_rare(self, vocabulary: Vocabulary, per_million: float) -> npt.NDArray[np.bool_]:
        """Return which tokens have fewer occurrences per million tokens of the reference."""
        is_rare: npt.NDArray[np.bool_] = self.reference * 1e6 < per_million * self.reference.sum()
        return vocabulary.is_text & is_rare


@dataclass(frozen=True, kw_only=True)
class Amount:
    """Some text: the documents, bytes and tokens of a version, or of what is new in it.

    Attributes:
        documents, num_bytes, tokens: How much it is.
        ids: Occurrences by id; None if they are not known.
    """

    documents: int
    num_bytes: int
    tokens: int
    ids: Counts | None

    @property
    def bytes_per_token(self) -> float | None:
        """The compression; None without tokens."""
        return ratio(self.num_bytes, self.tokens)

    def to_json(self, vocabulary: Vocabulary, is_rare: npt.NDArray[np.bool_]) -> dict[str, Any]:
        """Return it as JSON values, with the share of rare ids in its tokens and of fixed tokens in its bytes."""
        rare = fixed = None
        if self.ids is not None:
            rare = ratio(self.ids[is_rare].sum(), self.ids[vocabulary.is_text].sum())
            fixed = ratio((self.ids * vocabulary.num_bytes)[vocabulary.is_fixed].sum(), self.num_bytes)
        return {
            "documents": self.documents,
            "bytes": self.num_bytes,
            "tokens": self.tokens,
            "bytes_per_token": self.bytes_per_token,
            "rare_share": rare,
            "fixed_bytes_share": fixed,
        }


def ratio(part: float, whole: float) -> float | None:
    """Return a quotient as records have it, with six digits; None if there is nothing to divide by."""
    return round(float(part) / float(whole), 6) if whole else None


def read_drift(versions: Versions, name: str) -> dict[str, Any] | None:
    """Return the record of a version; None if there is none.

    Raises:
        IntegrityError: If it is not of this format.
    """
    return versions.read(DRIFT, name, DRIFT_FORMAT, DRIFT_FORM)


def write_drift(versions: Versions, record: Mapping[str, Any]) -> None:
    """Write the record of a version."""
    versions.write_record(DRIFT, record["version"], {"format": DRIFT_FORMAT, **record})


def find_totals(versions: Versions, record: Mapping[str, Any], receipt: Mapping[str, Any]) -> IdTotals:
    """Return the ids of a version, and of the reference; if they are damaged or lost, from the counts of its shards.

    Args:
        versions: The store.
        record: The version's record of drift.
        receipt: Its receipt.

    Raises:
        FileNotFoundError: If counts are lost too, or no other version has those of the reference.
        IntegrityError: If they are damaged.
    """
    name, reference = record["version"], record["reference"]["version"]
    try:
        return _read_totals(versions.out(name), receipt, reference)
    except (FileNotFoundError, IntegrityError):
        out, shards = versions.out(name), [shard["sha256"] for shard in receipt["dataset"]["shards"]]
        check_parts(out, shards)
        counts = add_ids(out, shards, receipt["tokenizer"]["vocab_size"])
        first = counts if reference == name else _find_reference(versions, record)
        if first is None:
            raise
        return IdTotals(counts=counts, reference=first, reference_version=reference)


def _find_reference(versions: Versions, record: Mapping[str, Any]) -> Counts | None:
    """Return the ids of the reference of a record, as any version has them that has the same; None if none has."""
    tokenizer, reference = record["tokenizer"], record["reference"]["version"]
    for name in versions.names:
        with suppress(FileNotFoundError, IntegrityError):
            other = read_drift(versions, name)
            if other is not None and (other["tokenizer"], other["reference"]["version"]) == (tokenizer, reference):
                receipt = find_intact_receipt(versions.out(name))
                if receipt is not None:
                    return _read_totals(versions.out(name), receipt, reference).reference
    return None


def _read_totals(out: OutputFolder, receipt: Mapping[str, Any], reference_version: str) -> IdTotals:
    """Return the ids of a version, by its receipt, and of the reference, as they are kept.

    Raises:
        FileNotFoundError: If they are not kept.
        IntegrityError: If they are damaged, or those of another version.
    """
    check_totals(out)
    with out.open_ranges(_IDS) as source:
        table = pq.read_table(source)
        if not table.schema.equals(ID_COUNTS) or any(column.null_count > 0 for column in table.columns):
            raise pa.ArrowInvalid("not counts of ids")
        ids, counts, reference = (column.to_numpy() for column in table.columns)
        if not np.array_equal(ids, np.arange(receipt["tokenizer"]["vocab_size"])):
            raise pa.ArrowInvalid("not the ids of its tokenizer")
        if min(counts.min(), reference.min()) < 0 or counts.sum() != receipt["dataset"]["tokens"]:
            raise pa.ArrowInvalid("not the counts of this version")
    return IdTotals(counts=counts, reference=reference, reference_version=reference_version)


def check_totals(out: OutputFolder) -> None:
    """Compare the bytes of what a version has of ids and names with their digests; earlier versions wrote none.

    Raises:
        FileNotFoundError: If a file is missing.
        IntegrityError: If one is damaged.
    """
    try:
        data = out.read_bytes(_DIGESTS)
        files = parse_json(data)["files"]
        if data != seal({"files": files}):
            raise ValueError("its digest is another one")
    except FileNotFoundError:
        return
    except MALFORMED as error:
        raise IntegrityError(f"{out.where(_DIGESTS)}: damaged ({error})") from error
    out.check_bytes(files)


def write_totals(out: OutputFolder, totals: IdTotals) -> None:
    """Write the ids of a version and of the reference, and the digests of these and of its names, which are there."""
    ids = np.arange(len(totals.counts), dtype=np.uint32)
    table = pa.table([pa.array(column) for column in (ids, totals.counts, totals.reference)], schema=ID_COUNTS)
    ids_file = out.publish(_IDS, partial(write_rows, table=table))
    files = {_IDS: ids_file.sha256, TOTALS: out.describe(TOTALS).sha256}
    out.publish_bytes(_DIGESTS, seal({"files": files}))


def died_ids(vocabulary: Vocabulary, before: Counts, after: Counts) -> dict[str, Any]:
    """Return the learned ids that a version used and the next one does not: their number, and the most frequent."""
    ids = np.flatnonzero(vocabulary.is_learned & (before > 0) & (after == 0))
    order = ids[np.argsort(-before[ids], kind="stable")][:SHOWN]
    named = [{"id": int(id_), "token": vocabulary.names[id_], "before": int(before[id_])} for id_ in order]
    return {"number": len(ids), "named": named}


def find_alerts(record: Mapping[str, Any], options: DriftOptions) -> Iterator[dict[str, Any]]:
    """Yield the thresholds that are exceeded: measure, value, threshold, and a message for people."""
    before, new = record["before"], record["new"]
    if new is not None and new["bytes"] >= options.alert_min_bytes:
        yield from _compression_alert(before["bytes_per_token"], new["bytes_per_token"], options.alert_compression)
        yield from _rare_alert(before["rare_share"], new["rare_share"], options.alert_rare)
    for measure, found, least, what in (
        ("families", record["families"], options.alert_families, "API families are new"),
        ("died", record["ids"]["died"], options.alert_died, "learned ids died"),
    ):
        if least is not None and found is not None and found["number"] >= least:
            yield _alert(measure, found["number"], least, f"{found['number']:,} {what}; the threshold is {least:,}")


def _compression_alert(before: float | None, new: float | None, most: float | None) -> Iterator[dict[str, Any]]:
    if most is None or not before or new is None:
        return
    lost = round(1 - new / before, 6)
    if lost > most:
        message = f"new text has {new:.3f} bytes per token, {lost:.1%} below the {before:.3f} of the previous version"
        yield _alert("compression", lost, most, message)


def _rare_alert(before: float | None, new: float | None, most: float | None) -> Iterator[dict[str, Any]]:
    if most is None or before is None or new is None:
        return
    gained = round(new - before, 6)
    if gained > most:
        message = f"rare ids are {new:.3%} of the tokens of new text, and were {before:.3%} in the previous version"
        yield _alert("rare", gained, most, message)


def _alert(measure: str, value: float, threshold: float, message: str) -> dict[str, Any]:
    return {"measure": measure, "value": value, "threshold": threshold, "message": message}
