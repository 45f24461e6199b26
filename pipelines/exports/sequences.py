"""The program of `cppmill sequences`: a run's token shards to rows of one length."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from configs.exports import ExportConfig, load_export_config
from configs.mixtures import read_mixture
from configs.tables import SEQUENCE_FLAGS
from pipelines.console.progress import Reporter
from pipelines.exports.frame import Export, ExportSource, RunStage, open_export
from schemas.errors import ConfigError, IntegrityError
from schemas.export_options import SequenceOptions
from schemas.ledger import LEFT_OUT
from schemas.units import Stage, Unit, UnitReceipt
from transforms.exports.sequences.export import UNIT_TOKENS, SequenceSettings, sequence_unit
from transforms.exports.sequences.fill_in_middle import fim_ids
from transforms.exports.sequences.repositories import ProjectRows, ProjectSettings, find_projects, separator_id
from transforms.exports.sequences.segments import WEIGHT
from transforms.storage.folder import OutputFolder
from transforms.tokens.shards import TokenShard
from transforms.tokens.tokenizer import TokenizeSettings, open_tokenizer
from transforms.units.chunking import cut
from transforms.units.flow import RunUnits


def load_config(run: str, *, flags: Mapping[str, object], mixture: Path | None = None) -> ExportConfig[SequenceOptions]:
    """Return the configuration of the command.

    Args:
        run: The finished run.
        flags: Values by flag, text as it was typed; None for a flag that was not given.
        mixture: The file of weights.

    Raises:
        ConfigError: With one line for every problem.
    """
    weights: dict[str, object] = {}
    if mixture is not None:
        weights["default_weight"], weights["weights"] = read_mixture(mixture)
    config = load_export_config(SequenceOptions, run=run, values=flags, flags=SEQUENCE_FLAGS, options=weights)
    if config.options.repositories and config.options.fim_rate:
        raise ConfigError("--repositories --fim: cannot be combined; fill in the middle splits documents, not projects")
    if config.options.repositories and config.options.cursor_rate:
        raise ConfigError("--repositories --cursor: cannot be combined; cursors cut documents, not projects")
    if config.options.repositories and config.options.prefix:
        raise ConfigError("--repositories --prefix: cannot be combined; platforms are of documents, not of projects")
    return config


def run(config: ExportConfig[SequenceOptions], reporter: Reporter) -> None:
    """Make the sequences of a finished run, and the manifest."""
    with open_export(config, reporter, Stage.SEQUENCES) as export:
        check_prefix(export)
        settings = sequence_settings(export, export.session.out, threads=export.session.config.worker_threads)
        check_tokenizer(settings)
        plan, make = partial(plan_units, export, settings), RunUnits(work=sequence_unit, settings=settings)
        receipts = export.run_planned(Stage.SEQUENCES, Stage.PROJECTS, plan, (make,))
        totals = sum_totals(receipts)
        check_totals(export, totals, where=export.session.out.root)
        export.publish(Stage.SEQUENCES, receipts, totals=dict(sorted(totals.items())))
        for line in describe(totals, export.options):
            reporter.note(line)


def sequence_settings(source: ExportSource[SequenceOptions], out: OutputFolder, *, threads: int) -> SequenceSettings:
    """Return what the workers need to write into a folder."""
    tokens = TokenizeSettings(
        out=source.run,
        tokenizer_digest=source.receipt["tokenizer"]["digest"],
        options=source.tokenize_options,
        threads=threads,
    )
    return SequenceSettings(out=out, source=tokens, options=source.options)


def check_tokenizer(settings: SequenceSettings) -> None:
    """Check, before anything is started, that the tokenizer has the control tokens that are asked for.

    Raises:
        ConfigError: Naming the first one that it lacks, or if it is lossy and documents are to be encoded in parts.
        IntegrityError: If it is not the tokenizer of the run's receipt.
    """
    tokenizer = open_tokenizer(settings.source)
    if tokenizer.is_lossy and (settings.options.fim_rate or settings.options.cursor_rate):
        raise ConfigError(
            "--fim, --cursor: the tokenizer is lossy, and parts of a document do not make up the document: leave it out"
        )
    if settings.options.fim_rate:
        fim_ids(tokenizer)
    if settings.options.repositories:
        separator_id(tokenizer)


def check_prefix(export: Export[SequenceOptions]) -> None:
    """Check that the run has the prefixes that are asked for.

    Raises:
        ConfigError: If it has none.
    """
    if export.options.prefix and not export.receipt["configs"]["tokenize"]["platform_prefix"]:
        raise ConfigError(
            f"--prefix {export.options.prefix}: {export.run.root} has no lines of platforms; run again with "
            "--platform-prefix"
        )


def plan_units(source: ExportSource[SequenceOptions], settings: SequenceSettings, run_units: RunStage) -> list[Unit]:
    """Return the units of sequences; `run_units` runs those that find the projects, if they are to be joined."""
    return plan_repositories(source, settings, run_units) if source.options.repositories else plan_documents(source)


def plan_documents(source: ExportSource[SequenceOptions]) -> list[Unit]:
    """Return units of token shards: a shard more or less changes one or two of them."""
    ends = cut([(shard.sha256, shard.tokens) for shard in source.shards], UNIT_TOKENS)
    groups = [source.shards[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    return [_unit(source, group, {}, label=group[0].path) for group in groups]


def plan_repositories(
    source: ExportSource[SequenceOptions], settings: SequenceSettings, run_units: RunStage
) -> list[Unit]:
    """Find the projects of all token shards, and return units of whole projects, by name.

    Where a project's rows are is all that is known of it here; its tokens are read by one worker.
    """
    find = RunUnits(work=find_projects, settings=ProjectSettings(out=settings.out, run=source.run))
    lookups = source.shard_units(Stage.PROJECTS, config={})
    receipts = run_units(Stage.PROJECTS, lookups, (find,))
    projects: dict[str, list[ProjectRows]] = {}
    for shard, receipt in zip(source.shards, receipts, strict=True):
        for project, start, end, tokens in receipt.totals["projects"]:
            projects.setdefault(project, []).append(ProjectRows(project, shard.path, start, end, tokens))
    names = sorted(projects, key=str.encode)
    ends = cut([(name, sum(rows.tokens for rows in projects[name])) for name in names], UNIT_TOKENS)
    groups = [names[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    return [_repository_unit(source, [rows for name in group for rows in projects[name]]) for group in groups]


def _repository_unit(source: ExportSource[SequenceOptions], rows: Sequence[ProjectRows]) -> Unit:
    shards = {shard.path: shard for shard in source.shards}
    used = [shards[path] for path in sorted({row.shard for row in rows})]
    listed = [list(row) for row in rows]
    tokens = sum(row.tokens for row in rows)
    num_bytes = sum(shard.num_bytes for shard in source.shards) * tokens // max(1, sum(s.tokens for s in source.shards))
    label = f"{rows[0].project}, {len({row.project for row in rows}):,} projects"
    return _unit(source, used, {"projects": listed}, label=label, num_bytes=num_bytes)


def _unit(
    source: ExportSource[SequenceOptions],
    shards: Sequence[TokenShard],
    payload: dict[str, Any],
    *,
    label: str,
    num_bytes: int | None = None,
) -> Unit:
    return source.unit(
        Stage.SEQUENCES,
        label,
        {"shards": [shard.to_json() for shard in shards], **payload},
        inputs={"shards": [shard.sha256 for shard in shards], **payload},
        config={"tokenize": source.receipt["configs"]["tokenize"], "options": source.options.to_json()},
        num_bytes=sum(shard.num_bytes for shard in shards) if num_bytes is None else num_bytes,
    )


def sum_totals(receipts: Sequence[UnitReceipt]) -> Counter[str]:
    """Return the ledger of all units."""
    totals: Counter[str] = Counter()
    for receipt in receipts:
        totals.update(receipt.totals)
    return totals


def check_totals(source: ExportSource[SequenceOptions], totals: Counter[str], *, where: str) -> None:
    """Check that what came in is the dataset.

    Raises:
        IntegrityError: If it is not.
    """
    dataset = source.receipt["dataset"]
    for name in ("documents", "tokens"):
        if totals[f"{name}_in"] != dataset[name]:
            raise IntegrityError(
                f"{where}: {totals[f'{name}_in']:,} {name} came in, and the run has {dataset[name]:,}; "
                "delete the folder and export again"
            )


def describe(totals: Counter[str], options: SequenceOptions) -> list[str]:
    """Return the lines that say what was made, in plain words."""
    left_out = ", ".join(f"{why} {totals[f'documents_left_out_{why}']:,}" for why in LEFT_OUT)
    positions = totals["positions"] or 1
    lines = [
        f"documents {totals['documents_in']:,}: {totals['documents_in_sequences']:,} in sequences, left out {left_out}",
        f"tokens    {totals['tokens_in']:,} and {totals['tokens_repeated']:,} repeated: "
        f"{totals['tokens_in_sequences']:,} in sequences, {totals['tokens_cut']:,} cut",
        f"sequences {totals['sequences']:,} of {options.length:,} positions, {totals['segments']:,} segments",
        f"used      {totals['positions_with_loss'] / positions:.2%} of the positions are tokens with loss, "
        f"{totals['tokens_in_sequences'] / positions:.2%} are tokens",
    ]
    if options.fim_rate:
        psm, spm, too_long = (totals[f"segments_{name}"] for name in ("psm", "spm", "too_long_to_rearrange"))
        lines.append(
            f"fim       {psm:,} PSM, {spm:,} SPM; unchanged: {too_long:,} too long once rearranged, "
            f"{totals['segments'] - psm - spm - too_long:,} not chosen or too short to split"
        )
    if options.cursor_rate:
        cut, too_long = totals["segments_cut_at_cursor"], totals["segments_too_long_to_cut"]
        lines.append(f"cursor    {cut:,} segments cut; unchanged: {too_long:,} too long once cut")
    if options.prefix:
        segments, prefixed = totals["segments"], totals["segments_with_prefix"]
        lines.append(
            f"prefix    {totals['tokens_of_prefixes']:,} tokens in {prefixed:,} segments; {segments - prefixed:,} have "
            "none: no platform is known, or the line is longer than half a sequence"
        )
    if options.platform_ids:
        segments, known = totals["segments"], totals["segments_with_platforms"]
        lines.append(f"platforms {known:,} of {segments:,} segments have platform ids")
    unused = [name for name, _ in options.weights if not totals[WEIGHT + name]]
    if unused:
        lines.append(f"mixture   no document takes the weight of {', '.join(unused)}")
    return lines
