"""How far a run is, or how it ended: read from its event log, its lock and its receipt, by any process.

Nothing is written, and the run does not notice.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from pipelines.console.events import BLOCKED, DONE, EVENTS
from pipelines.console.progress import MEGABYTE, format_seconds, format_summary
from schemas.errors import ConfigError, IntegrityError
from transforms.records.receipts import find_receipt
from transforms.records.versions import Versions
from transforms.storage.folder import OutputFolder

RUNNING = "running"

GONE = "died"
"""The log has no end, and nobody holds the lock."""

RESUME = "the same command goes on from what is finished"

EXPIRED_SECONDS = 60.0
"""How long after the end of its lease the holder of a lock on an object store is taken for dead."""


@dataclass(frozen=True, kw_only=True)
class StageStatus:
    """A stage of a run.

    Attributes:
        stage: Its name.
        state: `running`, `done`, or what became of the run in it.
        done_units: Units that are done.
        units: Units to do, those that stood left out.
        done_bytes: Their input bytes.
        bytes: The input bytes of all.
        seconds: How long it took, or has taken so far.
        eta_seconds: Seconds left; None while it is not known, and when it is not running.
        summary: What it made, once it is done.
    """

    stage: str
    state: str
    done_units: int
    units: int
    done_bytes: int
    bytes: int
    seconds: float
    eta_seconds: float | None = None
    summary: Mapping[str, int | float | str] = field(default_factory=dict)

    @property
    def bytes_per_second(self) -> float:
        """Input bytes a second."""
        return self.done_bytes / self.seconds if self.seconds > 0 else 0.0


@dataclass(frozen=True, kw_only=True)
class RunStatus:
    """A run.

    Attributes:
        out: Its output folder.
        state: `running`, `done`, `failed`, `stopped`, or `died`: it ended without a word.
        message: What it failed of.
        started: When, in UTC.
        engine: Where its pipelines run.
        holder: Who holds the lock of OUT; None if nobody does.
        receipt: The digest of the receipt in OUT; None if there is none.
        stages: The stages so far.
        events: The last events.
    """

    out: str
    state: str
    message: str
    started: str | None
    engine: str | None
    holder: str | None
    receipt: str | None
    stages: tuple[StageStatus, ...]
    events: tuple[Mapping[str, Any], ...]

    @property
    def is_well(self) -> bool:
        """Whether the run goes on or ended as it should."""
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
        current: The version that counts; None before the first is finished.
        building: The version that is being made, or was when its maker died.
        versions: All of them, oldest first.
        holder: Who holds the lock of the store; None if nobody does.
        attempt: How the last command in the store ended, with `outcome`, `time` and `message`, if it told; one that
            was blocked by another is passed over. None while one is at work.
        run: The run that makes a version, else the one that made the current one.
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
        now: The time; that of the system by default.
        events: How many of the last events to give.

    Raises:
        ConfigError: If nothing has run there.
        IntegrityError: If it is not known which version of a store counts.
    """
    versions, now = Versions(place), now or datetime.now(UTC)
    current, building = versions.current, versions.building
    shown = building or current
    if shown is None:
        versions.check_pointer()
        return read_status(place, now=now, events=events)
    holder = _living_holder(versions.folder, now)
    out = versions.out(shown)
    found = _look(out, out.root, now=now, events=events, maker=holder if building else None)
    if found is None and not building:
        raise IntegrityError(
            f"{out.root}: nothing is there, and `current` names it; let it name one of {', '.join(versions.names)}"
        )
    return StoreStatus(
        store=place,
        current=current,
        building=None if building == current else building,
        versions=tuple(versions.names),
        holder=holder,
        attempt=None if holder else _last_attempt(versions.folder),
        run=found or _begun(out.root, at_work=holder is not None),
    )


