"""Whether the unit receipts of a finished run fit together: with the files, with each other and with the receipt.

Each receipt may be intact, with true digests everywhere, and the whole still be false: inputs that no file has, a
ledger that the rejects contradict, proofs of other shards. All this is compared here, from the receipts and the columns
that say it; what a shard holds is proved by `verification`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import cppmill_core
import pyarrow.compute as pc
import pyarrow.parquet as pq

from schemas.digests import same_json
from schemas.ledger import Ledger
from schemas.reasons import Column
from schemas.tables import PLATFORM_VOCAB_SIZE
from schemas.units import (
    DOCUMENTS_PREFIX,
    REJECTS_PREFIX,
    RUN_STAGES,
    UNITS,
    Stage,
    UnitReceipt,
    current_path,
    is_unit_receipt,
    unit_key,
)
from transforms.filters.kept_counts import added_columns, count_kept, sum_counts
from transforms.records.platforms import platform_vocab_size
from transforms.records.receipts import RECEIPT, named_files
from transforms.storage.folder import OutputFolder

_MADE: dict[Stage, tuple[str, ...]] = {
    Stage.INGEST: (DOCUMENTS_PREFIX, REJECTS_PREFIX),
    Stage.SCAN: ("counts/",),
    Stage.BUILD: ("tokenizer/",),
    Stage.TOKENIZE: ("tokens/",),
    Stage.VALIDATE: (),
}
"""How the names of the files begin that the units of a stage make; a proof is of files, and makes none."""

_ROWS = (Stage.INGEST, Stage.SCAN, Stage.TOKENIZE)
"""The stages whose receipts say how many rows their files have; that of merged counts, which has no inputs, says 0."""


@dataclass(frozen=True)
class RunUnits:
    """The unit receipts of a run, by stage, and the SHA-256 of every file that its receipt names."""

    out: OutputFolder
    receipt: dict[str, Any]
    by_stage: dict[Stage, list[UnitReceipt]]
    files: dict[str, str]

    @property
    def documents(self) -> dict[str, str]:
        """The SHA-256 of each documents shard, by path."""
        return {name: digest for name, digest in self.files.items() if name.startswith(DOCUMENTS_PREFIX)}

    @cached_property
    def _documents_by_digest(self) -> dict[str, str]:
        return {digest: name for name, digest in self.documents.items()}

    def find_documents(self, name: str, digest: str) -> str | None:
        """Return where a documents shard is that was counted; None if it is gone.

        A tokenizer that an earlier version built is kept, and with it the names that shards of these bytes had then.
        """
        return name if self.documents.get(name) == digest else self._documents_by_digest.get(digest)

    @cached_property
    def tokenize_units(self) -> dict[str, UnitReceipt]:
        """The unit receipts of the token shards, by key."""
        return {unit.key: unit for unit in self.by_stage[Stage.TOKENIZE]}

    @cached_property
    def proofs(self) -> dict[str, UnitReceipt]:
        """The proof of each token shard, by the shard's path."""
        shards = {name: proof for proof in self.by_stage[Stage.VALIDATE] for name in proof.inputs}
        return {name: proof for name, proof in shards.items() if name.startswith("tokens/")}


def read_units(out: OutputFolder, receipt: dict[str, Any]) -> RunUnits:
    """Read the unit receipts that a receipt names.

    Raises:
        IntegrityError: If one is damaged, or has the name of another unit's.
    """
    files = named_files(receipt)
    names = {stage: [name for name in files if is_unit_receipt(name, stage)] for stage in RUN_STAGES}
    units = {stage: out.each(partial(_read_unit, out), found) for stage, found in names.items()}
    return RunUnits(out, receipt, units, files)


def _read_unit(out: OutputFolder, name: str) -> UnitReceipt:
    where = out.where(name)
    receipt = UnitReceipt.from_bytes(out.read_bytes(name), where=where)
    receipt.check_name(name, where=where)
    return receipt


