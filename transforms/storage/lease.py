"""A lock on an object store: a lease, an object that its holder rewrites before it expires.

Every write is conditional: a lease is taken only if there is no object, and renewed or taken over only if the object
still has the version that was read. So of two runs that try at once, one wins. Clocks are never compared: a lease is
taken over after its object was *seen* unchanged for the lease's whole duration.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
import uuid
from typing import Any, Protocol

from schemas.digests import parse_json
from schemas.errors import IntegrityError, LockedError, StoreError
from schemas.logs import module_logger
from transforms.storage.protocol import ConflictError, Holder

logger = module_logger(__name__)

LEASE_SECONDS = 60.0
"""How long a lease lasts without renewal; long enough to survive a temporary failure of the store."""

_MOST_SECONDS = 3600
"""No lease lasts longer."""

_RENEWALS = 4
"""How many times it is renewed in that time."""

_LOOK_SECONDS = 0.5


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
    """A lease, taken when it is made and released by `release` or at the end of a `with` block.

    Raises:
        LockedError: If another run holds it.
    """

    def __init__(self, holder: LeaseObject, where: str) -> None:
        """Take the lease; if another run holds it, wait to see whether that run still renews it."""
        self._object, self._where = holder, where
        self.token, self._seconds = uuid.uuid4().hex, LEASE_SECONDS
        self._lost = ""
        self._stop = threading.Event()
        self._version = self._take()
        self._thread = threading.Thread(target=self._renew, name="lease", daemon=True)
        self._thread.start()

    def __enter__(self) -> Lease:
        """Return the lease."""
        return self

    def __exit__(self, *_: object) -> None:
        """Release it."""
        self.release()

    def check(self) -> None:
        """Raise LockedError if another run has taken the lease over."""
        if self._lost:
            raise LockedError(
                f"{self._where}: {self._lost} took the lock over, as this run did not renew it for "
                f"{self._seconds:g} s (suspended, or cut off from the store); this run writes nothing more: run again "
                "when the other one has ended"
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
        version, record = self._observe()
        try:
            taken = self._write(version)
        except ConflictError as error:
            raise self._locked(_owner(self._read())) from error
        if version is not None:
            logger.warning("%s: lock taken over from %s, which stopped renewing it", self._where, _owner(record))
        return taken

    def _observe(self) -> tuple[str | None, dict[str, Any]]:
        """Watch the object for the duration of its lease; return its unchanged version, or None if it was removed.

        Raises:
            LockedError: If its holder renews it.
        """
        first, record = self._object.version(), self._read()
        seconds = _duration(record)
        logger.warning(
            "%s: locked by %s; waiting up to %g s to see whether that run is alive",
            self._where,
            _owner(record),
            seconds,
        )
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(_LOOK_SECONDS)
            found = self._object.version()
            if found is None:
                return None, record
            if found != first:
                raise self._locked(_owner(self._read()))
        return first, record

    def _renew(self) -> None:
        while not self._stop.wait(self._seconds / _RENEWALS):
            try:
                self._version = self._write(self._version)
            except ConflictError:
                record = self._read()
                if record.get("token") != self.token:
                    self._lost = _owner(record)
                    return
                self._version = self._object.version() or self._version  # written, but the answer was lost
            except StoreError as error:
                logger.warning("%s: could not renew the lock, will try again: %s", self._where, error)

    def _write(self, expected: str | None) -> str:
        record = {
            "token": self.token,
            "owner": f"{socket.gethostname()}, process {os.getpid()}",
            "seconds": self._seconds,
            "expires": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + self._seconds)),
            "renewal": uuid.uuid4().hex,  # makes every write differ, and so get a new version
        }
        return self._object.write(json.dumps(record).encode(), expected=expected)

    def _read(self) -> dict[str, Any]:
        return _read(self._object)

    def _locked(self, owner: str) -> LockedError:
        return LockedError(f"{self._where}: another run is writing here ({owner}); wait for it or write elsewhere")


def read_holder(holder: LeaseObject) -> Holder | None:
    """Return who holds a lease, or held it when it crashed; None if there is none."""
    if holder.version() is None:
        return None
    record = _read(holder)
    return Holder(_owner(record), str(record.get("expires", "")) or None, str(record.get("token", "")))


def _read(holder: LeaseObject) -> dict[str, Any]:
    try:
        record = parse_json(holder.read())
    except (FileNotFoundError, ValueError, IntegrityError):
        return {}
    return record if isinstance(record, dict) else {}


def _duration(record: dict[str, Any]) -> float:
    """Return how long a lease lasts; what is none counts as the usual time, as in a record that cannot be read."""
    seconds: Any = record.get("seconds")
    if type(seconds) in (int, float) and 0 < seconds <= _MOST_SECONDS:
        return float(seconds)
    return LEASE_SECONDS


def _owner(record: dict[str, Any]) -> str:
    return str(record.get("owner", "an unknown run"))