def _begun(place: str, *, at_work: bool) -> RunStatus:
    """Return the status of a version whose run has not told anything yet."""
    state, message = (RUNNING, "") if at_work else (GONE, RESUME)
    return RunStatus(
        out=place,
        state=state,
        message=message,
        started=None,
        engine=None,
        holder=None,
        receipt=None,
        stages=(),
        events=(),
    )


def _last_attempt(store: OutputFolder) -> dict[str, str] | None:
    """Return how the last command ended that did its work in a store, from the logs in the store itself."""
    for name in sorted(store.files(EVENTS), reverse=True):
        events = _read_log(store, name)
        outcome = str(events[-1].get("outcome", GONE)) if events else BLOCKED
        if outcome != BLOCKED:
            notes = [event["message"] for event in events if event.get("message")]
            return {"outcome": outcome, "time": str(events[-1]["time"]), "message": notes[-1] if notes else ""}
    return None


def describe_store(status: StoreStatus) -> Iterator[str]:
    """Yield the lines that tell a person."""
    yield f"{status.store}: {status.current or 'no version'} of {len(status.versions):,} versions is the current one"
    if status.building:
        yield f"building  {status.building}{'' if status.holder else '; the same command goes on with it'}"
    yield f"lock      {f'held by {status.holder}' if status.holder else 'free'}"
    if status.attempt:
        told = status.attempt["message"].splitlines()
        yield f"last      {status.attempt['time']} {status.attempt['outcome']}{f': {told[0]}' if told else ''}"
    yield from describe_status(status.run)


def read_status(place: str, *, now: datetime | None = None, events: int = 5) -> RunStatus:
    """Return the status of the newest run in an output folder, a path or a URL.

    Args:
        place: The folder.
        now: The time; that of the system by default.
        events: How many of the last events to give.

    Raises:
        ConfigError: If nothing has run there.
    """
    found = _look(OutputFolder(place), place, now=now or datetime.now(UTC), events=events)
    if found is None:
        raise ConfigError(f"{place}: no run; give the --out of one")
    return found


def _look(out: OutputFolder, place: str, *, now: datetime, events: int, maker: str | None = None) -> RunStatus | None:
    """Return the status of the newest run in an output folder; None if nothing has run there.

    Args:
        out: The folder.
        place: What to call it.
        now: The time.
        events: How many of the last events to give.
        maker: Who is at work on it without holding its lock all the time: the holder of the lock of its store.
    """
    holder = _living_holder(out, now)
    holding = holder is not None or maker is not None
    logged = _read_events(out)
    if holding and logged and logged[-1]["event"] == "run_ended":
        logged = []  # the run that holds the lock has not begun its own log yet
    receipt = find_receipt(out)
    if not logged and holder is None and receipt is None:
        return None
    state, message = _state(logged, holding=holding, finished=receipt is not None)
    started = next((event for event in logged if event["event"] == "run_started"), {})
    return RunStatus(
        out=place,
        state=state,
        message=message,
        started=started.get("time"),
        engine=started.get("engine"),
        holder=holder,
        receipt=None if receipt is None else str(receipt["digest"]),
        stages=tuple(_stages(logged, state, now)),
        events=tuple(logged[-events:] if events else ()),
    )


def describe_status(status: RunStatus) -> Iterator[str]:
    """Yield the lines that tell a person."""
    since = f" since {status.started}" if status.started and status.state == RUNNING else ""
    yield f"{status.out}: {status.state}{since}{f': {status.message.splitlines()[0]}' if status.message else ''}"
    yield f"lock      {f'held by {status.holder}' if status.holder else 'free'}"
    yield f"receipt   {status.receipt or 'none'}"
    for stage in status.stages:
        yield f"{stage.stage:9} {_describe_stage(stage)}"
    for event in status.events:
        yield f"{event.get('time', '')} {_describe_event(event)}"