def check_units(run: RunUnits) -> Iterator[str]:
    """Yield every difference among the unit receipts, the files and the receipt."""
    for stage, units in run.by_stage.items():
        for unit in units:
            yield from _check_unit(run, stage, unit)
    yield from _check_outputs(run)
    yield from _check_shards(run)
    yield from _check_kept(run)
    for unit in run.by_stage[Stage.INGEST]:
        yield from _check_ledger(run, unit)


def _check_unit(run: RunUnits, stage: Stage, unit: UnitReceipt) -> Iterator[str]:
    """Compare a unit receipt with the files that it names."""
    where = run.out.where(unit.path)
    if stage is Stage.INGEST and unit.inputs:
        yield f"{where}: it names inputs, and a unit of {stage} has none in the run"
    for output in unit.outputs:
        if not output.path.startswith(_MADE[stage]):
            yield f"{where}: its output {output.path} is no file that a unit of {stage} makes"
            continue
        if run.files.get(output.path) != output.sha256:
            yield f"{where}: its output {output.path} has another SHA-256 in the receipt, or is not named there"
            continue
        found = run.out.describe(output.path)
        rows = run.out.num_rows(output.path) if stage in _ROWS and unit.inputs or stage is Stage.INGEST else 0
        if not same_json((found.num_bytes, rows), (output.num_bytes, output.rows)):
            said = f"{output.num_bytes} and {output.rows}"
            yield f"{where}: {output.path} has {found.num_bytes} bytes and {rows} rows, it says {said}"
    of_others = stage is Stage.SCAN and run.receipt["tokenizer"].get("kept")
    for name, digest in unit.inputs.items():
        is_elsewhere = of_others or (stage is Stage.SCAN and run.find_documents(name, digest))
        if run.files.get(name, digest if is_elsewhere else None) != digest:
            yield f"{where}: its input {name} has another SHA-256 in the receipt, or is not named there"


def _check_outputs(run: RunUnits) -> Iterator[str]:
    """Check that every file in the folders of the stages is the output of one unit."""
    made = Counter(output.path for units in run.by_stage.values() for unit in units for output in unit.outputs)
    for name, number in made.items():
        if number > 1:
            yield f"{run.out.where(name)}: {number} unit receipts name it as theirs"
    folders = (f"{UNITS}/", "documents/", "counts/", "tokens/", "proofs/")
    for name in run.files:
        if (
            name.startswith(folders)
            and name not in made
            and not any(is_unit_receipt(name, stage) for stage in RUN_STAGES)
        ):
            yield f"{run.out.where(name)}: no unit receipt names it as its output"


def _check_shards(run: RunUnits) -> Iterator[str]:
    """Check that each documents shard has one token shard, made by its unit, and each token shard one proof."""
    units = run.tokenize_units
    shards = {line["path"]: line for line in run.receipt["dataset"]["shards"]}
    for path, line in shards.items():
        unit = units.get(line["unit"])
        if unit is None or [output.path for output in unit.outputs] != [path] or len(unit.inputs) != 1:
            yield f"{run.out.where(path)}: its unit {line['unit']} has no receipt of this file from one documents shard"
    if len(units) != len(shards):
        yield f"{run.out.where(RECEIPT)}: it names {len(shards)} token shards and {len(units)} receipts of them"
    inputs = Counter(name for unit in units.values() for name in unit.inputs)
    for name in run.documents:
        if inputs[name] != 1:
            yield f"{run.out.where(name)}: {inputs[name]} token shards are of it"
    expected = Counter(
        _canonical({line["path"]: line["sha256"], **units[line["unit"]].inputs})
        for line in shards.values()
        if line["unit"] in units
    )
    proved = Counter(_canonical(proof.inputs) for proof in run.by_stage[Stage.VALIDATE])
    for inputs_json in (expected - proved) | (proved - expected):
        yield f"{run.out.where('proofs')}: not one proof of {inputs_json}"
    yield from _check_keys(run)


