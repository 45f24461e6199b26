"""Whether the files of a run have the layout of the present formats and nothing besides: columns, keys, footers, rows.

Readers take what is there. An unknown column or key, or a document that is there twice, would go on into training
although no record promises it. Runs of older versions lack columns and keys, and are accepted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from cppmill_core.platforms import PLATFORM_VOCAB as PUBLISHED

from configs.layers import receipt_layer
from configs.own_platforms import recorded_platforms
from pipelines.versions.name_checks import check_names
from schemas.digests import parse_json, same_json, sha256_file
from schemas.errors import ConfigError
from schemas.ledger import Ledger
from schemas.options import IngestOptions, RunOptions
from schemas.plugins.entry_points import READERS_GROUP
from schemas.reasons import Column, Dead, Filtered
from schemas.tables import PARTITIONED_WORDS, REJECTS, WORDS, column_problems
from schemas.units import REJECTS_PREFIX, Stage, is_unit_receipt
from tokenizer_build.artifact import MANIFEST_JSON
from tokenizer_build.decision_files import DECISIONS
from tokenizer_build.lock import LOCKS
from transforms.filters.kept_counts import ALTERED, LICENSES, REDACTED, documents_schema
from transforms.filters.withdrawals import WITHDRAWN, Withdrawals, withdrawn_in
from transforms.records.checks.unit_checks import RunUnits
from transforms.records.code import code_versions, is_installed, names_versions
from transforms.records.platforms import PLATFORM_VOCAB, has_own_platforms
from transforms.records.receipts import RECEIPT
from transforms.scan.kinds import PARTS, Family
from transforms.scan.tables import merged_schema, partial_schema
from transforms.sources.document import accepts_extension, in_sample
from transforms.sources.listing import Kind, kind_of
from transforms.storage.folder import naming_damage
from transforms.storage.footers import check_footer
from transforms.tokens.losses import LOST

_TOKENIZER = "tokenizer/"

_DIGESTS = "S32"
_NO_DIGEST = 64 * "0"
_SHOWN_DIGITS = 24
_COPIES: tuple[tuple[str, str, re.Pattern[str]], ...] = (
    (Column.DUPLICATE, "", re.compile("(?P<digest>[0-9a-f]{64})")),
    (Column.FILTERED, Filtered.NEAR_DUPLICATE, re.compile(r"(0\.\d\d|1\.00) like (?P<digest>[0-9a-f]{64})")),
)
"""Rejects that name a document which is kept: column, reason, and how the detail names it."""

_TOTALS = {"documents", "bytes", "tokens", "max_token_id"}
_KEYS: dict[str, set[str]] = {
    "": {"format", "corpus", "tokenizer", "dataset", "policy", "ledger", "platform_vocab", "configs", "code", "files"}
    | {"exclusion", "digest"},
    "corpus": {"digest", "documents", "bytes", ALTERED, REDACTED, LICENSES},
    "tokenizer": {"digest", "revision", "vocab_size", "vocabulary", "kept"},
    "dataset": {"digest", "shards", *_TOTALS},
    "policy": {"bos", "eos", "control_text"},
    "platform_vocab": {"digest", "size"},
}
"""The keys of a receipt, by table."""

_SHARD_KEYS = {"path", "sha256", "rows", "unit", *_TOTALS - {"documents"}}
_UNIT_TOTALS = {
    Stage.SCAN: set[str](),
    Stage.BUILD: set[str](),
    Stage.TOKENIZE: {*_TOTALS, "control_text"},
    Stage.VALIDATE: {*_TOTALS, "dataset_digest", "corpus_digest", LOST},
}
"""The keys of the totals of unit receipts; those of ingest are derived again."""

_ALWAYS_NAMED = {"cppmill", "cppmill-core"}
"""What every receipt has versions of."""

_OPTION_OF: dict[str, str] = {
    Filtered.SAMPLE: "sample",
    Filtered.LIMIT: "limit",
    Filtered.BINARY: "drop_binary",
    Filtered.WIDE_TEXT: "drop_binary",
    Filtered.GENERATED: "drop_generated",
    Filtered.LONG_LINES: "max_line_bytes",
    Filtered.UNIQUE_LINES: "min_unique_line_ratio",
    Filtered.LICENSE: "allowed_licenses",
    Filtered.MINIFIED: "drop_minified",
    Filtered.SECRET: "drop_secrets",
    Filtered.CONTAMINATED: "decontaminate",
    Filtered.WITHDRAWN: "withdrawn",
    Filtered.NEAR_DUPLICATE: "near_duplicate_similarity",
}
"""The option that drops documents for a reason; it has another value where it drops none."""

_TABLES = (Kind.PARQUET, Kind.JSONL, Kind.TEXT)
_OFF = {"sample": 1.0}
_OF_ARCHIVES = (Dead.NOT_AN_ARCHIVE, Dead.EXPANSION)


def check_layout(run: RunUnits) -> Iterator[str]:
    """Yield every column, key, footer, reason and copy of a document that a run of this version does not write."""
    yield from _check_keys(run)
    yield from check_names(run)
    yield from _check_options(run)
    yield from _check_tokenizer(run)
    for name in sorted(run.files):
        schema = _schema(name, run.receipt["configs"]["ingest"]) if name.endswith(".parquet") else None
        if schema is not None:
            yield from _check_columns(run, name, schema)
    options = IngestOptions.model_validate(run.receipt["configs"]["ingest"])
    yield from _check_ledger(run, options)
    withdrawals = withdrawn_in(run.out) if options.withdrawn and WITHDRAWN in run.files else None
    for name in sorted(run.files):
        if name.startswith(REJECTS_PREFIX):
            yield from check_reasons(run, name, options)
            yield from _check_withdrawn(run, name, withdrawals)
    if not (options.readers or options.document_separator):
        yield from _check_extensions(run, options)
    if options.drop_duplicates:
        yield from check_copies(run)
        if Dead.CHANGED not in run.receipt["ledger"]["documents"]["dead"]:  # what is kept of copies may be that
            yield from check_duplicates(run)


def _check_keys(run: RunUnits) -> Iterator[str]:
    """Compare the keys of the receipt and of unit receipts with those that are known."""
    where, receipt = run.out.where(RECEIPT), run.receipt
    found = [(name or "the receipt", receipt[name] if name else receipt, known) for name, known in _KEYS.items()]
    found += [("a shard", line, _SHARD_KEYS) for line in receipt["dataset"]["shards"]]
    for name, table, known in found:
        if unknown := sorted(table.keys() - known):
            yield f"{where}: {name} has the key {unknown[0]!r}, which no run writes"
    if None in receipt["tokenizer"].values() or receipt["tokenizer"].get("kept", True) is not True:
        yield f"{where}: its tokenizer has values that no run writes"
    paths = [line["path"] for line in receipt["dataset"]["shards"]]
    if paths != sorted(paths):
        yield f"{where}: its shards are not in the order of their paths"
    if not names_versions(receipt["code"]) or not receipt["code"].keys() >= _ALWAYS_NAMED:
        yield f"{where}: its code is no list of versions"
    for stage, totals in _UNIT_TOTALS.items():
        for unit in run.by_stage[stage]:
            unknown = sorted(unit.totals.keys() - totals) or sorted(unit.ledger)
            if unknown:
                yield f"{run.out.where(unit.path)}: it has the key {unknown[0]!r}, which no unit of {stage} writes"


def _check_ledger(run: RunUnits, options: IngestOptions) -> Iterator[str]:
    """Check the keys and reasons of the ledger, of which a copy has no rejects."""
    where, ledger = run.out.where(RECEIPT), run.receipt["ledger"]
    known = Ledger.from_json(ledger, where=where).to_json()
    if not same_json({name: value for name, value in ledger.items() if name != LOST}, known):
        yield f"{where}: its ledger has keys that no run writes"
    for column, found in known["documents"].items():
        for reason in found if isinstance(found, dict) else [""] if column == Column.DUPLICATE and found else ():
            if not is_possible(column, reason, options):
                yield f"{where}: its ledger has {f'{column} {reason}'.rstrip()}, which the options do not give"


def _check_tokenizer(run: RunUnits) -> Iterator[str]:
    """Check that every file of a tokenizer is one that tokenizers have, and of its build if there is one.

    A build of this version made all that it writes, and may have got locks since.
    """
    from tokenizer_build.own import names_of_build, names_of_tokenizer  # what trains comes with it

    made = {output.path for unit in run.by_stage[Stage.BUILD] for output in unit.outputs}
    others = {f"{_TOKENIZER}{name}" for name in LOCKS}
    if not made and any(run.by_stage.values()):
        counted = sorted(name for name in run.files if name.startswith("counts/"))
        yield from (f"{run.out.where(name)}: no unit receipt of a build goes with the counts" for name in counted[:1])
    if made or is_installed(run.receipt["code"]):  # older versions copied whatever was beside a tokenizer
        manifest = parse_json(run.out.read_bytes(f"{_TOKENIZER}{MANIFEST_JSON}"))
        known = {f"{_TOKENIZER}{name}" for name in names_of_tokenizer(manifest)}
        strange = sorted(name for name in run.files if name.startswith(_TOKENIZER) and name not in known)
        yield from (
            f"{run.out.where(name)}: no file of a tokenizer; programs that look for it would read it"
            for name in strange
            if not is_unit_receipt(name, Stage.BUILD)
        )
        if made and is_installed(run.receipt["code"]):
            missing = {f"{_TOKENIZER}{name}" for name in names_of_build(manifest)} - made
            yield from (f"{run.out.where(name)}: the build did not make it" for name in sorted(missing))
    for name in sorted(run.files) if made else ():
        if name.startswith(_TOKENIZER) and name not in made | others and not is_unit_receipt(name, Stage.BUILD):
            yield f"{run.out.where(name)}: no unit receipt names it as its output"


def _check_options(run: RunUnits) -> Iterator[str]:
    """Check that the options are those of a run, each in its form, and what is published with this version."""
    options, where = RunOptions.model_validate(run.receipt["configs"]), run.out.where(RECEIPT)
    if not is_installed(run.receipt["code"]):
        return
    readers = {f"{READERS_GROUP}:{name}" for name in options.ingest.readers}
    named = run.receipt["code"].keys()
    yield from (f"{where}: its code has no version of {name}" for name in sorted(readers - named))
    strange = named - code_versions().keys() - readers if not options.ingest.filters else ()  # of libraries of filters
    yield from (f"{where}: its code has {name!r}, which no run writes" for name in sorted(strange))
    for name, value in options.to_json().items():
        if not same_json(run.receipt["configs"].get(name), value):
            yield f"{where}: its options of {name} are not in the form in which a run writes them"
    layer = receipt_layer(run.receipt["configs"], origin=where, with_tokenizer=True)
    for table in layer.values:
        for key, value in layer.table(table).items():
            yield from layer.text_problems(table, key, value)
    if not has_own_platforms(run.receipt) and run.receipt["platform_vocab"]["digest"] != sha256_file(PUBLISHED):
        yield f"{where}: its platform vocabulary is not the one of this version, and none of the user's own"
    if has_own_platforms(run.receipt) and PLATFORM_VOCAB in run.files:
        yield from _check_own_platforms(run)


def _check_own_platforms(run: RunUnits) -> Iterator[str]:
    """Check that a vocabulary with platforms of the user's own is the one that their tables give."""
    where, data = run.out.where(PLATFORM_VOCAB), run.out.read_bytes(PLATFORM_VOCAB)
    try:
        expected = recorded_platforms(data, where=where).vocab
    except ConfigError as error:
        yield str(error)
        return
    if data != expected:
        yield f"{where}: its labels are not those of this version with those of its own tables"


