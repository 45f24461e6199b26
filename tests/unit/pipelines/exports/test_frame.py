"""The frame of exports: a stage of its own in a folder of its own, resumable, with a manifest that proves it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from configs.exports import ExportConfig, load_export_config
from configs.tables import EXPORT_FLAGS
from pipelines.console.progress import Reporters
from pipelines.exports.frame import Export, open_export
from pipelines.stages import session
from pipelines.stages.session import locked
from pipelines.versions.verify import verify
from schemas.errors import ConfigError, IntegrityError
from schemas.options import Options
from schemas.units import Stage, Unit, UnitReceipt
from transforms.records.manifests import MANIFEST, verify_export
from transforms.storage.folder import OutputFolder
from transforms.storage.protocol import Lock
from transforms.tokens.shards import TokenShard, open_token_shard
from transforms.units.flow import RunUnits

COUNTED = dict.fromkeys(("documents_in", "tokens_in", "sequences", "segments", "positions", "positions_with_loss"), 0)
"""Totals without which no unit of sequences is read."""


class Counting(Options):
    """The options of a small export: the paths of the documents, or only their number."""

    paths: bool = True


@dataclass(frozen=True, kw_only=True)
class Settings:
    out: OutputFolder
    run: OutputFolder


def list_documents(unit: Unit, settings: Settings) -> UnitReceipt:
    """Write the paths of a token shard into a file."""
    with open_token_shard(settings.run, TokenShard(**unit.payload)) as file:
        paths: list[Any] = file.read(columns=["path"])["path"].to_pylist()

    def write(target: Path) -> int:
        target.write_text("\n".join(paths))
        return len(paths)

    output = settings.out.publish(f"sequences/part-{unit.key}.txt", write)
    return UnitReceipt(stage=Stage.SEQUENCES, key=unit.key, outputs=(output,), totals={**COUNTED, "rows": len(paths)})


def export(config: ExportConfig[Counting]) -> dict[str, Any]:
    with open_export(config, Reporters(), Stage.SEQUENCES) as work:
        units = [
            work.unit(
                Stage.SEQUENCES,
                shard.path,
                shard.to_json(),
                inputs=[shard.sha256],
                config=work.options.to_json(),
                num_bytes=shard.num_bytes,
            )
            for shard in work.shards
        ]
        settings = Settings(out=work.session.out, run=work.run)
        step = RunUnits(work=list_documents, settings=settings)
        receipts = work.run_units(Stage.SEQUENCES, units, (step,))
        return work.publish(
            Stage.SEQUENCES, receipts, totals={"documents": sum(receipt.totals["rows"] for receipt in receipts)}
        )


@pytest.fixture
def config(run: Any, tmp_path: Path) -> ExportConfig[Counting]:
    return ExportConfig(run=run.out, out=tmp_path / "export", options=Counting())


def tree(folder: Path) -> dict[str, tuple[bytes, int]]:
    files = [
        path for path in folder.rglob("*") if path.is_file() and ".cache" not in path.parts and path.name != ".lock"
    ]
    return {path.relative_to(folder).as_posix(): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def test_every_token_shard_goes_through_and_the_manifest_says_from_what(run: Any, config: Any) -> None:
    manifest = export(config)
    assert len(manifest["files"]) == len(run.receipt["dataset"]["shards"]) > 1
    assert manifest["totals"] == {"documents": run.receipt["dataset"]["documents"]}
    assert manifest["dataset"] == {"digest": run.receipt["dataset"]["digest"], "receipt": run.receipt["digest"]}
    assert manifest["tokenizer"]["digest"] == run.receipt["tokenizer"]["digest"]
    assert verify_export(OutputFolder(config.out)) == []


def test_a_run_is_only_read(run: Any, config: Any) -> None:
    before = tree(run.out)
    export(config)
    assert tree(run.out) == before


def test_finished_parts_are_kept_and_missing_ones_are_made_again(config: Any) -> None:
    export(config)
    before = tree(config.out)
    lost = sorted(name for name in before if name.endswith(".txt"))[0]
    for name in (lost, MANIFEST):
        (config.out / name).unlink()
    export(config)
    after = tree(config.out)
    assert {name: data for name, (data, _) in after.items()} == {name: data for name, (data, _) in before.items()}
    written = {name for name in after if after[name] != before[name]}
    assert {lost, MANIFEST} <= written < set(after)
    assert len([name for name in written if name.endswith(".txt")]) == 1


def test_a_unit_receipt_that_goes_while_the_manifest_is_made_is_named_and_in_no_manifest(
    config: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def remove_one(work: Export[Counting], stage: Stage, receipts: list[UnitReceipt], **facts: Any) -> dict[str, Any]:
        (config.out / receipts[0].path).unlink()
        return publish(work, stage, receipts, **facts)

    publish = Export.publish
    monkeypatch.setattr(Export, "publish", remove_one)
    with pytest.raises(FileNotFoundError, match="units/sequences/_unit-"):
        export(config)
    assert not (config.out / MANIFEST).exists()


def test_other_options_leave_nothing_of_the_old_ones(config: Any) -> None:
    export(config)
    old = set(tree(config.out))
    export(ExportConfig(run=config.run, out=config.out, options=Counting(paths=False)))
    assert old & set(tree(config.out)) == {MANIFEST}
    assert verify_export(OutputFolder(config.out)) == []


@pytest.mark.parametrize("kind", ["sequences/*.txt", "units/sequences/_unit-*.json"])
@pytest.mark.parametrize("harm", ["changed", "missing"])
def test_verify_names_what_was_harmed(config: Any, kind: str, harm: str) -> None:
    export(config)
    path = sorted(config.out.glob(kind))[0]
    path.unlink() if harm == "missing" else path.write_bytes(path.read_bytes() + b" ")
    (difference,) = verify_export(OutputFolder(config.out))
    assert str(path) in difference


def test_verify_finds_a_manifest_that_was_changed(config: Any) -> None:
    export(config)
    path = config.out / MANIFEST
    path.write_text(json.dumps({**json.loads(path.read_bytes()), "totals": {}}))
    (difference,) = verify_export(OutputFolder(config.out))
    assert "its digest is" in difference


def test_a_token_shard_that_is_not_the_receipts_is_refused(copied_run: Any, tmp_path: Path) -> None:
    path = sorted((copied_run.out / "tokens").glob("part-*"))[0]
    path.write_bytes(path.read_bytes() + b" ")
    config = ExportConfig(run=copied_run.out, out=tmp_path / "export", options=Counting())
    with pytest.raises((IntegrityError, RuntimeError), match=path.name):
        export(config)
    assert not (tmp_path / "export" / MANIFEST).exists()


def test_a_run_without_receipt_and_the_folder_of_a_run_are_refused(run: Any, tmp_path: Path) -> None:
    shutil.copytree(run.out / "tokens", tmp_path / "unfinished" / "tokens")
    for config, message in (
        (ExportConfig(run=tmp_path / "unfinished", out=tmp_path / "export", options=Counting()), "no receipt.json"),
        (ExportConfig(run=run.out, out=run.out, options=Counting()), "which no export of sequences wrote"),
    ):
        with pytest.raises(ConfigError, match=message):
            export(config)


def test_a_tokenizer_that_is_not_the_receipts_is_refused(copied_run: Any, tmp_path: Path) -> None:
    manifest = copied_run.out / "tokenizer" / "manifest.json"
    manifest.write_bytes(manifest.read_bytes() + b" ")
    with pytest.raises(IntegrityError, match=r"the receipt says [0-9a-f]{64}; put that one back"):
        export(ExportConfig(run=copied_run.out, out=tmp_path / "export", options=Counting()))


def test_an_unfinished_export_is_reported(run: Any, tmp_path: Path) -> None:
    export(ExportConfig(run=run.out, out=tmp_path / "export", options=Counting()))
    (tmp_path / "export" / MANIFEST).unlink()
    assert [line.rpartition(": ")[2] for line in verify(str(tmp_path / "export"))] == ["export again"]


@pytest.mark.parametrize(
    "name", ["notes.txt", "sequences/notes.txt", "shards/cpp_train_000000.bin", "tokenizer/tokenizer.json"]
)
def test_a_folder_with_foreign_files_is_refused_and_left_alone(run: Any, tmp_path: Path, name: str) -> None:
    precious = tmp_path / "home" / name
    precious.parent.mkdir(parents=True)
    precious.write_text("precious")
    with pytest.raises(ConfigError, match=f"it holds {name}, which no (run|export of sequences) wrote"):
        export(ExportConfig(run=run.out, out=tmp_path / "home", options=Counting()))
    assert precious.read_text() == "precious"
    assert [path for path in (tmp_path / "home").rglob("*") if path.is_file()] == [precious]


def test_a_folder_that_another_command_took_meanwhile_is_refused(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def locked_late(out: OutputFolder) -> Iterator[Lock]:
        out.publish_bytes("receipt.json", b"{}")
        with locked(out) as lock:
            yield lock

    monkeypatch.setattr(session, "locked", locked_late)
    with pytest.raises(ConfigError, match=r"it holds receipt.json, which no export of sequences wrote"):
        export(ExportConfig(run=run.out, out=tmp_path / "out", options=Counting()))


@pytest.mark.parametrize(
    ("out", "message"),
    [("{run}/export", "lies in the run"), ("{run}/..", "lies in it"), ("{run}/receipt.json", "is a file")],
)
def test_an_export_into_or_over_its_run_is_refused(run: Any, out: str, message: str) -> None:
    load = partial(load_export_config, Counting, run=str(run.out), flags=EXPORT_FLAGS)
    with pytest.raises(ConfigError, match=message):
        load(values={"--out": out.format(run=run.out)})


def test_every_problem_of_the_flags_is_reported() -> None:
    values = {"--threads": "0", "--engine": "spork"}
    with pytest.raises(ConfigError) as caught:
        load_export_config(Counting, run="run", values=values, flags=EXPORT_FLAGS)
    said = str(caught.value)
    assert "--threads 0: not allowed" in said
    assert "--engine spork: not allowed" in said
    assert "no output folder: give --out DIR" in said