def _check_keys(run: RunUnits) -> Iterator[str]:
    """Derive the keys of token shards and proofs again, from the tokenizer, the options and the inputs.

    A key holds the version of the native core, so this is done for runs of the present one.
    """
    version = run.receipt["code"].get("cppmill-core")
    if version != cppmill_core.__version__:
        return
    config: dict[str, Any] = {
        "tokenizer": run.receipt["tokenizer"]["digest"],
        "options": run.receipt["configs"]["tokenize"],
    }
    same = Counter(digest for unit in run.by_stage[Stage.TOKENIZE] for digest in unit.inputs.values())
    for unit in run.by_stage[Stage.TOKENIZE]:
        (digest,) = unit.inputs.values()
        inputs = ([digest, *([number] if number else [])] for number in range(same[digest]))
        if unit.key not in {
            unit_key(Stage.TOKENIZE, core_version=version, config=config, inputs=found) for found in inputs
        }:
            yield f"{run.out.where(unit.path)}: tokenizer, options and inputs of the receipt give it another key"
    size = platform_vocab_size(run.receipt)
    proved = {**config, **({} if size == PLATFORM_VOCAB_SIZE else {"platform_vocab_size": size})}
    for unit in run.by_stage[Stage.VALIDATE]:
        if unit.key != unit_key(Stage.VALIDATE, core_version=version, config=proved, inputs=unit.inputs):
            yield f"{run.out.where(unit.path)}: tokenizer, options and inputs of the receipt give it another key"


def _check_kept(run: RunUnits) -> Iterator[str]:
    """Compare whether the tokenizer is said to be of other documents with what it was built from."""
    built = run.by_stage[Stage.BUILD]
    if not built:
        if "kept" in run.receipt["tokenizer"]:
            yield f"{run.out.where(RECEIPT)}: it says that its tokenizer was kept, and no unit receipt that it was built"
        return
    scanned = {digest for unit in run.by_stage[Stage.SCAN] for digest in unit.inputs.values()}
    counts = {
        output.path: output.sha256 for unit in run.by_stage[Stage.SCAN] if not unit.inputs for output in unit.outputs
    }
    of_others = counts != built[0].inputs or scanned != set(run.documents.values())
    if of_others != bool(run.receipt["tokenizer"].get("kept")):
        said = "these documents" if of_others else "others"
        yield f"{run.out.where(RECEIPT)}: it says that the tokenizer is of {said}, and its unit receipts do not"


def _check_ledger(run: RunUnits, unit: UnitReceipt) -> Iterator[str]:
    """Count what became of the documents of a unit from its shards and its rejects."""
    where, found, ingest = run.out.where(unit.path), Ledger(), run.receipt["configs"]["ingest"]
    counts, more = sum_counts([], ingest), added_columns(ingest)
    for output in unit.outputs:
        if output.path not in run.files:
            return  # named already
        is_kept = output.path in run.documents
        keys = ("num_bytes",) if is_kept else ("column", "reason", "num_bytes")
        with run.out.open_ranges(output.path) as file, pq.ParquetFile(file) as table:
            if lacking := set(more if is_kept else ()) - set(table.schema_arrow.names):
                yield f"{run.out.where(output.path)}: by the options it lacks {', '.join(sorted(lacking))}"
                return
            rows = table.read([*keys, *more] if is_kept else list(keys), use_threads=False)
            if is_kept:
                counts = sum_counts([counts, count_kept(rows, ingest)], ingest)
                found.add(Column.KEPT, "", num_bytes=pc.sum(rows.column("num_bytes")).as_py() or 0, documents=len(rows))
                continue
            kinds = rows.group_by(["column", "reason"]).aggregate([("num_bytes", "sum"), ("num_bytes", "count")])
        for kind in kinds.to_pylist():
            amounts = {"num_bytes": kind["num_bytes_sum"], "documents": kind["num_bytes_count"]}
            found.add(Column(kind["column"]), kind["reason"], **amounts)
    if not same_json(found.to_json(), unit.ledger):
        counted = json.dumps(found.to_json())
        yield f"{where}: its ledger is {json.dumps(unit.ledger)}, its documents and rejects give {counted}"
    kept = {"documents": found.documents.kept, "bytes": found.num_bytes.kept, **counts}
    if not same_json(unit.totals, kept):
        yield f"{where}: its totals are {json.dumps(unit.totals)}, its documents give {json.dumps(kept)}"


def _canonical(value: Any) -> str:  # noqa: ANN401 - any JSON value
    return json.dumps(value, sort_keys=True)
