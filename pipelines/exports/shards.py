"""The shards program: the token shards of a finished run to `.bin` shards or Megatron pairs, split for validation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from cppmill_core import InvalidInputError
from cppmill_core.manifests import BOS

from configs.exports import ExportConfig
from pipelines.console.progress import Reporter
from pipelines.exports.frame import Export, ExportSource, RunStage, open_export
from pipelines.tokenizers.codec import load_tokenizer
from schemas.digests import add_digests
from schemas.errors import ConfigError, IntegrityError
from schemas.export_options import ShardOptions
from schemas.printing import count
from schemas.units import Stage, Unit, UnitReceipt
from transforms.exports.shards.formats import MAX_BIN_VOCABULARY
from transforms.exports.shards.plan import FilePlan, plan_files
from transforms.exports.shards.platforms import ENDING
from transforms.exports.shards.splits import SPLITS, SplitSettings, count_splits
from transforms.exports.shards.streams import Borders
from transforms.exports.shards.writer import ShardSettings, file_name, write_shard
from transforms.storage.folder import OutputFolder
from transforms.tokens.tokenizer import end_name
from transforms.units.flow import RunUnits


def run(config: ExportConfig[ShardOptions], reporter: Reporter) -> None:
    """Write the training shards of a run and return a summary.

    Raises:
        ConfigError: If the format cannot hold the ids, or the tokenizer lacks the id that documents are to begin with.
        IntegrityError: If what was written does not add up to the dataset.
    """
    with open_export(config, reporter, Stage.SHARDS) as export:
        settings = shard_settings(export, export.session.out, threads=export.session.config.worker_threads)
        plan, write = partial(plan_units, export, settings), RunUnits(work=write_shard, settings=settings)
        receipts = export.run_planned(Stage.SHARDS, Stage.SPLITS, plan, (write,))
        totals = sum_splits(receipts)
        check_splits(export, totals, more=settings.borders.more, where=settings.out.root)
        manifest = export.publish(Stage.SHARDS, receipts, totals=totals, facts=describe_files(receipts))
        for line in describe(export, manifest, settings):
            reporter.note(line)


def shard_settings(source: ExportSource[ShardOptions], out: OutputFolder, *, threads: int) -> ShardSettings:
    """Return what the workers need to write into a folder.

    Raises:
        ConfigError: If the format cannot hold the ids, or the tokenizer lacks the id that documents are to begin with.
    """
    vocab_size = source.receipt["tokenizer"]["vocab_size"]
    if source.options.format == "bin" and vocab_size > MAX_BIN_VOCABULARY:
        raise ConfigError(
            f"--format bin: it holds ids below {MAX_BIN_VOCABULARY:,}, and the vocabulary of {source.run.root} has "
            f"{vocab_size:,} ids; take --format megatron"
        )
    return ShardSettings(
        out=out,
        run=source.run,
        options=source.options,
        borders=find_borders(source),
        vocab_size=vocab_size,
        threads=threads,
    )


def find_borders(source: ExportSource[ShardOptions]) -> Borders:
    """Return which control tokens surround documents, in the run's receipt and in the source."""
    policy, wanted = source.receipt["policy"], source.options.bos
    tokenize = source.tokenize_options
    with source.run.open_local_folder("tokenizer") as directory:
        tokenizer = load_tokenizer(directory, argument="RUN")

    def control(name: str) -> int:
        try:
            return tokenizer.control_id(name)
        except InvalidInputError as error:
            raise ConfigError(f"--bos {wanted}: {error}; take --bos dataset or --bos none") from error

    return Borders(
        wanted=wanted,
        bos=control(BOS) if policy["bos"] else None,
        eos=control(end_name(tokenizer, tokenize)) if policy["eos"] else None,
        added=control(BOS) if wanted == "document" and not policy["bos"] else None,
    )


def plan_units(source: ExportSource[ShardOptions], settings: ShardSettings, run_units: RunStage) -> Iterator[Unit]:
    """Yield one unit per file, after counting what each token shard has in each split.

    Args:
        source: The run and the options.
        settings: What the workers need.
        run_units: Runs the units that count.
    """
    options = source.options
    config = {"split_by": options.split_by, "validation_fraction": options.validation_fraction}
    splits = SplitSettings(
        out=settings.out,
        run=source.run,
        split_by=options.split_by,
        validation_fraction=options.validation_fraction,
    )
    count = RunUnits(work=count_splits, settings=splits)
    counts = run_units(Stage.SPLITS, source.shard_units(Stage.SPLITS, config=config), (count,))
    plans = plan_files(
        [count.totals for count in counts], more=settings.borders.more, shard_tokens=options.shard_tokens
    )
    for plan in plans:
        yield _plan_unit(source, plan)


