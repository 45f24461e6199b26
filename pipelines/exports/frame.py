"""The frame of exports: from the token shards of a finished run to files of another shape, in a folder of their own.

An export works like a stage of a run: units with keys and receipts, one writer, the same engines. It has a manifest
instead of a receipt. The run itself is only read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any, Generic

import cppmill_core

from configs.exports import ExportConfig, ExportOptions
from pipelines.console.progress import Reporter
from pipelines.stages.session import Session, check_apart, check_unused, open_session
from schemas.errors import ConfigError, IntegrityError
from schemas.options import TokenizeOptions
from schemas.units import Stage, Unit, UnitReceipt, current_path, receipt_folder, unit_key
from transforms.records.code import code_versions
from transforms.records.manifests import (
    MANIFEST,
    ExportFacts,
    foreign_files,
    make_manifest,
    publish_manifest,
    read_intact_manifest,
    read_manifest,
)
from transforms.records.receipts import RECEIPT, read_receipt
from transforms.records.record import MALFORMED, reads_record
from transforms.storage.folder import OutputFolder
from transforms.tokens.shards import TokenShard, token_shards
from transforms.tokens.tokenizer import check_tokenizer
from transforms.units.flow import Flow

RunStage = Callable[[Stage, Sequence[Unit], Flow], list[UnitReceipt]]
"""Runs the units of a stage through a flow and returns their receipts, in order."""


@dataclass(frozen=True, kw_only=True)
class ExportSource(Generic[ExportOptions]):
    """What an export is made from: it decides every byte.

    Attributes:
        run: The folder of the run.
        receipt: The receipt of the run.
        shards: Its token shards, in the order of their paths: the same wherever and however the run was carried out.
        options: What else decides the bytes.
        core_version: Version of the native core that makes it, or made it.
    """

    run: OutputFolder
    receipt: dict[str, Any]
    shards: Sequence[TokenShard]
    options: ExportOptions
    core_version: str = cppmill_core.__version__

    @property
    def tokenize_options(self) -> TokenizeOptions:
        """The options with which the run was tokenized.

        Raises:
            IntegrityError: If the receipt has others than there are.
        """
        with reads_record(self.run.where(RECEIPT), kind="receipt"):
            return TokenizeOptions.model_validate(self.receipt["configs"]["tokenize"])

    def unit(
        self,
        stage: Stage,
        label: str,
        payload: dict[str, Any],
        *,
        inputs: Any,  # noqa: ANN401 - JSON
        config: dict[str, Any],
        num_bytes: int,
    ) -> Unit:
        """Return a unit of the export.

        Args:
            stage: The stage that runs it.
            label: What a person calls it, for messages.
            payload: What the stage needs to run it, JSON values.
            inputs: The SHA-256 of the token shards that it reads, and what else distinguishes it from other units.
            config: The options that decide its output; the tokenizer's digest is added.
            num_bytes: Bytes of input, for progress.
        """
        key = unit_key(
            stage,
            core_version=self.core_version,
            config={"tokenizer": self.receipt["tokenizer"]["digest"], **config},
            inputs=inputs,
        )
        return Unit(stage=stage, key=key, num_bytes=num_bytes, label=label, payload=payload)

    def shard_units(self, stage: Stage, *, config: dict[str, Any]) -> list[Unit]:
        """Return one unit for each token shard.

        Args:
            stage: The stage that runs them.
            config: The options that decide the output.
        """
        return [
            self.unit(
                stage,
                shard.path,
                shard.to_json(),
                inputs=[shard.sha256],
                config=config,
                num_bytes=shard.num_bytes,
            )
            for shard in self.shards
        ]


@dataclass(frozen=True, kw_only=True)
class Export(ExportSource[ExportOptions]):
    """An export in progress.

    Attributes:
        session: The session in the folder of the export: `run_units` carries out its stages.
    """

    session: Session[ExportConfig[ExportOptions]]

    def run_planned(
        self, stage: Stage, lookups: Stage, plan: Callable[[RunStage], Iterable[Unit]], flow: Flow
    ) -> list[UnitReceipt]:
        """Run the units of a plan that are not up to date, and return the receipts of all, in order.

        What was looked up in token shards is kept, and used again if the manifest of an export of the same run and
        options names the units that it leads to; otherwise it is looked up again.

        Args:
            stage: The stage.
            lookups: The stage whose units look up, in each token shard, what the plan needs.
            plan: Returns the units, given what runs those of the lookups.
            flow: What the units go through.
        """
        if (named := self._named_receipts()) is not None:
            units = list(islice(plan(self.session.run_units), len(named) + 1))
            if named == {unit.receipt_path for unit in units}:
                return self.run_units(stage, units, flow)
        self.session.out.remove_folder(receipt_folder(lookups))
        return self.run_units(stage, list(plan(self.session.run_units)), flow)

    def _named_receipts(self) -> set[str] | None:
        """Return the unit receipts that the manifest names; None without one of the same run, options and code."""
        try:
            manifest = read_intact_manifest(self.session.out)
            made_of = (manifest["dataset"]["receipt"], manifest["options"], manifest["code"])
            named = set(map(current_path, manifest["receipts"]))
        except (IntegrityError, *MALFORMED):
            return None
        return named if made_of == (self.receipt["digest"], self.options.to_json(), code_versions()) else None

    def run_units(self, stage: Stage, units: Sequence[Unit], flow: Flow) -> list[UnitReceipt]:
        """Run the units that are not up to date, and return the receipts of all, in order.

        If there are any, the manifest is withdrawn first, as files that it names are about to change.

        Args:
            stage: The stage.
            units: Every unit of the stage.
            flow: What they go through.
        """
        if not all(self.session.out.each(self.session.is_up_to_date, units)):
            self.session.out.remove(MANIFEST)
        return self.session.run_units(stage, units, flow)

    def publish(
        self,
        stage: Stage,
        receipts: Sequence[UnitReceipt],
        *,
        totals: dict[str, Any],
        facts: Mapping[str, dict[str, Any]] | None = None,
    ) -> dict[str, Any]:
        """Write the manifest, remove what it does not name, and return it.

        Args:
            stage: The stage that wrote the files.
            receipts: The receipts of its units: the manifest names them and the files that they name.
            totals: What the files add up to.
            facts: What the manifest says about files besides path, SHA-256, bytes and rows, by path.
        """
        out = self.session.out
        manifest = make_manifest(
            ExportFacts(
                run=self.receipt,
                stage=stage,
                options=self.options.to_json(),
                files=[output for receipt in receipts for output in receipt.outputs],
                facts=facts or {},
                receipts={receipt.path: out.describe(receipt.path).sha256 for receipt in receipts},
                totals=totals,
                code=code_versions(),
            )
        )
        publish_manifest(out, manifest, stage)
        return manifest


@contextmanager
def open_export(
    config: ExportConfig[ExportOptions], reporter: Reporter, stage: Stage
) -> Iterator[Export[ExportOptions]]:
    """Open a finished run for reading and a folder of an export for writing.

    Args:
        config: The run, the folder, the options.
        reporter: Where progress goes.
        stage: The stage that writes the files.

    Raises:
        ConfigError: If the run is not finished, or the folder holds what no such export wrote; all that `open_session`
            raises.
        IntegrityError: If the receipt cannot be read, or the tokenizer is not the one that it names.
        LockedError: If something else is writing there.
    """

    def check_folder(out: OutputFolder) -> None:
        check_apart(out)
        foreign = next(foreign_files(out, stage), None)
        if foreign is not None:
            raise ConfigError(
                f"--out {out.root}: it holds {foreign}, which no export of {stage} wrote; name another folder"
            )
        check_unused(out, is_export=_has_manifest(out))

    source = open_source(OutputFolder(config.run), config.options)
    with open_session(config, reporter, check_folder) as session:
        yield Export(session=session, **vars(source))


def _has_manifest(out: OutputFolder) -> bool:
    """Return whether a folder has a manifest that an export wrote, and not another file of this name."""
    try:
        return read_manifest(out) is not None
    except IntegrityError:
        return False


def open_source(
    run: OutputFolder, options: ExportOptions, *, core_version: str = cppmill_core.__version__
) -> ExportSource[ExportOptions]:
    """Open a finished run to export it.

    Args:
        run: Its folder.
        options: The options of the export.
        core_version: Version of the native core that makes it, or made it.

    Raises:
        ConfigError: If the run is not finished.
        IntegrityError: If the receipt cannot be read, or the tokenizer is not the one that it names.
    """
    receipt = read_receipt(run)
    check_tokenizer(run, receipt)
    shards = token_shards(receipt)
    return ExportSource(run=run, receipt=receipt, shards=shards, options=options, core_version=core_version)
