"""The commands as functions: keyword arguments for options, return values for output, exceptions for exit codes.

These functions print nothing, catch no signals and configure no logging; the command line adds that.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from configs.flags import Model, read_layer
from configs.keywords import given_values, read_keywords
from configs.layers import Layer
from pipelines.console.progress import Reporter, Reporters
from pipelines.library.options import DriftKeys, Options, PlaceText
from pipelines.library.places import check_places, place_text
from pipelines.library.runs import Run, open_run
from schemas.errors import ConfigError, IntegrityError
from schemas.options import REENCODED
from schemas.resources import explaining_refusals
from schemas.study_options import DriftOptions
from transforms.records.versions import find_run

if TYPE_CHECKING:
    from configs.runs import RunConfig
    from pipelines.stages.program import PlannedUnit
    from pipelines.versions.retokenize import Retokenization

STORE = "--store"


@explaining_refusals()
def run(
    sources: PlaceText | Iterable[PlaceText] = (),
    *,
    out: PlaceText | None = None,
    config: PlaceText | None = None,
    reporter: Reporter | None = None,
    **options: Unpack[Options],
) -> Run:
    """Make a tokenizer, a tokenized dataset and a receipt from sources, as `cppmill run` does.

    Finished units are kept: the same call continues a run that was stopped, and does nothing if everything is up to
    date.

    Args:
        sources: Folders, archives, Parquet or JSONL files, globs or URLs; one, or several.
        out: The output folder, or gs:// or s3://BUCKET/PREFIX.
        config: A TOML file of options, as for `--config`; keyword arguments override it.
        reporter: Where progress goes; nowhere by default.
        **options: Any option by its key (`vocab_size=32_768`, `profile="demo"`), or a table of them by its name
            (`ingest={"drop_generated": True}`): `cppmill.Options` has their types.

    Returns:
        The finished run.

    Raises:
        ConfigError: For options that cannot be used, with one line each.
        CppmillError: As the command would end; `exit_code` is its exit code.

    Example:
        >>> made = run("src", out="out/mine", profile="demo")  # doctest: +SKIP
        >>> made.receipt["dataset"]["tokens"]  # doctest: +SKIP
        3512648
    """
    from pipelines.stages import run as whole_run

    loaded = _load(sources, out, config, options)
    whole_run.run(loaded, reporter or Reporters())
    return open_run(str(loaded.out))


@explaining_refusals()
def plan(
    sources: PlaceText | Iterable[PlaceText] = (),
    *,
    out: PlaceText | None = None,
    config: PlaceText | None = None,
    **options: Unpack[Options],
) -> list[PlannedUnit]:
    """Return which units a run with these arguments would do or skip, and why; nothing is written.

    Args:
        sources: As for `run`.
        out: As for `run`.
        config: As for `run`.
        **options: As for `run`.

    Raises:
        ConfigError: If `run` would refuse these arguments.
    """
    from pipelines.stages import run as whole_run

    return whole_run.plan(_load(sources, out, config, options))


@explaining_refusals()
def verify(
    place: PlaceText,
    *,
    reencode: float = REENCODED,
    run: PlaceText | None = None,
    published: bool = False,
    signed_by: PlaceText | None = None,
) -> list[str]:
    """Return every difference between a run, a trial or an export and its receipt; empty if there is none.

    Args:
        place: Its folder or URL; a store means its current version.
        reencode: The share of a run's documents to encode again, 0 to 1, chosen by content hash; for an export, the
            share of its files to make again.
        run: The run that an export was made from; without it, only the export is checked.
        published: Whether the place is a copy of what `cppmill push` publishes; only that is then checked.
        signed_by: A file of allowed signers; one of them must have signed the run's receipt.

    Raises:
        ConfigError: If there is no receipt, if `run` is given for something other than an export, or if the signers
            cannot be read.
        IntegrityError: If the receipt cannot be read.
    """
    from pipelines.versions import verify as program

    source = None if run is None else find_run(place_text(run))
    return program.verify(
        find_run(place_text(place)), reencode, signed_by=_file(signed_by), run=source, published=published
    )


@explaining_refusals()
def retokenize(
    sources: PlaceText | Iterable[PlaceText] = (),
    *,
    store: PlaceText | None = None,
    config: PlaceText | None = None,
    keep: int = 3,
    drift: DriftKeys | None = None,
    reporter: Reporter | None = None,
    **options: Unpack[Options],
) -> Retokenization:
    """Make a new version of a dataset from what has changed, as `cppmill retokenize` does.

    Args:
        sources: As for `run`.
        store: The folder of the versions, or gs:// or s3://BUCKET/PREFIX.
        config: As for `run`.
        keep: How many versions stay, including the current one.
        drift: The options of drift (`{"alert_compression": 0.05}`). An exceeded threshold raises no error; it is in
            `alerts` of the result.
        reporter: As for `run`.
        **options: As for `run`; options that you do not give come from the previous version.

    Returns:
        The current version, and what it changed; `changes` is None if there was nothing to do.

    Raises:
        BlockedError: If another run is at work in the store.
        ConfigError: For options that cannot be used, or without a store.
        BadInputError: If the sources no longer contain any document.
    """
    from pipelines.versions import retokenize as program

    if store is None and config is None:
        raise ConfigError("store: not given; it is the folder of the versions, or its URL")
    request = program.Request(
        file=_file(config),
        flags={} if store is None else {STORE: os.fspath(store)},
        options=read_keywords(_keywords(sources, None, options)),
        keep=keep,
        drift=read_table(DriftOptions, "drift", drift or {}),
    )
    return program.retokenize(request, reporter or Reporters())


def check(
    place: PlaceText,
    *,
    reencode: float = REENCODED,
    run: PlaceText | None = None,
    published: bool = False,
    signed_by: PlaceText | None = None,
) -> None:
    """Raise an error that lists every difference between a run, a trial or an export and its receipt.

    Args:
        place: As of `verify`.
        reencode: As of `verify`.
        run: As of `verify`.
        published: As of `verify`.
        signed_by: As of `verify`.

    Raises:
        IntegrityError: If there is a difference.
        ConfigError: As of `verify`.
    """
    if differences := verify(place, reencode=reencode, run=run, published=published, signed_by=signed_by):
        raise IntegrityError("\n".join(differences))


def _load(
    sources: PlaceText | Iterable[PlaceText],
    out: PlaceText | None,
    config: PlaceText | None,
    options: Mapping[str, object],
) -> RunConfig:
    from configs.runs import load_run_config

    layer = read_keywords(_keywords(sources, out, options))
    return load_run_config(file=_file(config), options=layer, needs_sources=True)


def read_table(model: type[Model], name: str, values: object) -> Model:
    """Return the options of a model that are given as a dict.

    Args:
        model: The model.
        name: The name of the argument, for messages.
        values: Values by key.

    Raises:
        ConfigError: If it is no mapping of texts; with one line for every problem.
    """
    if not isinstance(values, Mapping) or not all(isinstance(key, str) for key in values):
        raise ConfigError(f"{name} = {values!r}: not allowed; it takes options by their keys, as a dict")
    form = f"{name}: {{name}} = {{value}}"
    return read_layer(model, Layer(origin="", values={"options": given_values(values)}, form=form))


def _file(given: PlaceText | None) -> Path | None:
    return None if given is None else Path(given)


def _keywords(
    sources: PlaceText | Iterable[PlaceText], out: PlaceText | None, options: Mapping[str, object]
) -> dict[str, object]:
    """Return the keyword arguments with sources and output folder among them."""
    several = check_places("sources", sources)
    given = dict(options)
    if several:
        given["sources"] = several
    if out is not None:
        given["out"] = out
    return given
