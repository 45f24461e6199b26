"""A Spark master as its page describes it: which workers could start an executor."""

from __future__ import annotations

import re
import socket
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from apache_beam.options.pipeline_options import PipelineOptions, _BeamArgumentParser
from typing_extensions import override

from schemas.digests import parse_json

EXECUTOR_MEBIBYTES = 1024
"""What Spark gives an executor by default; it has room for the largest element, 16 MiB, many times."""

_ANSWER_SECONDS = 10.0
_PAGE_PORT = 8080
_VERSION = re.compile(r'class="version"[^>]*>\s*([0-9][^<\s]*)')


class SparkMasterOptions(PipelineOptions):
    """Where the page of a Spark master is; its `spark://` address does not contain that."""

    @classmethod
    @override
    def _add_argparse_args(cls, parser: _BeamArgumentParser) -> None:
        parser.add_argument(
            "--spark_master_page",
            help="Address of the Spark master's web page. Default: port 8080 of the master, if it answers there.",
        )


@dataclass(frozen=True)
class SparkMaster:
    """A standalone master.

    Attributes:
        url: `spark://HOST:PORT`, where drivers connect.
        page: Address of its web page; None tries the port that Spark gives it.
    """

    url: str
    page: str | None = None

    def missing(self, *, version: str | None) -> Iterator[str]:
        """Yield what keeps an application from being run.

        A master whose page is not named and not where Spark puts it is asked for a connection alone.

        Args:
            version: Spark's version in the driver; None if unknown.
        """
        address = urlsplit(self.url)
        try:
            if address.scheme != "spark" or address.hostname is None or address.port is None:
                raise ValueError("it is not spark://HOST:PORT or local[N]")
            socket.create_connection((address.hostname, address.port), timeout=_ANSWER_SECONDS).close()
        except (OSError, ValueError) as error:
            yield (
                f"--spark_master_url {self.url}: no master answers there ({error}); start it, or leave "
                "--spark_master_url out for an embedded one"
            )
            return
        page = self.page or f"http://{address.hostname}:{_PAGE_PORT}"
        try:
            yield from self._missing_resources(parse_json(_read(f"{page}/json/")))
            yield from self._missing_version(_read(f"{page}/"), version)
        except (OSError, ValueError, KeyError, TypeError) as error:
            if self.page is not None:
                yield f"--spark_master_page {page}: the page of {self.url} cannot be read ({error})"

    def _missing_resources(self, found: Any) -> Iterator[str]:  # noqa: ANN401 - JSON
        """Yield what is wrong with a master, or with its workers if none of them could start an executor."""
        if found["url"] != self.url:
            raise ValueError(f"it belongs to {found['url']}")
        if found["status"] != "ALIVE":
            yield f"--spark_master_url {self.url}: it is {found['status']}, not ALIVE; name the one that leads"
        workers = [worker for worker in found["workers"] if worker["state"] == "ALIVE"]
        if not any(worker["coresfree"] >= 1 and worker["memoryfree"] >= EXECUTOR_MEBIBYTES for worker in workers):
            free = ", ".join(
                f"{worker['host']} has {worker['coresfree']} and {worker['memoryfree']} MiB" for worker in workers
            )
            yield (
                f"--spark_master_url {self.url}: an executor needs a free core and {EXECUTOR_MEBIBYTES} MiB; "
                f"{free or 'no worker is there'}; start workers, or end other applications"
            )

    def _missing_version(self, page: str, version: str | None) -> Iterator[str]:
        """Yield what is wrong if the master is of another release than the driver."""
        found = _VERSION.search(page)
        if found and version and found[1].split(".")[:2] != version.split(".")[:2]:
            yield (
                f"--spark_master_url {self.url}: it is Spark {found[1]}, the driver is {version}; start a master of "
                "that release"
            )


def driver_version(home: Path) -> str | None:
    """Return the version of the Spark at `home`, by the name of its core jar; None if it is not there."""
    names = (re.fullmatch(r"spark-core_[0-9.]+-([0-9].*)\.jar", path.name) for path in (home / "jars").glob("spark-*"))
    return next((name[1] for name in names if name), None)


def _read(url: str) -> str:
    with urllib.request.urlopen(url, timeout=_ANSWER_SECONDS) as answer:
        return str(answer.read().decode(errors="replace"))