def _schema(name: str, ingest: Mapping[str, Any]) -> pa.Schema | None:
    """Return the columns that a file may have; None for token shards, whose columns are proved with their rows."""
    if name.startswith("documents/"):
        return REJECTS if name.startswith(REJECTS_PREFIX) else documents_schema(ingest)
    if name == "tokenizer/decisions.parquet":
        return DECISIONS
    folder, _, file = name.rpartition("/")
    if folder == PARTS:
        family = Family(file.partition("-")[0])
        return PARTITIONED_WORDS if family.is_partitioned else partial_schema(family)
    if folder.startswith("counts/"):
        return WORDS
    return merged_schema(Family(file.removesuffix(".parquet"))) if folder == "counts" else None


def _check_columns(run: RunUnits, name: str, schema: pa.Schema) -> Iterator[str]:
    where = run.out.where(name)
    with run.out.open_local(name) as path, naming_damage(where), pq.ParquetFile(path) as table:
        if name not in run.documents:  # those are looked at with their contents
            yield from check_footer(path, table, where)
        for problem in column_problems(table, schema, complete=is_installed(run.receipt["code"])):
            yield f"{where}: {problem}"


def check_reasons(run: RunUnits, name: str, options: IngestOptions) -> Iterator[str]:
    """Check that the options drop documents for the reasons of rejects, and that path and size do not deny them."""
    with run.out.open_ranges(name) as file, pq.ParquetFile(file) as table:
        rows = table.read(["column", "reason", "path", "num_bytes"], use_threads=False)
    kinds = rows.select(["column", "reason"]).group_by(["column", "reason"]).aggregate([]).to_pylist()
    for kind in kinds:
        if not is_possible(kind["column"], kind["reason"], options):
            yield f"{run.out.where(name)}: by the options nothing is {kind['column']} for the reason {kind['reason']!r}"
    columns: list[list[Any]] = [rows.column(key).to_pylist() for key in ("column", "reason", "path", "num_bytes")]
    for column, reason, path, num_bytes in zip(*columns, strict=True):
        if wrong := _denies(reason or column, path, num_bytes, options, is_dead=column == Column.DEAD):
            yield f"{run.out.where(name)}: {path} is {f'{column} {reason}'.rstrip()}, and {wrong}"
            break


