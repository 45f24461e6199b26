"""How far a run is, or how it ended: read from its event log, its lock and its receipt, by any process.

Nothing is written, and the run is not disturbed. The lines that show it are in `status_lines`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

from pipelines.console.events import BLOCKED, DONE, log_names, read_events
from pipelines.console.stage_status import RUNNING, Event, StageStatus, read_stages
from schemas.errors import ConfigError, IntegrityError
from transforms.records.receipts import find_intact_receipt
from transforms.records.versions import Versions
from transforms.storage.folder import OutputFolder
from transforms.storage.protocol import LOCK
from transforms.units.peer_locks import peer_locks

CRASHED = "died"
"""The process vanished without recording an outcome: the log has no end, and nobody holds the lock."""

RESUME = "the same command continues from the finished units"

EXPIRED_SECONDS = 60.0
"""How long after its lease expired the holder of a lock on an object store counts as crashed."""


@dataclass(frozen=True, kw_only=True)
class RunStatus:
    """A run.

    Attributes:
        out: Its output folder.
        state: `running`, `done`, `failed`, `stopped`, or `died`: the process vanished without recording an outcome.
        message: Why it failed.
        started: When, in UTC.
        engine: Where its pipelines run.
        holder: Who holds the lock of OUT; None if nobody does.
        peers: Of a run that several processes carry out, who takes part: its number, and who that is.
        receipt: The digest of the receipt in OUT; None if there is none.
        stages: The stages so far.
        events: The last events.
    """

    out: str
    state: str
    message: str
    started: str | None = None
    engine: str | None = None
    holder: str | None = None
    peers: tuple[str, ...] = ()
    receipt: str | None = None
    stages: tuple[StageStatus, ...] = ()
    events: tuple[Mapping[str, Any], ...] = ()

    @property
    def is_well(self) -> bool:
        """Whether the run is going on or finished."""
        return self.state in (RUNNING, DONE)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        stages = [{**asdict(stage), "bytes_per_second": round(stage.bytes_per_second)} for stage in self.stages]
        return {**asdict(self), "stages": stages}


@dataclass(frozen=True, kw_only=True)
class StoreStatus:
    """A store of versions.

    Attributes:
        store: Its place.
        current: The current version; None before the first is finished.
        building: The unfinished version, if there is one.
        versions: All of them, oldest first.
        holder: Who holds the lock of the store; None if nobody does.
        attempt: How the last command in the store ended: `outcome`, `time` and `message`. Commands that were blocked by
            another do not count. None while one is at work.
        run: The run that makes the unfinished version, else the one that made the current version.
    """

    store: str
    current: str | None
    building: str | None
    versions: tuple[str, ...]
    holder: str | None
    attempt: Mapping[str, str] | None
    run: RunStatus

    @property
    def is_well(self) -> bool:
        """Whether a command is at work, or the last one ended well and left no version unfinished."""
        well = self.attempt is None or self.attempt["outcome"] == DONE
        return self.holder is not None or (well and self.building is None and self.run.is_well)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {**asdict(self), "run": self.run.to_json()}


def read_any_status(place: str, *, now: datetime | None = None, events: int = 5) -> RunStatus | StoreStatus:
    """Return the status of a store of versions, or of the newest run in an output folder.

    Args:
        place: A store or an output folder, a path or a URL.
        now: The time; the system's by default.
        events: How many of the last events to give.

    Raises:
        ConfigError: If nothing has run there.
        IntegrityError: If the store does not say which version is current.
    """
    versions, now = Versions(place), now or datetime.now(UTC)
    current, building = versions.current, versions.building
    shown = building or current
    if shown is None:
        versions.check_pointer()
        return read_status(place, now=now, events=events)
    holder = _living_holder(versions.folder, now)
    out = versions.out(shown)
    found = _find_status(out, out.root, now=now, events=events, in_use=holder is not None and building is not None)
    if found is None and not building:
        raise IntegrityError(
            f"{out.root}: not found, though `current` names it; let it name one of {', '.join(versions.names)}"
        )
    return StoreStatus(
        store=place,
        current=current,
        building=None if building == current else building,
        versions=tuple(versions.names),
        holder=holder,
        attempt=None if holder else _last_attempt(versions.folder),
        run=found or _empty_status(out.root, in_use=holder is not None),
    )


def _empty_status(place: str, *, in_use: bool) -> RunStatus:
    """Return the status of a version whose run has not reported anything yet."""
    state, message = (RUNNING, "") if in_use else (CRASHED, RESUME)
    return RunStatus(out=place, state=state, message=message)


def _last_attempt(store: OutputFolder) -> dict[str, str] | None:
    """Return how the last command in a store ended that was not blocked, from the logs in the store itself."""
    for name in reversed(log_names(store)):
        events = read_events(store, name)
        outcome = str(events[-1].get("outcome", CRASHED)) if events else BLOCKED
        if outcome != BLOCKED:
            notes = [event["message"] for event in events if event.get("message")]
            return {"outcome": outcome, "time": str(events[-1]["time"]), "message": notes[-1] if notes else ""}
    return None


def read_status(place: str, *, now: datetime | None = None, events: int = 5) -> RunStatus:
    """Return the status of the newest run in an output folder, a path or a URL.

    Args:
        place: The folder.
        now: The time; the system's by default.
        events: How many of the last events to give.

    Raises:
        ConfigError: If nothing has run there.
    """
    found = _find_status(OutputFolder(place), place, now=now or datetime.now(UTC), events=events)
    if found is None:
        raise ConfigError(f"{place}: no run; give the --out of one")
    return found


def _find_status(
    out: OutputFolder, place: str, *, now: datetime, events: int, in_use: bool = False
) -> RunStatus | None:
    """Return the status of the newest run in an output folder; None if nothing has run there.

    Args:
        out: The folder.
        place: What to call it.
        now: The time.
        events: How many of the last events to give.
        in_use: Whether someone works on it who does not hold its lock all the time: the holder of its store's lock.
    """
    holder, peers = _living_holder(out, now), tuple(_living_peers(out, now))
    in_use = in_use or holder is not None or bool(peers)
    logged = _newest_log(out)
    if in_use and logged and logged[-1]["event"] == "run_ended":
        logged = []  # the run that holds the lock has not begun its own log yet
    receipt = find_intact_receipt(out)
    if not logged and holder is None and receipt is None:
        return None
    state, message = _find_state(logged, in_use=in_use, finished=receipt is not None)
    started = next((event for event in logged if event["event"] == "run_started"), {})
    return RunStatus(
        out=place,
        state=state,
        message=message,
        started=started.get("time"),
        engine=started.get("engine"),
        holder=holder,
        peers=peers,
        receipt=None if receipt is None else str(receipt["digest"]),
        stages=read_stages(logged, state=state, now=now),
        events=tuple(logged[-events:] if events else ()),
    )


def _find_state(logged: Sequence[Event], *, in_use: bool, finished: bool) -> tuple[str, str]:
    """Return the state of a run, and a message about it."""
    last = logged[-1] if logged else {}
    if in_use:
        return RUNNING, ""
    if last.get("event") == "run_ended":
        return str(last["outcome"]), str(last.get("message", ""))
    return (DONE, "") if finished and not logged else (CRASHED, RESUME)


def _newest_log(out: OutputFolder) -> list[dict[str, Any]]:
    """Return the events of the newest log."""
    names = log_names(out)
    return read_events(out, names[-1]) if names else []


def _living_peers(out: OutputFolder, now: datetime) -> Iterator[str]:
    """Yield number and owner of each peer that takes part in a run."""
    for name in peer_locks(out):
        owner = _living_holder(out, now, name)
        if owner is not None:
            yield f"{PurePosixPath(name).stem}: {owner}"


def _living_holder(out: OutputFolder, now: datetime, name: str = LOCK) -> str | None:
    """Return who holds a lock; None if nobody does, or if its lease expired long ago."""
    holder = out.store.holder(name)
    if holder is None or holder.expires is None:
        return None if holder is None else holder.owner
    late = (now - datetime.fromisoformat(holder.expires)).total_seconds()
    return holder.owner if late <= EXPIRED_SECONDS else None
