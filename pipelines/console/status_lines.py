"""The lines of `cppmill status`, for people."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.console.events import DONE
from pipelines.console.lines import describe_amounts, describe_time_left, format_seconds, format_summary
from pipelines.console.stage_status import RUNNING, Event, StageStatus
from pipelines.console.status import RunStatus, StoreStatus


def describe_store(status: StoreStatus) -> Iterator[str]:
    """Yield the lines about a store of versions."""
    yield f"{status.store}: {status.current or 'no version'} of {len(status.versions):,} versions is the current one"
    if status.building:
        yield f"building  {status.building}{'' if status.holder else '; the same command continues it'}"
    yield _lock_line(status.holder)
    if status.attempt:
        message = status.attempt["message"].splitlines()
        yield f"last      {status.attempt['time']} {status.attempt['outcome']}{f': {message[0]}' if message else ''}"
    yield from describe_status(status.run)


def describe_status(status: RunStatus) -> Iterator[str]:
    """Yield the lines about a run."""
    since = f" since {status.started}" if status.started and status.state == RUNNING else ""
    yield f"{status.out}: {status.state}{since}{f': {status.message.splitlines()[0]}' if status.message else ''}"
    yield _lock_line(status.holder)
    for peer in status.peers:
        yield f"peer      {peer}"
    yield f"receipt   {status.receipt or 'none'}"
    for stage in status.stages:
        yield f"{stage.stage:9} {_describe_stage(stage)}"
    for event in status.events:
        yield f"{event.get('time', '')} {_describe_event(event)}"


def _lock_line(holder: str | None) -> str:
    return f"lock      {f'held by {holder}' if holder else 'free'}"


def _describe_stage(stage: StageStatus) -> str:
    if not stage.units and stage.state == DONE:
        return "nothing to do"
    amounts = describe_amounts(
        stage.done_units, stage.units, stage.done_bytes, stage.bytes, bytes_per_second=stage.bytes_per_second
    )
    state = "" if stage.state in (RUNNING, DONE) else f", {stage.state}"
    return f"{amounts}, {format_seconds(stage.seconds)}{describe_time_left(stage.eta_seconds)}{state}"


def _describe_event(event: Event) -> str:
    if event["event"] == "note":
        return str(event["message"])
    values = ", ".join(
        f"{name} {value}"
        for name, value in event.items()
        if name not in ("time", "event", "summary") and value is not None
    )
    summary = format_summary(event["summary"]) if event.get("summary") else ""
    return f"{event['event']} {values}{f' ({summary})' if summary else ''}"