def _check_withdrawn(run: RunUnits, name: str, withdrawals: Withdrawals | None) -> Iterator[str]:
    """Check that a list names what is withdrawn, as far as rejects say it: by path or project, or by what they lack."""
    if withdrawals is None or withdrawals.counts["doc_ids"] or withdrawals.counts["licenses"]:
        return
    with run.out.open_ranges(name) as file, pq.ParquetFile(file) as table:
        rows = table.read(["project", "path", "reason"], use_threads=False)
    rows = rows.filter(pc.field("reason") == str(Filtered.WITHDRAWN))
    for column in ("doc_id", "license"):
        rows = rows.append_column(column, pa.array([""] * len(rows)))
    named = {row for row, _ in withdrawals.find(rows)}
    for row in sorted(set(range(len(rows))) - named)[:1]:
        yield f"{run.out.where(name)}: {rows.column('path')[row]} is withdrawn, and {WITHDRAWN} does not name it"


def _denies(reason: str, path: str, num_bytes: int, options: IngestOptions, *, is_dead: bool) -> str:
    """Return how path or size of a reject deny the reason for it, which is that of the first filter that drops it."""
    is_named = not (options.readers or options.document_separator or _is_in_table(path))
    if is_dead:
        is_loose = is_named and kind_of(path) is Kind.FILE
        return "is neither an archive nor a table" if is_loose and reason in _OF_ARCHIVES else ""
    is_taken = not is_named or accepts_extension(path, options)
    if reason == Filtered.EXTENSION:
        return "has an extension that the options accept" if is_named and is_taken else ""
    if reason == Filtered.LIMIT:
        return ""  # also of an archive that is read no further
    if not is_taken:
        return "has an extension that the options do not accept"
    if (reason == Filtered.SAMPLE) == in_sample(path, options.sample):
        return f"{'is' if reason == Filtered.SAMPLE else 'is not'} in the sample that the options take"
    if reason == Filtered.SAMPLE:
        return ""  # nothing was read of it
    if (reason == Filtered.SIZE) != (num_bytes > options.max_document_bytes):
        return f"has {num_bytes} bytes, of which the options allow {options.max_document_bytes}"
    return f"has {num_bytes} bytes" if (reason == Column.EMPTY) != (num_bytes == 0) else ""


