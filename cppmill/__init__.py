"""cppmill as a library, and the start of the programs `cppmill` and `cppmill-worker`, and of `python -m cppmill`.

Its parts for pipelines of Beam are in `cppmill.beam`, which alone imports Beam.

    import cppmill

    run = cppmill.run("src", out="out/mine", vocab_size=32_768, ingest={"drop_generated": True})
    run.table("tokens", ["project", "num_tokens"]).groupby("project").sum()

The packages of cppmill have common names, and a folder or file of the same name that Python finds first hides one of
them. This package, whose name is its own, checks that before it imports any of them.
"""

from __future__ import annotations

# Python imports this before `main` decides what Ctrl-C does, so it imports as little as possible.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from pipelines.console.progress import Reporter, Summary
    from pipelines.library.commands import check, plan, retokenize, run, verify
    from pipelines.library.options import Options
    from pipelines.library.runs import Run, open_run
    from pipelines.stages.program import PlannedUnit
    from pipelines.versions.retokenize import Retokenization
    from schemas.errors import BlockedError, ConfigError, CppmillError, IntegrityError, PluginError
    from schemas.plugins.entry_points import Filter, Reader, each_document
    from transforms.filters.properties import check_filter

__all__ = [
    "BlockedError",
    "ConfigError",
    "CppmillError",
    "Filter",
    "IntegrityError",
    "Options",
    "PlannedUnit",
    "PluginError",
    "Reader",
    "Reporter",
    "Retokenization",
    "Run",
    "Summary",
    "check",
    "check_filter",
    "each_document",
    "open_run",
    "plan",
    "retokenize",
    "run",
    "verify",
]

_HOMES = {
    **dict.fromkeys(("check", "plan", "retokenize", "run", "verify"), "pipelines.library.commands"),
    "Options": "pipelines.library.options",
    "PlannedUnit": "pipelines.stages.program",
    **dict.fromkeys(("Reporter", "Summary"), "pipelines.console.progress"),
    "Retokenization": "pipelines.versions.retokenize",
    **dict.fromkeys(("Run", "open_run"), "pipelines.library.runs"),
    **dict.fromkeys(("BlockedError", "ConfigError", "CppmillError", "PluginError", "IntegrityError"), "schemas.errors"),
    **dict.fromkeys(("Filter", "Reader", "each_document"), "schemas.plugins.entry_points"),
    "check_filter": "transforms.filters.properties",
}
"""The module of each name of the library; it is imported when the name is used."""


def __getattr__(name: str) -> object:
    """Return a name of the library.

    Raises:
        ImportError: If another file would be imported in place of a package of cppmill.
    """
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    from cppmill.start import require_packages

    require_packages()
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """List the names of the library."""
    return __all__


def main() -> None:
    """Run the command line; until a command begins, Ctrl-C ends the process at once and silently."""
    signal = __import__("_signal")  # of `signal` only what is in the interpreter: the rest takes milliseconds

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from cppmill.start import run_commands

    run_commands()


def worker() -> None:
    """Run a worker process."""
    from cppmill.start import run_worker

    run_worker()
