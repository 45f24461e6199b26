"""The configuration of a run: a profile, a TOML file and flags, checked together before anything starts.

Layers, each overriding the one before: defaults, profile, TOML file, `--set`, flags. All problems are reported at once.
This module knows names, types and places; the stages find out whether a vocabulary fits its size or an archive can be
read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from pydantic import Field, InstanceOf

from configs.checks import check_build, check_filters, check_patterns, check_platforms, check_project_cap
from configs.execution import PathText, Peer, RunExecutionOptions, Threads, default_worker_threads, usable_threads
from configs.flags import SET, Flag, read_flags, read_set_values
from configs.layers import Layer, merge_layers, read_file, read_profile, without_refused
from configs.places import check_places
from configs.tables import DEFAULT_PROFILE, FLAGS, KEYS, TABLES, RunTableOptions
from schemas.errors import ConfigError
from schemas.options import BuildOptions, IngestOptions, RunOptions, ScanOptions, TokenizeOptions
from schemas.passwords import find_conflict, hide_secrets, redacted
from schemas.places import is_remote
from schemas.plugins.entry_points import find_filter
from schemas.units import Stage

Place = InstanceOf[Path] | PathText
"""A local path, or the URL of a place on an object store, as text."""

_PLACES = ("sources", "out", "tokenizer", "vocab", "platforms")
"""The keys of [run] that name files and folders."""


class RunConfig(RunExecutionOptions):
    """All that a command needs to know to run: what a user gave, resolved."""

    out: Place
    """The output folder."""

    options: RunOptions = Field(default_factory=RunOptions)
    """What decides the bytes of the run."""

    tokenizer: Place | None = None
    """Directory of a tokenizer to use instead of building one."""

    rebuild_tokenizer: bool = False
    """Whether to build a tokenizer even if OUT has a finished one."""

    vocab: Place | None = None
    """Folder of the vocabulary to build with; None for the one that comes with cppmill."""

    platforms: Place | None = None
    """File of platforms to find besides those that come with cppmill."""

    threads: Threads = Field(default_factory=usable_threads)
    """Number of threads of this process."""

    worker_threads: Threads = Field(default_factory=usable_threads)
    """Number of threads of each process that runs units."""

    peer: InstanceOf[Peer] | None = None
    """Which of several processes this is that carry out the run together; None if it is the only one."""

    @property
    def out_folder(self) -> Path:
        """The output folder where it is known to be local; a URL is not a path."""
        if isinstance(self.out, str) and is_remote(self.out):
            raise ConfigError(f"--out {self.out}: a local folder is needed here")
        return Path(self.out)

    def stage_options(self, stage: Stage) -> dict[str, Any]:
        """Return the options of a stage as JSON values; empty if it has none."""
        options: dict[str, Any] = self.options.to_json().get(stage, {})
        return options


def load_run_config(
    *,
    file: Path | None = None,
    flags: Mapping[str, object] | None = None,
    needs_sources: bool = False,
    names: Mapping[str, Flag] = FLAGS,
    base: Layer | None = None,
    options: Layer | None = None,
) -> RunConfig:
    """Return the run configuration of a TOML file and flags; flags win.

    Args:
        file: The TOML file; relative paths in it are relative to the working directory.
        flags: Values by flag (the keys of `FLAGS`, and `--set`), text as it was typed; None if a flag was not given.
        needs_sources: Whether the command reads sources.
        names: The flags that there are.
        base: What a file and flags win over, as the options of an earlier run.
        options: What wins over a file and flags, as the keyword arguments of a program.

    Raises:
        ConfigError: With one line for every problem.

    Example:
        >>> load_run_config(flags={"--out": "/tmp/out", "--set": ["run.threads=2"]}).threads
        2
    """
    problems: list[str] = []
    given = _read_layers(file, dict(flags or {}), names, problems)
    given = [layer for layer in (base, *given, options) if layer is not None]
    profile = _profile_name(given)
    layers = [read_profile(profile, origin=_profile_origin(given), problems=problems), *given]
    readable = not problems
    for layer in layers:
        problems += layer.problems(TABLES, KEYS)
    tables = merge_layers(layers)
    tables["run"] = _without_secrets(_expand_home(tables.get("run", {})))
    if readable:  # else what is missing may be in what could not be read
        accepted = without_refused(tables, TABLES)
        problems += check_places(accepted, layers=layers, needs_sources=needs_sources)
        for check in (check_patterns, check_project_cap, check_build, check_filters, check_platforms):
            problems += check(accepted, layers)
    if problems:
        raise ConfigError("\n".join(dict.fromkeys(problems)))
    return _assemble(tables, profile=profile)


def _read_layers(
    file: Path | None, values: dict[str, object], flags: Mapping[str, Flag], problems: list[str]
) -> list[Layer]:
    """Return the layers of a file, of `--set` and of the other flags."""
    set_values = cast("Sequence[str]", values.pop(SET, None) or ())
    files = [] if file is None else [read_file(file, problems)]
    return [*files, *read_set_values(set_values, problems), read_flags(values, flags)]


def _profile_name(layers: Sequence[Layer]) -> str:
    """Return the profile that the last layer names, the default one if none does (or does with no string)."""
    name = merge_layers(layers).get("run", {}).get("profile", DEFAULT_PROFILE)
    return name if isinstance(name, str) else DEFAULT_PROFILE


def _profile_origin(layers: Sequence[Layer]) -> str:
    """Return where the profile was named, as messages begin."""
    naming = [layer for layer in layers if "profile" in layer.table("run")]
    return naming[-1].place("run", "profile") if naming else "profile"


def _expand_home(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return the table [run] with the home folder for `~/`, as a shell writes it, in the paths."""

    def expand(place: str) -> str:
        return f"{Path.home()}{place[1:]}" if f"{place}/".startswith("~/") else place

    return _change_places(run, _PLACES, expand)


