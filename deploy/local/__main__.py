"""`python -m deploy.local`: fetch engines, start one, stop one."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from deploy.local.commands import PACKAGES
from deploy.local.fetch import MAKERS, fetch
from deploy.local.flink import FlinkCluster
from deploy.local.gcs import GoogleStore
from deploy.local.processes import Processes
from deploy.local.s3 import ObjectStore
from deploy.local.spark import SparkCluster
from deploy.programs import run_program


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the arguments say and return the exit code: 0, or 2 with a message for what went wrong."""
    return run_program(_parser(), arguments)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m deploy.local", description=__doc__)
    what = parser.add_subparsers(dest="what", required=True)
    known = ", ".join((*MAKERS, *PACKAGES))
    fetching = what.add_parser("fetch", help="fetch engines into the cache; what is there already is left alone")
    fetching.add_argument("names", nargs="*", metavar="NAME", help=f"of {known}; all if none is given")
    fetching.set_defaults(do=lambda options: fetch(options.names))
    for name in _START:
        engine = what.add_parser(name, help=f"start {name} on 127.0.0.1, or stop it")
        engine.add_argument("action", choices=("start", "stop"))
        engine.add_argument("--dir", type=Path, required=True, help="its logs, files and processes")
        engine.set_defaults(do=_start_or_stop)
        if name == "flink":
            engine.add_argument("--task-managers", type=int, default=2, help="processes that work (2)")
            engine.add_argument("--slots", type=int, default=2, help="of each; a job takes its parallelism of them (2)")
        if name == "spark":
            engine.add_argument("--workers", type=int, default=2, help="processes with a core each (2)")
    return parser


def _start_or_stop(options: argparse.Namespace) -> None:
    if options.action == "stop":
        Processes(options.dir).stop()
    else:
        print(_START[options.what](options))


def _start_flink(options: argparse.Namespace) -> str:
    cluster = FlinkCluster(options.dir, task_managers=options.task_managers, slots=options.slots)
    return f"--flink_master={cluster.rest_address}"


def _start_spark(options: argparse.Namespace) -> str:
    cluster = SparkCluster(options.dir, workers=options.workers)
    return f"--spark_master_url={cluster.master_url} --spark_master_page={cluster.master_page}"


_STORES: dict[str, type[ObjectStore] | type[GoogleStore]] = {"s3": ObjectStore, "gcs": GoogleStore}


def _start_store(options: argparse.Namespace) -> str:
    store = _STORES[options.what](options.dir)
    return "\n".join(f"export {name}={value}" for name, value in store.environment.items())


_START: dict[str, Callable[[argparse.Namespace], str]] = {
    "flink": _start_flink,
    "spark": _start_spark,
    "s3": _start_store,
    "gcs": _start_store,
}

if __name__ == "__main__":
    sys.exit(main())