def _describe_stage(stage: StageStatus) -> str:
    if not stage.units and stage.state == DONE:
        return "nothing to do"
    parts = [f"{stage.done_units:,} of {stage.units:,} units"]
    if stage.bytes:
        parts += [
            f"{stage.done_bytes / MEGABYTE:,.1f} of {stage.bytes / MEGABYTE:,.1f} MB",
            f"{stage.bytes_per_second / MEGABYTE:,.1f} MB/s",
        ]
    parts.append(format_seconds(stage.seconds))
    if stage.eta_seconds is not None:
        parts.append(f"{format_seconds(stage.eta_seconds)} left")
    return ", ".join(parts if stage.state in (RUNNING, DONE) else [*parts, stage.state])


def _describe_event(event: Mapping[str, Any]) -> str:
    values = {name: value for name, value in event.items() if name not in ("time", "event", "summary")}
    told = ", ".join(f"{name} {value}" for name, value in values.items() if value is not None)
    summary = format_summary(event["summary"]) if event.get("summary") else ""
    return f"{event['event']} {told}{f' ({summary})' if summary else ''}"


def _state(logged: Sequence[Mapping[str, Any]], *, holding: bool, finished: bool) -> tuple[str, str]:
    """Return the state, and what is to be said of it."""
    last = logged[-1] if logged else {}
    if holding:
        return RUNNING, ""
    if last.get("event") == "run_ended":
        return str(last["outcome"]), str(last.get("message", ""))
    if not logged and finished:
        return DONE, ""
    return GONE, RESUME


def _stages(logged: Sequence[Mapping[str, Any]], state: str, now: datetime) -> Iterator[StageStatus]:
    """Yield the stages, as their events tell."""
    current: StageStatus | None = None
    began = told = now
    for event in logged:
        if event["event"] == "stage_started":
            began = told = _time(event)
            current = StageStatus(
                stage=event["stage"],
                state=state,
                done_units=0,
                units=event["units"],
                done_bytes=0,
                bytes=event["bytes"],
                seconds=0.0,
            )
        elif current is not None and event["event"] == "progress":
            told = _time(event)
            current = replace(
                current,
                done_units=event["done_units"],
                done_bytes=event["done_bytes"],
                eta_seconds=event["eta_seconds"],
                seconds=(told - began).total_seconds(),
            )
        elif current is not None and event["event"] == "stage_done":
            yield replace(
                current,
                state=DONE,
                done_units=current.units,
                done_bytes=current.bytes,
                seconds=event["seconds"],
                eta_seconds=None,
                summary=event["summary"],
            )
            current = None
    if current is not None:
        yield _still(current, told, now) if state == RUNNING else replace(current, eta_seconds=None)


def _still(stage: StageStatus, told: datetime, now: datetime) -> StageStatus:
    """Return a stage that goes on as it is now: time has passed since its last event."""
    passed = max(0.0, (now - told).total_seconds())
    eta = None if stage.eta_seconds is None else round(max(0.0, stage.eta_seconds - passed), 1)
    return replace(stage, seconds=round(stage.seconds + passed, 3), eta_seconds=eta)


def _read_events(out: OutputFolder) -> list[dict[str, Any]]:
    """Return the events of the newest log."""
    names = sorted(out.files(EVENTS))
    return _read_log(out, names[-1]) if names else []


def _read_log(out: OutputFolder, name: str) -> list[dict[str, Any]]:
    """Return the events of a log; a last line that is half written is left out."""
    events = []
    for line in out.read_bytes(name).splitlines():
        try:
            events.append(json.loads(line))
        except ValueError:
            continue
    return events


def _time(event: Mapping[str, Any]) -> datetime:
    return datetime.fromisoformat(event["time"])


def _living_holder(out: OutputFolder, now: datetime) -> str | None:
    """Return who holds the lock, None if nobody does, or if whoever did has not renewed it for long."""
    holder = out.store.holder()
    if holder is None or holder.expires is None:
        return None if holder is None else holder.owner
    late = (now - datetime.fromisoformat(holder.expires)).total_seconds()
    return holder.owner if late <= EXPIRED_SECONDS else None