def is_possible(column: str, reason: str, options: IngestOptions) -> bool:
    """Return whether the options drop documents for a reason, in a column of the ledger."""
    if column == Column.DEAD:
        return reason in set(Dead)
    if column != Column.FILTERED:
        return not reason and (column == Column.EMPTY or (column == Column.DUPLICATE and options.drop_duplicates))
    name = _OPTION_OF.get(reason)
    if name is not None:
        return getattr(options, name) not in (_OFF.get(name), False, None, ())
    return reason in (Filtered.EXTENSION, Filtered.SIZE) or reason in options.filters


def _check_extensions(run: RunUnits, options: IngestOptions) -> Iterator[str]:
    """Check that documents are in the sample and have accepted extensions, but for rows of tables, without paths."""
    for name in sorted(run.documents):
        with run.out.open_ranges(name) as file, pq.ParquetFile(file) as table:
            paths: list[Any] = table.read(["path"], use_threads=False).column("path").to_pylist()
        for path in paths:
            if not accepts_extension(path, options) and not _is_in_table(path):
                yield f"{run.out.where(name)}: {path} has an extension that the options do not accept"
                break
            if not in_sample(path, options.sample):
                yield f"{run.out.where(name)}: {path} is not in the sample that the options take"
                break


def _is_in_table(path: str) -> bool:
    return any(kind_of(folder) in _TABLES for folder in path.split("/")[:-1])


