"""The board: where the peer that leads a run writes what there is to do, for the others to read.

It is one small file, `.cache/peers/board.json`. Only the holder of the one-writer lock writes it. It names a plan file
and so holds no units itself.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from schemas.digests import parse_json
from schemas.units import Unit
from transforms.storage.folder import OutputFolder
from transforms.units.peer_locks import PEERS
from transforms.units.plan import PlanRange, expand_plan_range, write_plan

BOARD = f"{PEERS}/board.json"


@dataclass(frozen=True, kw_only=True)
class Job:
    """Units that the peers run together.

    Attributes:
        id: Random: the same units that are shared again are another job.
        name: Names the plan: a stage, or a pass of one.
        plan: The plan file, relative to OUT; empty if there are no units.
        sha256s: The digest of each of its row groups.
    """

    id: str
    name: str
    plan: str
    sha256s: tuple[str, ...]

    def units(self, out: OutputFolder) -> list[Unit]:
        """Return the units, in order."""
        ranges = (
            PlanRange(out=out, name=self.plan, row_group=number, sha256=sha256)
            for number, sha256 in enumerate(self.sha256s)
        )
        return [unit for plan_range in ranges for unit in expand_plan_range(plan_range)]


@dataclass(frozen=True, kw_only=True)
class Board:
    """What the leader wrote.

    Attributes:
        leader: The token of its lock.
        run: What must be the same for all peers: versions, sources, options.
        job: What there is to do; None while the leader works alone.
        is_done: Whether the run is finished.
    """

    leader: str
    run: dict[str, Any]
    job: Job | None = None
    is_done: bool = False


def plan_job(out: OutputFolder, name: str, units: Sequence[Unit], *, job_id: str) -> Job:
    """Write the plan of a job, and return the job."""
    ranges = write_plan(out, name, units)
    sha256s = tuple(plan_range.sha256 for plan_range in ranges)
    return Job(id=job_id, name=str(name), plan=ranges[0].name if ranges else "", sha256s=sha256s)


def write_board(out: OutputFolder, board: Board) -> None:
    """Write the board; only for the holder of the one-writer lock."""
    out.publish_bytes(BOARD, json.dumps(asdict(board)).encode())


def read_board(out: OutputFolder) -> Board | None:
    """Return the board; None if there is none, or one of another version."""
    try:
        values = parse_json(out.read_bytes(BOARD))
        job = values.pop("job")
        if job is not None:
            job = Job(**{**job, "sha256s": tuple(job["sha256s"])})
        return Board(**values, job=job)
    except (FileNotFoundError, ValueError, TypeError, KeyError, AttributeError):
        return None
