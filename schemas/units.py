"""Work units and their receipts: the one mechanism behind resuming, incremental runs and retokenization.

A unit's key is the SHA-256 of everything that its output depends on. Its receipt, published after its outputs,
commits them.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from schemas.digests import HEX_DIGEST, canonical_json, parse_json, same_json, seal, sha256_json
from schemas.errors import IntegrityError
from schemas.ledger import Ledger, check_sequence_ledger
from schemas.places import is_plain_path
from schemas.reasons import Dead
from schemas.tables import DATA_FORMAT_VERSION, LICENSE_SOURCES, REDACTED_COLUMNS

RECEIPT_FORMAT = "cppmill-unit-2"
OLD_RECEIPT_FORMAT = "cppmill-unit-1"
"""The format before, without a digest of the receipt itself: it is read, but nothing in it proves that it is whole."""


class Stage(StrEnum):
    """The stages, in the order in which data flows: of a run, of exports of a run, of versions of a dataset."""

    INGEST = "ingest"
    SCAN = "scan"
    BUILD = "build"
    TOKENIZE = "tokenize"
    VALIDATE = "validate"
    SPLITS = "splits"
    SHARDS = "shards"
    PROJECTS = "projects"
    SEQUENCES = "sequences"
    DRIFT = "drift"


RECEIPT_FOLDERS: dict[Stage, str] = {
    Stage.INGEST: "documents",
    Stage.SCAN: "counts/parts",
    Stage.BUILD: "tokenizer",
    Stage.TOKENIZE: "tokens",
    Stage.VALIDATE: "proofs",
    Stage.SPLITS: ".cache/splits",
    Stage.SHARDS: "shards",
    Stage.PROJECTS: ".cache/projects",
    Stage.SEQUENCES: "sequences",
    Stage.DRIFT: ".cache/drift",
}
"""Where each stage publishes, below OUT; what an export counts for its plan is no part of it."""

UNITS = "units"
"""The folder of the receipts of units whose outputs are Parquet: some readers of a folder read every file in it."""

APART = (Stage.INGEST, Stage.SCAN, Stage.TOKENIZE, Stage.SEQUENCES)
"""The stages whose unit receipts are there, in a folder named as that of their outputs, beside which they once were."""

RUN_STAGES = (Stage.INGEST, Stage.SCAN, Stage.BUILD, Stage.TOKENIZE, Stage.VALIDATE)
"""The stages of a run, in order; exports write into folders of their own, and drift writes into the cache."""

RUN_PREFIXES = (f"{UNITS}/", "counts/", *(f"{RECEIPT_FOLDERS[stage]}/" for stage in RUN_STAGES))
"""How the paths of all begin that is in the folders of a run; what its receipt does not name has no place there."""

TOKENIZER_STAGES = (Stage.SCAN, Stage.BUILD)
"""The stages that make a tokenizer: a run with one given leaves them out."""

_PARTS = f"{RECEIPT_FOLDERS[Stage.SCAN]}/"
"""Where the counts of shards are, named as their units are; those of the run have names of their own."""

DOCUMENTS_PREFIX, REJECTS_PREFIX = "documents/part-", "documents/rejects-"
"""How the names of the outputs of ingest begin."""

_NUMBERS = ("documents", "bytes", "tokens", "max_token_id")
_PROVED = ("tokens", "documents")
_DATASET = frozenset(_NUMBERS)
_ALTERATIONS = frozenset({"altered", "redacted", "licenses"})
_ALTERED: dict[str, Any] = {
    "altered": 0,
    "redacted": dict.fromkeys(REDACTED_COLUMNS.names, {"documents": 0, "places": 0}),
    "licenses": dict.fromkeys(LICENSE_SOURCES, 0),
}
"""The form of these."""

_DIGESTS, _LOST = frozenset({"dataset_digest", "corpus_digest", "ids_sha256"}), "lost"
_SPLITS, _PROJECTS = frozenset({"train", "val"}), "projects"
_SEQUENCES = frozenset({"documents_in", "tokens_in", "sequences", "segments", "positions", "positions_with_loss"})
"""Totals that each unit of sequences has, whatever its options and documents."""

_TOTALS: dict[Stage, tuple[frozenset[str], frozenset[str]]] = {
    Stage.INGEST: (frozenset({"documents", "bytes"}), _ALTERATIONS),
    Stage.SCAN: (frozenset(), frozenset()),
    Stage.BUILD: (frozenset(), frozenset()),
    Stage.TOKENIZE: (_DATASET | {"control_text"}, frozenset()),
    Stage.VALIDATE: (_DATASET | {"dataset_digest", "corpus_digest"}, frozenset({_LOST})),
    Stage.SPLITS: (_SPLITS, frozenset()),
    Stage.SHARDS: (frozenset({"split", "documents", "bytes", "tokens", "ids_sha256", "dataset_digest"}), frozenset()),
    Stage.PROJECTS: (frozenset({_PROJECTS}), frozenset()),
}
"""The totals of units of these stages: those that each has, and those that one may have."""

EXPORT_FOLDERS = tuple(RECEIPT_FOLDERS[stage] for stage in (Stage.SHARDS, Stage.SEQUENCES))
"""Where exports write, below their own folder."""


@dataclass(frozen=True, kw_only=True)
class Unit:
    """One piece of work of a stage: about 64 MB of input.

    Attributes:
        stage: The stage that runs it.
        key: SHA-256 over everything the output depends on.
        num_bytes: Bytes of input, for progress.
        label: What a person calls it, for messages.
        payload: What the stage needs to run it; JSON values only.
    """

    stage: Stage
    key: str
    num_bytes: int
    label: str
    payload: dict[str, Any] = field(hash=False)

    @property
    def receipt_path(self) -> str:
        """The path of its receipt, relative to OUT."""
        return unit_receipt_path(self.stage, self.key)

    @property
    def planned_inputs(self) -> dict[str, str] | None:
        """SHA-256 of the files that its receipt must name as inputs, by path; None if its payload does not say."""
        if self.stage in (Stage.SHARDS, Stage.SEQUENCES):
            shards = self.payload.get("shards") or [part["shard"] for part in self.payload.get("parts", ())]
            return {shard["path"]: shard["sha256"] for shard in shards} or None
        planned = self.payload.get("inputs")
        return planned if isinstance(planned, dict) else None

    def to_bytes(self) -> bytes:
        """Return the unit as JSON bytes; surrogate escapes in paths survive."""
        return json.dumps(vars(self), sort_keys=True).encode("ascii")

    @classmethod
    def from_bytes(cls, data: bytes) -> Unit:
        """Read a unit back."""
        value = parse_json(data)
        return cls(**{**value, "stage": Stage(value["stage"])})


@dataclass(frozen=True, kw_only=True)
class OutputFile:
    """A published file: its path relative to OUT, digest, size in bytes and rows."""

    path: str
    sha256: str
    num_bytes: int
    rows: int


@dataclass(frozen=True, kw_only=True)
class UnitReceipt:
    """What a finished unit made: commits its outputs.

    Attributes:
        stage: The stage.
        key: The unit's key.
        outputs: The files, in order.
        totals: Counts and digest sums of the stage; mergeable in any order.
        inputs: SHA-256 of the published files that it was made from, by path relative to OUT.
        ledger: What came in and what became of it, as JSON (empty for stages that drop nothing).
    """

    stage: Stage
    key: str
    outputs: tuple[OutputFile, ...]
    totals: dict[str, Any] = field(hash=False)
    inputs: dict[str, str] = field(hash=False, default_factory=dict)
    ledger: dict[str, Any] = field(hash=False, default_factory=dict)

    @property
    def path(self) -> str:
        """Its own path, relative to OUT."""
        return unit_receipt_path(self.stage, self.key)

    @property
    def files(self) -> dict[str, str]:
        """SHA-256 of its outputs, by path relative to OUT: what a unit that is made from them has as inputs."""
        return {output.path: output.sha256 for output in self.outputs}

    @property
    def is_final(self) -> bool:
        """Whether running the unit again would change nothing: no input changed between two passes over it."""
        return not self.ledger or Dead.CHANGED not in self.ledger["documents"]["dead"]

    def to_bytes(self) -> bytes:
        """Return the receipt as canonical JSON, with its own digest."""
        value = {"format": RECEIPT_FORMAT, **asdict(self)}
        return seal(value)

    @classmethod
    def from_bytes(cls, data: bytes, *, where: str, advice: str = "delete it and run again") -> UnitReceipt:
        """Read a receipt back, of this format or of the one before.

        Args:
            data: Its bytes.
            where: Its file, for the message.
            advice: What to do if it is none, for the message; empty if the caller adds it.

        Raises:
            IntegrityError: If it is not a unit receipt of a known version, or was changed.
        """
        try:
            value = parse_json(data)
            is_old = value["format"] == OLD_RECEIPT_FORMAT
            if not is_old:
                if data != canonical_json(value):  # a key that is there twice would be read in two ways
                    raise ValueError("it is not canonical JSON")
                _check_digest(value)
                if value.keys() != {"format", *cls.__dataclass_fields__}:
                    raise ValueError(f"its keys are {', '.join(sorted(value))}")
            del value["format"]
            if not isinstance(value["outputs"], list):
                raise TypeError("outputs is not an array")
            if other := [
                output for output in value["outputs"] if output.keys() != OutputFile.__dataclass_fields__.keys()
            ]:
                raise ValueError(f"the keys of an output are {', '.join(sorted(other[0]))}")
            outputs = tuple(OutputFile(**output) for output in value.pop("outputs"))
            receipt = cls(outputs=outputs, stage=Stage(value.pop("stage")), **value)
            receipt.check_types()
            is_of_shard = any(output.path.startswith(_PARTS) for output in outputs)
            if is_of_shard and not is_old and len(receipt.inputs) != 1:
                raise ValueError("inputs: counts of a shard have one")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise IntegrityError(
                f"{where}: not a unit receipt of format {RECEIPT_FORMAT} ({error}){advice and f'; {advice}'}"
            ) from error
        return receipt

    def check_types(self) -> None:
        """Check what the dataclass alone does not: a receipt that was damaged may hold anything.

        Raises:
            TypeError: Naming the field.
            ValueError: If an output has a size that no such file has.
        """
        if not isinstance(self.key, str):
            raise TypeError("key is not a string")
        for name in ("totals", "inputs", "ledger"):
            if not isinstance(getattr(self, name), dict):
                raise TypeError(f"{name} is not an object")
        for output in self.outputs:
            if not (isinstance(output.path, str) and isinstance(output.sha256, str)):
                raise TypeError("outputs: a path or a digest is not a string")
            if not is_plain_path(output.path):
                raise ValueError(f"outputs: no file has the path {output.path!r}")
            if not all(type(number) is int for number in (output.num_bytes, output.rows)):
                raise TypeError("outputs: a size or a number of rows is not a number")
            is_empty = output.num_bytes == 0 and output.path.endswith(".parquet")
            if is_empty or output.num_bytes < 0 or output.rows < 0:
                raise ValueError(f"outputs: no file has {output.num_bytes} bytes and {output.rows} rows: {output.path}")

    def check_name(self, name: str, *, where: str, advice: str = "") -> None:
        """Check that a file that has this receipt has its name.

        Raises:
            IntegrityError: If it has that of another unit's.
        """
        if current_path(name) != self.path:
            rest = advice and f"; {advice}"
            raise IntegrityError(f"{where}: it is the receipt of the {self.stage} unit {self.key}{rest}")

    def check_facts(self, *, where: str) -> None:
        """Check that its stage writes such a receipt, and that it says nothing twice in two ways, before it is used.

        Args:
            where: Its file, for the message.

        Raises:
            IntegrityError: Naming what contradicts the rest.
        """
        try:
            self._check_facts()
        except (ValueError, KeyError, TypeError, AttributeError, IntegrityError) as error:
            raise IntegrityError(f"{where}: no unit of {self.stage} writes this receipt ({error})") from error

    def _check_facts(self) -> None:
        paths = [output.path for output in self.outputs]
        if len(set(paths)) < len(paths):
            raise ValueError("outputs: a file is there twice")
        unnamed = [path for path in paths if self.stage in APART and f"-{self.key}" not in path]
        if any(self.stage is not Stage.SCAN or path.startswith(_PARTS) for path in unnamed):
            raise ValueError("outputs: a file has the name of another unit's")
        known = _TOTALS.get(self.stage)
        if known is not None and not known[0] <= self.totals.keys() <= known[0] | known[1]:
            raise ValueError(f"totals: they are {', '.join(sorted(self.totals))}")
        if any(type(self.totals.get(name, 0)) is not int for name in _NUMBERS):
            raise TypeError("totals: a number is none")
        if not all(isinstance(digest, str) and HEX_DIGEST.fullmatch(digest) for digest in self.inputs.values()):
            raise ValueError("inputs: a digest is no SHA-256")
        self._check_forms()
        if self.stage is Stage.SCAN and not paths:
            raise ValueError("outputs: there is none")
        is_counted = self.stage is Stage.SCAN and any(path.startswith(_PARTS) for path in paths)
        if self.stage in (Stage.SCAN, Stage.BUILD) and not is_counted and any(output.rows for output in self.outputs):
            raise ValueError("outputs: rows of merged counts and of a tokenizer are not counted")
        if self.stage is Stage.INGEST:
            self._check_ingested()
        elif self.ledger:
            raise ValueError(f"ledger: a unit of {self.stage} has none")
        if self.stage is Stage.TOKENIZE and (
            len(self.inputs) != 1 or [output.rows for output in self.outputs] != [self.totals["documents"]]
        ):
            raise ValueError("it is not of one documents shard, with a row for each document")
        if self.stage is Stage.VALIDATE and (self.outputs or len(self.inputs) != len(_PROVED)):
            raise ValueError("it is not a proof of a token shard from a documents shard")

    def _check_forms(self) -> None:
        """Check the totals that are more than a number, and those of sequences, which are numbers under many names."""
        if self.stage is Stage.SEQUENCES:
            if not _is_tally(self.totals):
                raise ValueError("totals: a number is none")
            if missing := _SEQUENCES - self.totals.keys():
                raise ValueError(f"totals: {min(missing)} is missing")
            check_sequence_ledger(self.totals, where="totals")
        for name in self.totals.keys() - _DATASET if self.stage in _TOTALS else ():
            value = self.totals[name]
            if name in _ALTERATIONS:
                is_written = _has_form(value, _ALTERED[name])
            elif name in _DIGESTS:
                is_written = isinstance(value, str) and bool(HEX_DIGEST.fullmatch(value))
            elif name == "split":
                is_written = value in _SPLITS
            elif name in _SPLITS:
                is_written = _has_form(value, {"documents": 0, "tokens": 0})
            elif name == _PROJECTS:
                is_written = isinstance(value, list) and all(map(_is_project, value))
            elif name == _LOST:
                is_written = isinstance(value, dict) and value.keys() == {"documents", "bytes"}
                is_written = is_written and all(map(_is_tally, value.values()))
            else:
                is_written = _is_tally(value)
            if not is_written:
                raise ValueError(f"totals: {name} is {value!r}")

    def _check_ingested(self) -> None:
        """Compare ledger, totals and rows of a unit of ingest."""
        if self.inputs:
            raise ValueError(f"inputs: a unit of {self.stage} has none")
        found = Ledger.from_json(self.ledger, where="ledger")
        for tally in (found.documents, found.num_bytes):
            if any(type(amount) is not int or amount < 0 for _, _, amount in tally.entries()):
                raise TypeError("ledger: a number is none")
        if not same_json(found.to_json(), self.ledger):
            raise ValueError("ledger: it has other keys or numbers than a ledger")
        rows = sum(output.rows for output in self.outputs if output.path.startswith(DOCUMENTS_PREFIX))
        others = sum(output.rows for output in self.outputs) - rows
        kept, num_bytes = self.totals["documents"], self.totals["bytes"]
        said = {"documents": kept, "bytes": num_bytes, "rows": rows, "rejects": others}
        counted = {"documents": found.documents.kept, "bytes": found.num_bytes.kept, "rows": found.documents.kept}
        if not same_json(said, {**counted, "rejects": found.documents.total - found.documents.kept}):
            raise ValueError("its totals, rows and ledger differ")


def _is_tally(value: object) -> bool:
    """Return whether a value has names and numbers of them."""
    return isinstance(value, dict) and all(type(number) is int and number >= 0 for number in value.values())


def _is_project(value: object) -> bool:
    """Return whether a value is the rows of a project: its name, the first, the one after the last, their tokens."""
    if not isinstance(value, list) or len(value) != 4:
        return False
    return isinstance(value[0], str) and _is_tally(dict(enumerate(value[1:])))


def _has_form(value: object, form: object) -> bool:
    """Return whether a value has the keys of another, at every depth, and numbers in their places."""
    if isinstance(form, dict):
        return (
            isinstance(value, dict)
            and value.keys() == form.keys()
            and all(_has_form(value[name], part) for name, part in form.items())
        )
    return type(value) is int and value >= 0


def is_sealed(data: bytes) -> bool:
    """Return whether the bytes of a readable unit receipt have its own digest; those of older versions have none."""
    return bool(parse_json(data)["format"] == RECEIPT_FORMAT)


def _check_digest(value: dict[str, Any]) -> None:
    """Take the digest out of a receipt, and check it.

    Raises:
        ValueError: If the format is unknown, or the content gives another digest.
    """
    if value["format"] != RECEIPT_FORMAT:
        raise ValueError(f"format {value['format']!r}")
    expected, found = value.pop("digest"), sha256_json(value)
    if found != expected:
        raise ValueError(f"its digest is {expected}, its content gives {found}")


def unit_receipt_path(stage: Stage, key: str) -> str:
    """Return the path of a unit's receipt, relative to OUT."""
    return f"{receipt_folder(stage)}/_unit-{key}.json"


