"""The one-writer lock on an object store: a lease, an object that its holder writes again before it runs out.

Every write is conditional: taking on there being no object, renewing and taking over on the version that was read. So
of two that try at once one wins. Clocks are never compared: a lease is taken over when its object was *seen* unchanged
for as long as it is given for.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
import time
import uuid
from typing import Any, Protocol

from schemas.errors import LockedError, StoreError
from transforms.storage.protocol import Holder

logger = logging.getLogger(__name__)

LEASE_SECONDS = 60.0
"""How long a lease lasts without being renewed; long enough for a store that fails for a while."""

_RENEWALS = 4
"""How often it is renewed in that time."""

_LOOK_SECONDS = 0.5


class ConflictError(Exception):
    """A conditional write that lost: the object is not, or not any more, what was expected."""


class LeaseObject(Protocol):
    """The object of a lease; versions are opaque."""

    def version(self) -> str | None:
        """Return the object's version, None if there is none."""

    def read(self) -> bytes:
        """Return its bytes; FileNotFoundError if there is none."""

    def write(self, data: bytes, *, expected: str | None) -> str:
        """Write it if it has the expected version (None: if there is none), and return the new one.

        Raises:
            ConflictError: If it has not.
        """

    def remove(self) -> None:
        """Remove it."""


class Lease:
    """A lease, held from its making until `release` or the end of a `with` block.

    Args:
        holder: The object.
        where: What messages call it.

    Raises:
        LockedError: If another run holds it.
    """

    def __init__(self, holder: LeaseObject, where: str) -> None:
        """Take the lease; if a run holds it that may be dead, wait to see whether it is renewed."""
        self._object, self._where = holder, where
        self._token, self._seconds = uuid.uuid4().hex, LEASE_SECONDS
        self._lost = ""
        self._stop = threading.Event()
        self._version = self._take()
        self._thread = threading.Thread(target=self._renew, name="lease", daemon=True)
        self._thread.start()

    def __enter__(self) -> Lease:
        """Hold it for a block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Give it back."""
        self.release()

    def check(self) -> None:
        """Raise LockedError if another run has taken the lease over."""
        if self._lost:
            raise LockedError(
                f"{self._where}: {self._lost} took the lock over, as this run did not renew it for "
                f"{self._seconds:g} s (stopped, or cut off from the store); nothing more is written: run again when "
                "the other run has ended"
            )

    def release(self) -> None:
        """Stop renewing, and remove the object if it is still this run's."""
        self._stop.set()
        self._thread.join()
        if not self._lost and self._object.version() == self._version:
            self._object.remove()

    def _take(self) -> str:
        try:
            return self._write(None)
        except ConflictError:
            pass
        version, said = self._observe()
        try:
            taken = self._write(version)
        except ConflictError as error:
            raise self._locked(_owner(self._read())) from error
        if version is not None:
            logger.warning("%s: taken over from %s, which did not renew it", self._where, _owner(said))
        return taken

    def _observe(self) -> tuple[str | None, dict[str, Any]]:
        """Watch the object for the time of its lease; return its version, unchanged, or None if it went.

        Raises:
            LockedError: If its holder renews it.
        """
        first, said = self._object.version(), self._read()
        seconds = float(said.get("seconds", LEASE_SECONDS))
        logger.warning(
            "%s: held by %s; waiting up to %g s to see whether that run is alive", self._where, _owner(said), seconds
        )
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(_LOOK_SECONDS)
            found = self._object.version()
            if found is None:
                return None, said
            if found != first:
                raise self._locked(_owner(self._read()))
        return first, said

    def _renew(self) -> None:
        while not self._stop.wait(self._seconds / _RENEWALS):
            try:
                self._version = self._write(self._version)
            except ConflictError:
                said = self._read()
                if said.get("token") != self._token:
                    self._lost = _owner(said)
                    return
                self._version = self._object.version() or self._version  # written, but the answer was lost
            except StoreError as error:
                logger.warning("%s: not renewed, to be tried again: %s", self._where, error)

    def _write(self, expected: str | None) -> str:
        said = {
            "token": self._token,
            "owner": f"{socket.gethostname()}, process {os.getpid()}",
            "seconds": self._seconds,
            "expires": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + self._seconds)),
            "renewal": uuid.uuid4().hex,  # no two writes are alike, so each has a version of its own
        }
        return self._object.write(json.dumps(said).encode(), expected=expected)

    def _read(self) -> dict[str, Any]:
        return _read(self._object)

    def _locked(self, owner: str) -> LockedError:
        return LockedError(f"{self._where}: another run is writing here ({owner}); wait for it or write elsewhere")


def read_holder(holder: LeaseObject) -> Holder | None:
    """Return who holds a lease, or held it and died; None if there is none."""
    if holder.version() is None:
        return None
    said = _read(holder)
    return Holder(_owner(said), str(said.get("expires", "")) or None)


def _read(holder: LeaseObject) -> dict[str, Any]:
    try:
        said = json.loads(holder.read())
    except (FileNotFoundError, ValueError):
        return {}
    return said if isinstance(said, dict) else {}


def _owner(said: dict[str, Any]) -> str:
    return str(said.get("owner", "an unknown run"))
