"""Claims: which of several processes runs a unit, so that no two of them do the same work.

A claim is a small file of the unit's key, created only if there is none. It names a lock that its owner holds as long
as it lives, and so a claim is void once its owner is dead. Claims only save work: a unit is committed by its receipt,
and two processes that run it all the same publish the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from schemas.digests import parse_json
from schemas.units import Unit
from transforms.storage.folder import CACHE, OutputFolder
from transforms.units.flow import FlatMap, Flow

CLAIMS = f"{CACHE}/claims"
"""The folder of the claims, relative to OUT: `KEY.json`."""

FinishedFile = Callable[[Unit], str]
"""Names the file, relative to OUT, whose existence means that a unit is done."""


@dataclass(frozen=True, kw_only=True)
class Claimant:
    """A process that claims units.

    Attributes:
        out: The output folder.
        lock: The name of the lock in it that this process holds as long as it lives, its `peer_lock`.
        token: The token of that lock: another process with a lock of this name has another one.
    """

    out: OutputFolder
    lock: str
    token: str

    def claim(self, unit: Unit) -> bool:
        """Claim a unit; False if it is claimed, by whomever."""
        return self.out.store.create(_name(unit), json.dumps({"lock": self.lock, "token": self.token}).encode())

    def find_claimed(self, units: Sequence[Unit], is_alive: Callable[[str, str], bool]) -> set[str]:
        """Return the keys of the units that other living processes have claimed, and remove void claims on the rest.

        Only while this process runs no unit: its own claims are void then.

        Args:
            units: The units.
            is_alive: Tells of a lock and a token whether that process lives.
        """
        present = self.out.store.present(map(_name, units))
        claimed = [unit for unit in units if _name(unit) in present]
        living = self.out.each(lambda unit: self._is_living(unit, is_alive), claimed)
        for unit, lives in zip(claimed, living, strict=True):
            if not lives:
                self.out.remove(_name(unit))
        return {unit.key for unit, lives in zip(claimed, living, strict=True) if lives}

    def _is_living(self, unit: Unit, is_alive: Callable[[str, str], bool]) -> bool:
        try:
            claim = parse_json(self.out.read_bytes(_name(unit)))
            lock, token = str(claim["lock"]), str(claim["token"])
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return False  # removed by now, or its owner died while it wrote
        return token != self.token and is_alive(lock, token)


def clear_claims(out: OutputFolder) -> None:
    """Remove all claims."""
    out.remove_folder(CLAIMS)


def claim_units(claimant: Claimant, finished: FinishedFile) -> Flow:
    """Return the flow that passes on the units that this process runs.

    A unit is claimed when the step that follows takes it, as elements go through both one after the other.

    Args:
        claimant: This process.
        finished: Tells which units are done; of a module's top level.
    """
    return (FlatMap(name="Claim", function=partial(_claim, claimant=claimant, finished=finished), gives=Unit),)


def _claim(unit: Unit, claimant: Claimant, finished: FinishedFile) -> Iterator[Unit]:
    """Yield the unit if it could be claimed and is not done.

    Claims first and looks then: the last owner may have finished between a look and a claim.
    """
    if claimant.claim(unit) and not claimant.out.exists(finished(unit)):
        yield unit


def _name(unit: Unit) -> str:
    return f"{CLAIMS}/{unit.key}.json"