def sum_splits(receipts: Sequence[UnitReceipt]) -> dict[str, dict[str, Any]]:
    """Return what each split adds up to."""
    return {
        split: _sum_split([receipt for receipt in receipts if receipt.totals["split"] == split]) for split in SPLITS
    }


def check_splits(
    source: ExportSource[ShardOptions], totals: Mapping[str, dict[str, Any]], *, more: int, where: str
) -> None:
    """Check that both splits together are the dataset, each document once.

    Args:
        source: The run.
        totals: What `sum_splits` returns.
        more: How many tokens more each document has in the export.
        where: The export, for messages.

    Raises:
        IntegrityError: If they are not.
    """
    dataset = source.receipt["dataset"]
    expected = {
        "documents": dataset["documents"],
        "bytes": dataset["bytes"],
        "tokens": dataset["tokens"] + more * dataset["documents"],
        "dataset_digest": dataset["digest"],
    }
    found: dict[str, Any] = {
        name: sum(total[name] for total in totals.values()) for name in ("documents", "bytes", "tokens")
    }
    found["dataset_digest"] = add_digests(total["dataset_digest"] for total in totals.values())
    for name, value in expected.items():
        if found[name] != value:
            raise IntegrityError(
                f"{where}: both splits have {name} {found[name]}, the run's receipt asks for {value}; "
                "delete the folder and export again"
            )


def describe(export: Export[ShardOptions], manifest: dict[str, Any], settings: ShardSettings) -> list[str]:
    """Return what was made, in plain words, and the arguments for a training program."""
    lines = [
        f"{split:<9} {count(total['documents'], 'document')}, {count(total['tokens'], 'token')} in "
        f"{count(total['files'], 'file')}"
        for split, total in manifest["totals"].items()
    ]
    for split, total in manifest["totals"].items():
        if not total["documents"]:
            lines.append(
                f"{split} is empty: no {export.options.split_by} hashes into it; take another "
                "--validation-fraction, or --split-by document"
            )
    return [*lines, *_advice(manifest, settings), f"manifest  {manifest['digest']}"]


def _advice(manifest: dict[str, Any], settings: ShardSettings) -> list[str]:
    files = [file for file in manifest["files"] if file["path"].endswith(".bin")]
    if settings.options.format == "bin":
        return [
            f"{split:<9} {settings.out.where(f'shards/{settings.options.name}_{split}_*.bin')}"
            for split, total in manifest["totals"].items()
            if total["files"]
        ]
    lines = []
    for split, flag in (("train", "--train-data-path"), ("val", "--valid-data-path")):
        blend = [
            f"{file['tokens']} {settings.out.where(file['path'].removesuffix('.bin'))}"
            for file in files
            if file["split"] == split
        ]
        lines += [f"{flag} {' '.join(blend)}"] if blend else []
    return lines


def _plan_unit(source: ExportSource[ShardOptions], plan: FilePlan) -> Unit:
    parts: list[dict[str, Any]] = [
        {"shard": source.shards[number].to_json(), "place": place} for number, place in plan.parts
    ]
    policy = {name: source.receipt["policy"][name] for name in ("bos", "eos")}
    dataset = source.receipt["dataset"]
    return source.unit(
        Stage.SHARDS,
        f"{file_name(source.options, plan.split, plan.index)}.bin",
        {"split": plan.split, "index": plan.index, "begin": plan.begin, "end": plan.end, "parts": parts},
        inputs=[plan.split, plan.begin, plan.end, [[part["shard"]["sha256"], part["place"]] for part in parts]],
        config={"options": source.options.to_json(), "policy": policy},
        num_bytes=dataset["bytes"] * (plan.end - plan.begin) // max(dataset["tokens"], 1),
    )


def _sum_split(receipts: Sequence[UnitReceipt]) -> dict[str, Any]:
    sums = {name: sum(receipt.totals[name] for receipt in receipts) for name in ("documents", "bytes", "tokens")}
    return {
        "files": sum(bool(receipt.outputs) for receipt in receipts),
        **sums,
        "dataset_digest": add_digests(receipt.totals["dataset_digest"] for receipt in receipts),
    }


def describe_files(receipts: Sequence[UnitReceipt]) -> dict[str, dict[str, Any]]:
    """Return what the manifest says of each file, by its ending: its split, its tokens and the SHA-256 of these."""
    names = {".bin": ("split", "tokens", "ids_sha256"), ENDING: ("split", "tokens")}
    return {
        output.path: {name: receipt.totals[name] for name in names[ending]}
        for receipt in receipts
        for output in receipt.outputs
        if (ending := PurePosixPath(output.path).suffix) in names
    }
