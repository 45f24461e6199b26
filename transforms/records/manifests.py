"""The manifest of an export, and its verification: what was made from which run, and every file with its SHA-256.

It is written last, and removed before any file that it names changes: an export with a manifest is complete.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from schemas.digests import canonical_json, with_digest
from schemas.errors import IntegrityError
from schemas.units import RECEIPT_FOLDERS, OutputFile, Stage, receipt_folder
from transforms.records.platforms import platform_vocab_size
from transforms.records.record import (
    MALFORMED,
    check_files,
    check_form,
    check_record,
    malformed,
    read_record,
    reads_record,
)
from transforms.storage.folder import OutputFolder

MANIFEST = "manifest.json"
MANIFEST_FORMAT = "cppmill-export-1"

_FORM: dict[str, Any] = {
    "export": str,
    "tokenizer": {"digest": str, "vocab_size": int},
    "dataset": {"digest": str, "receipt": str},
    "options": dict,
    "files": [{"path": str, "sha256": str}],
    "receipts": {"": str},
    "totals": dict,
    "code": {"": str},
}
"""What every manifest has: commands read it without looking whether it is there."""

_AGAIN = "export again"


@dataclass(frozen=True, kw_only=True)
class ExportFacts:
    """Everything that a manifest is made from.

    Attributes:
        run: The receipt of the run.
        stage: The stage that wrote the files.
        options: The options of the export, JSON values.
        files: The files.
        facts: More about files than path, SHA-256, bytes and rows, by path.
        receipts: SHA-256 of the units' receipts, by path.
        totals: What the files add up to.
        code: Versions of the code and of the dependencies that determine the output's bytes.
    """

    run: dict[str, Any]
    stage: Stage
    options: dict[str, Any]
    files: Sequence[OutputFile]
    facts: Mapping[str, dict[str, Any]]
    receipts: dict[str, str]
    totals: dict[str, Any]
    code: dict[str, str]


def make_manifest(facts: ExportFacts) -> dict[str, Any]:
    """Return the manifest of an export as JSON values, with its own digest."""
    files = [{**asdict(file), **facts.facts.get(file.path, {})} for file in facts.files]
    manifest = {
        "format": MANIFEST_FORMAT,
        "export": str(facts.stage),
        "tokenizer": {name: facts.run["tokenizer"][name] for name in ("digest", "vocab_size")},
        "dataset": {"digest": facts.run["dataset"]["digest"], "receipt": facts.run["digest"]},
        **_platform_vocab(facts),
        "options": facts.options,
        "files": sorted(files, key=lambda file: str(file["path"])),
        "receipts": facts.receipts,
        "totals": facts.totals,
        "code": facts.code,
    }
    return with_digest(manifest)


def _platform_vocab(facts: ExportFacts) -> dict[str, Any]:
    """Return digest and size of the platform vocabulary, if the files have ids of it."""
    if not facts.options.get("platform_ids"):
        return {}
    return {"platform_vocab": {"digest": facts.run["platform_vocab"]["digest"], "size": platform_vocab_size(facts.run)}}


def publish_manifest(out: OutputFolder, manifest: dict[str, Any], stage: Stage) -> None:
    """Publish the manifest, then remove the files of the stage that it does not name."""
    data = canonical_json(manifest)
    if not out.exists(MANIFEST) or out.read_bytes(MANIFEST) != data:
        out.publish_bytes(MANIFEST, data)
    for name in sorted(set(out.files()) - named_files(manifest).keys() - {MANIFEST, *foreign_files(out, stage)}):
        out.remove(name)
    for name in [name for folder in _folders(stage) for name in out.strangers(folder)]:
        out.remove(name)


def foreign_files(out: OutputFolder, stage: Stage) -> Iterator[str]:
    """Yield the files of a folder that an export of a stage cannot have written."""
    ours = tuple(f"{folder}/" for folder in _folders(stage))
    yield from (name for name in out.files() if not name.startswith(ours) and name != MANIFEST)


def _folders(stage: Stage) -> tuple[str, ...]:
    """Return the folders that an export of a stage writes."""
    return tuple({RECEIPT_FOLDERS[stage], receipt_folder(stage)})


def read_manifest(out: OutputFolder) -> dict[str, Any] | None:
    """Return the manifest of an export, or None if there is none.

    Raises:
        IntegrityError: If it is not a manifest of this version, or lacks what every one has.
    """
    manifest = read_record(out, MANIFEST, kind="manifest", record_format=MANIFEST_FORMAT, advice=_AGAIN)
    if manifest is not None:
        with reads_record(out.where(MANIFEST), kind="manifest", advice=_AGAIN):
            check_form(manifest, _FORM)
    return manifest


def read_intact_manifest(out: OutputFolder) -> dict[str, Any]:
    """Return the manifest of a finished export, after checking its own digest.

    Raises:
        IntegrityError: If there is none of this version, or it was changed.
    """
    manifest = read_manifest(out)
    problems = ["there is no manifest"] if manifest is None else list(check_record(out, MANIFEST, manifest))
    if manifest is None or problems:
        raise IntegrityError(f"{out.where(MANIFEST)}: {problems[0].removeprefix(f'{out.where(MANIFEST)}: ')}; {_AGAIN}")
    return manifest


def named_files(manifest: dict[str, Any]) -> dict[str, str]:
    """Return the SHA-256 of every file that a manifest names, by path."""
    return {**manifest["receipts"], **{file["path"]: file["sha256"] for file in manifest["files"]}}


def verify_export(out: OutputFolder) -> list[str]:
    """Return every difference between an export and its manifest, by reading every byte."""
    try:
        manifest = read_manifest(out)
        if manifest is None:
            return [f"{out.where(MANIFEST)}: there is no manifest; the export is unfinished: export again"]
        return [
            *check_record(out, MANIFEST, manifest),
            *check_files(out, MANIFEST, named_files(manifest), kind="manifest"),
        ]
    except IntegrityError as error:
        return [str(error)]
    except MALFORMED as error:
        return [malformed(out, MANIFEST, error, kind="manifest")]