def _without_secrets(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return the table [run] without the secrets in URLs that are read; `check_places` refuses a password in `out`."""
    keys, found = [key for key in _PLACES if key != "out"], list[str]()

    def hide(place: str) -> str:
        found.append(place)
        return hide_secrets(place)

    changed = _change_places(run, keys, hide)
    if (conflict := find_conflict(found)) is not None:
        first, second = map(redacted, conflict)
        raise ConfigError(
            f"{first} and {second}: two users of one host, or two queries of one URL, of which only one would be used; "
            "read them in two commands, or give the bytes of one another name"
        )
    return changed


def _change_places(run: Mapping[str, Any], keys: Collection[str], change: Callable[[str], str]) -> dict[str, Any]:
    """Return the table [run] with the texts under some keys changed, those of lists too."""

    def changed(value: Any) -> Any:  # noqa: ANN401 - not yet known to be text
        if isinstance(value, tuple):
            return tuple(map(changed, value))
        return change(value) if isinstance(value, str) else value

    return {key: changed(value) if key in keys else value for key, value in run.items()}


def with_all_options(ingest: IngestOptions) -> IngestOptions:
    """Return options of ingest in which every filter of another distribution has all of its own, defaults among them.

    A key or receipt then says what the filter had, whatever its defaults are later.
    """
    if not ingest.filters:
        return ingest
    filters = {name: find_filter(name).record_options(name, table) for name, table in ingest.filters.items()}
    return ingest.model_copy(update={"filters": filters})


def to_place(text: str) -> Path | str:
    """Return a path, or a URL as it is."""
    return text if is_remote(text) else Path(text)


def _assemble(tables: Mapping[str, Mapping[str, Any]], *, profile: str) -> RunConfig:
    """Return the configuration of tables whose values were checked."""
    run = RunTableOptions(**tables.get("run", {}))
    ingest = with_all_options(IngestOptions(**tables.get("ingest", {})))
    options = RunOptions(
        ingest=ingest,
        scan=ScanOptions(**tables.get("scan", {})),
        build=BuildOptions(**{**tables.get("build", {}), "profile": profile}),
        tokenize=TokenizeOptions(**{"eos_token": ingest.document_separator, **tables.get("tokenize", {})}),
        max_dead_fraction=run.max_dead_fraction,
    )
    return RunConfig(
        **{name: getattr(run, name) for name in RunExecutionOptions.model_fields.keys() - {"threads"}},
        out=to_place(str(run.out)),
        options=options,
        tokenizer=None if run.tokenizer is None else to_place(run.tokenizer),
        rebuild_tokenizer=run.rebuild_tokenizer,
        vocab=None if run.vocab is None else to_place(run.vocab),
        platforms=None if run.platforms is None else to_place(run.platforms),
        threads=run.threads or usable_threads(),
        worker_threads=run.threads or default_worker_threads(run.engine),
    )