def receipt_folder(stage: Stage) -> str:
    """Return the folder of a stage's unit receipts, relative to OUT."""
    return f"{UNITS}/{RECEIPT_FOLDERS[stage]}" if stage in APART else RECEIPT_FOLDERS[stage]


def old_receipt_path(name: str) -> str | None:
    """Return where a unit receipt was before receipts were apart; None for the path of any other file.

    Example:
        >>> old_receipt_path("units/tokens/_unit-1.json"), old_receipt_path("tokens/_unit-1.json")
        ('tokens/_unit-1.json', None)
    """
    old = name.removeprefix(f"{UNITS}/")
    return old if old != name and any(is_unit_receipt(old, stage) for stage in APART) else None


def current_path(name: str) -> str:
    """Return where a file of OUT is now: an old place of a unit receipt gives the present one.

    Example:
        >>> current_path("tokens/_unit-1.json"), current_path("tokens/part-1.parquet")
        ('units/tokens/_unit-1.json', 'tokens/part-1.parquet')
    """
    is_old = not name.startswith(f"{UNITS}/") and any(is_unit_receipt(name, stage) for stage in APART)
    return f"{UNITS}/{name}" if is_old else name


def is_unit_receipt(name: str, stage: Stage) -> bool:
    """Return whether a path relative to OUT is the path of a unit receipt of a stage, the present or the old one."""
    here = name.removeprefix(f"{UNITS}/") if stage in APART else name
    return here.startswith(f"{RECEIPT_FOLDERS[stage]}/_unit-") and here.endswith(".json")


def unit_key(stage: Stage, *, core_version: str, config: dict[str, Any], inputs: Any) -> str:  # noqa: ANN401 - JSON
    """Return the key of a unit: SHA-256 over all that its output depends on.

    Args:
        stage: The stage.
        core_version: Version of the native core.
        config: The stage's configuration, JSON values; nothing about engine, threads or places.
        inputs: Digests of the inputs and whatever else decides the output, JSON values.
    """
    value = {
        "stage": str(stage),
        "format": DATA_FORMAT_VERSION,
        "core": core_version,
        "config": config,
        "inputs": inputs,
    }
    return sha256_json(value)