def check_copies(run: RunUnits) -> Iterator[str]:
    """Find a document that is kept twice, by the digest of its bytes in the source."""
    found = []
    for name in sorted(run.documents):
        with run.out.open_ranges(name) as file, pq.ParquetFile(file) as table:
            names = [column for column in ("source_doc_id", "doc_id") if column in table.schema_arrow.names]
            columns = table.read(names, use_threads=False).columns
        found.append(_digests(pc.coalesce(*columns).to_pylist()))
    copies, times = np.unique(np.concatenate([np.zeros(0, _DIGESTS), *found]), return_counts=True)
    if (times > 1).any():
        copy, number = copies[times > 1].tobytes().hex()[:_SHOWN_DIGITS], int(times.max())
        yield f"{run.out.where('documents')}: the document {copy}… is there {number} times, and copies are dropped"


def check_duplicates(run: RunUnits) -> Iterator[str]:
    """Check that copies and near-duplicates name a document that is kept; a copy has its size."""
    ids, sizes = [np.zeros(0, _DIGESTS)], [np.zeros(0, np.uint64)]
    for name in sorted(run.documents):
        with run.out.open_ranges(name) as file, pq.ParquetFile(file) as table:
            rows = table.read(["doc_id", "num_bytes"], use_threads=False)
        ids.append(_digests(rows.column("doc_id").to_pylist()))
        sizes.append(rows.column("num_bytes").to_numpy())
    order = np.argsort(kept := np.concatenate(ids))
    known, kept_bytes = kept[order], np.concatenate(sizes)[order]
    for name in sorted(run.files):
        if not name.startswith(REJECTS_PREFIX):
            continue
        with run.out.open_ranges(name) as file, pq.ParquetFile(file) as table:
            rejects = table.read(["column", "reason", "path", "num_bytes", "detail"], use_threads=False)
        for column, reason, layout in _COPIES:
            rows = rejects.filter((pc.field("column") == column) & (pc.field("reason") == reason))
            details: list[Any] = rows.column("detail").to_pylist()
            matches = [layout.fullmatch(detail or "") for detail in details]
            copies = _digests([match["digest"] if match else _NO_DIGEST for match in matches])
            places = np.searchsorted(known, copies)
            found = places < len(known)
            found[found] = known[places[found]] == copies[found]
            found &= np.array([match is not None for match in matches], bool)
            if column == Column.DUPLICATE:
                found[found] = kept_bytes[places[found]] == rows.column("num_bytes").to_numpy()[found]
            if not found.all():
                path = rows.column("path")[int(np.flatnonzero(~found)[0])]
                said = reason or column
                yield f"{run.out.where(name)}: {path} is a {said}, and no document of its digest and size is kept"


def _digests(digests: list[Any]) -> npt.NDArray[Any]:
    return np.frombuffer(bytes.fromhex("".join(digests)), _DIGESTS)
