"""A Flink cluster as its REST interface describes it, and cancelling a job there."""

from __future__ import annotations

import re
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from schemas.digests import parse_json

_ANSWER_SECONDS = 10.0
_MEBIBYTE = 1 << 20
_VERSION_FILE = ".flink-runtime.version.properties"
_RUNNING = ("INITIALIZING", "CREATED", "RUNNING", "RESTARTING", "FAILING")


class FlinkUnreachableError(Exception):
    """The cluster does not answer as Flink does."""


@dataclass(frozen=True, kw_only=True)
class Overview:
    """What a cluster has.

    Attributes:
        version: Of Flink.
        task_managers: How many.
        slots: In all.
        free_slots: That run nothing.
    """

    version: str
    task_managers: int
    slots: int
    free_slots: int


@dataclass(frozen=True)
class FlinkCluster:
    """A cluster.

    Attributes:
        address: Where its REST interface answers, with the scheme.
    """

    address: str

    @property
    def is_here(self) -> bool:
        """Whether it is on this machine, judging by its name."""
        return urllib.parse.urlsplit(self.address).hostname in ("localhost", "127.0.0.1", "::1")

    def overview(self) -> Overview:
        """Ask for what it has.

        Raises:
            FlinkUnreachableError: If it does not answer as Flink does.
        """
        try:
            found = self._ask("/overview")
            return Overview(
                version=str(found["flink-version"]),
                task_managers=int(found["taskmanagers"]),
                slots=int(found["slots-total"]),
                free_slots=int(found["slots-available"]),
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise FlinkUnreachableError(f"{self.address}: no Flink answers there ({error})") from error

    def missing(self, *, parallelism: int, version: str | None, managed_bytes: int, heap_bytes: int) -> Iterator[str]:
        """Yield what keeps a job from being run.

        Args:
            parallelism: Slots that it needs.
            version: Flink's version in the job server; None if unknown.
            managed_bytes: Managed memory that a slot needs.
            heap_bytes: Task heap that a slot needs.
        """
        try:
            overview = self.overview()
        except FlinkUnreachableError as error:
            yield f"--flink_master: {error}; start the cluster, or leave --flink_master out for an embedded one"
            return
        if version is not None and _release(version) != _release(overview.version):
            yield (
                f"--flink_master {self.address}: it is Flink {overview.version}, the job server is of {version}; name "
                "the job server of that version with -- --flink_job_server_jar=FILE"
            )
        if overview.free_slots < parallelism:
            yield (
                f"--parallelism {parallelism}: {overview.free_slots} of {overview.slots} slots of {self.address} are "
                "free; ask for less, or start TaskManagers"
            )
        yield from self._missing_memory(managed_bytes, heap_bytes)

    def cancel(self, job_name: str) -> None:
        """Cancel what runs under a name; a cluster that does not answer has nothing to cancel."""
        try:
            for job in self._ask("/jobs/overview")["jobs"]:
                if job["name"] == job_name and job["state"] in _RUNNING:
                    self._ask(f"/jobs/{job['jid']}?mode=cancel", method="PATCH")
        except (OSError, ValueError, KeyError, TypeError):
            return

    def _missing_memory(self, managed_bytes: int, heap_bytes: int) -> Iterator[str]:
        """Yield which TaskManager has too little for the largest element, and the setting to change."""
        needs = {
            "managedMemory": (managed_bytes, "taskmanager.memory.managed.size"),
            "taskHeapMemory": (heap_bytes, "taskmanager.memory.task.heap.size"),
        }
        try:
            for manager in self._ask("/taskmanagers")["taskmanagers"]:
                slots = max(1, int(manager["slotsNumber"]))
                for name, (needed, setting) in needs.items():
                    found = int(manager["totalResource"][name]) * _MEBIBYTE // slots
                    if found < needed:
                        yield (
                            f"{self.address}: TaskManager {manager['id']} has {found // _MEBIBYTE} MiB of {name} a "
                            f"slot, elements of 16 MiB need {needed // _MEBIBYTE}; raise {setting} to "
                            f"{slots * needed // _MEBIBYTE}m, or give it fewer slots"
                        )
        except (OSError, ValueError, KeyError, TypeError) as error:
            yield f"{self.address}: its TaskManagers cannot be listed ({error}); is it Flink 1.19?"

    def _ask(self, path: str, *, method: str = "GET") -> Any:  # noqa: ANN401 - JSON
        request = urllib.request.Request(self.address + path, method=method)
        with urllib.request.urlopen(request, timeout=_ANSWER_SECONDS) as answer:
            return parse_json(answer.read() or b"{}")


@cache
def jar_version(jar: str | None) -> str | None:
    """Return the version of Flink in a job server's jar; None if the jar does not name it or is not on this machine."""
    try:
        with zipfile.ZipFile(jar or "") as file:
            found = re.search(rb"^project\.version=(\S+)$", file.read(_VERSION_FILE), re.M)
    except (OSError, KeyError, zipfile.BadZipFile):
        return None
    return found.group(1).decode() if found else None


def _release(version: str) -> list[str]:
    """Return major and minor version: what job server and cluster must have in common."""
    return version.split(".")[:2]
