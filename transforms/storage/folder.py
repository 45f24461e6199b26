"""The output folder, on a file system or on an object store: publishing files, unit receipts, remembered digests.

A file is written to a local temporary file, digested and published atomically. Digests of published files are
remembered by size and version (modification time, entity tag). What depends on the place is its `Store`
(`protocol`), which callers use directly for the lock, logs, pointers and the like.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.digests import HEX_DIGEST, parse_json, sha256_file
from schemas.errors import ConfigError, IntegrityError, ResourceError
from schemas.passwords import NO_PASSWORD, has_password, redacted
from schemas.places import is_remote
from schemas.resources import find_refusal, naming_file
from schemas.units import (
    APART,
    RECEIPT_FOLDERS,
    UNITS,
    OutputFile,
    Stage,
    Unit,
    UnitReceipt,
    current_path,
    is_sealed,
    is_unit_receipt,
    old_receipt_path,
    receipt_folder,
)
from transforms.storage.local import LocalStore
from transforms.storage.objects import ObjectStore
from transforms.storage.protocol import CACHE, Status, Store

__all__ = ["CACHE", "FIRST_PASS", "OutputFolder"]

Item = TypeVar("Item")
Result = TypeVar("Result")

FIRST_PASS = tuple(f"{CACHE}/{name}" for name in ("fingerprints", "duplicates", "signatures", "near_duplicates"))
"""The folders in which the first pass of ingest keeps what it found."""

_DIGESTS = f"{CACHE}/digests.json"
SET_ASIDE = f"{CACHE}/set-aside"
"""Where damaged unit receipts are kept, under their names."""


def _digest_of(entries: dict[str, Any]) -> str:
    """Return the digest of remembered digests; times in nanoseconds are too large for canonical JSON."""
    return hashlib.sha256(json.dumps(entries, sort_keys=True).encode()).hexdigest()


_GENERATOR_FAILED = " Detail: Python exception: Traceback"
"""With what Arrow begins the traceback of a generator that it reads."""


class UnsealedError(IntegrityError):
    """A unit receipt of an older version that nothing vouches for: its unit is run again, and nothing is wrong."""


@contextmanager
def naming_damage(where: str, advice: str = "restore it, or remove it and run again") -> Iterator[None]:
    """Turn what Arrow says of a damaged file in the block, a name that is not UTF-8 too, into an error that names it.

    Args:
        where: The file.
        advice: What the error ends with.

    Raises:
        IntegrityError: Naming it.
        ResourceError: If the machine refused something to a generator that Arrow reads.
    """
    try:
        yield
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        # Those of the operating system have a number, Arrow's own have none.
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno is not None):
            raise
        if refusal := find_refusal(str(error)):
            raise ResourceError(refusal) from error
        reason = " ".join(str(error).partition(_GENERATOR_FAILED)[0].split())
        raise IntegrityError(f"{where}: damaged ({reason}); {advice}") from error


def check_sha256(path: Path, sha256: str, *, where: str, advice: str) -> None:
    """Compare the bytes of a file with what its receipt says.

    Args:
        path: The file.
        sha256: What the receipt says.
        where: The file, for the message.
        advice: What the error ends with.

    Raises:
        IntegrityError: If its SHA-256 is another one.
    """
    if (found := sha256_file(path)) != sha256:
        raise IntegrityError(f"{where}: its SHA-256 is {found}, its receipt says {sha256}; {advice}")


class OutputFolder:
    """OUT. Names of files are relative to it.

    Attributes:
        root: An absolute path, or a URL (`s3://bucket/prefix`); all that is pickled.
        store: The place itself; what is the same on every place is an attribute here too: `where`, `files` and so on.

    Args:
        root: Where OUT is; a local folder is created when the first file is published.
    """

    def __init__(self, root: str | Path) -> None:
        """Keep the place; it is not accessed.

        Raises:
            ConfigError: If it is a URL with a password, which errors of the store would show.
        """
        remote = is_remote(str(root))
        if remote and has_password(str(root)):
            raise ConfigError(f"{redacted(str(root))}: {NO_PASSWORD}")
        self.root = str(root).rstrip("/") if remote else str(Path(root).absolute())
        self.store: Store = ObjectStore(self.root) if remote else LocalStore(Path(self.root))
        self.where, self.read_bytes = self.store.where, self.store.read_bytes
        self.files, self.strangers = self.store.files, self.store.strangers
        self.open_local, self.open_local_folder = self.store.open_local, self.store.open_local_folder
        self.remove, self.remove_folder = self.store.remove, self.store.remove_folder
        self._digests: dict[str, tuple[int, int | str, str]] = {}
        self._recorded: dict[str, str] | None = None

    def __reduce__(self) -> tuple[type[OutputFolder], tuple[str]]:
        """Pickle the place alone."""
        return OutputFolder, (self.root,)

    def __eq__(self, other: object) -> bool:
        """Compare the places."""
        return isinstance(other, OutputFolder) and other.root == self.root

    def __hash__(self) -> int:
        """Hash the place."""
        return hash(self.root)

    def __repr__(self) -> str:
        """Name the place."""
        return f"OutputFolder({self.root!r})"

    @property
    def temporary(self) -> Path:
        """An existing local folder for unpublished files: in OUT if that is local, else this process's own."""
        return self.store.temporary()

    def each(self, look: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """Return `look(item)` for each item, in order; concurrently on an object store, where each is a request."""
        if self.store.max_requests == 1:
            return list(map(look, items))
        with ThreadPoolExecutor(self.store.max_requests) as pool:
            return list(pool.map(look, items))

    def exists(self, name: str) -> bool:
        """Tell whether a file exists."""
        return self.store.status(name) is not None

    def publish(self, name: str, write: Callable[[Path], int]) -> OutputFile:
        """Publish the file that `write` makes at the path it is given.

        Args:
            name: Path relative to OUT.
            write: Writes the file and returns its number of rows.

        Raises:
            IntegrityError: If the name contains a unit's key and another writer has published other bytes under it.
            ResourceError: If the machine refuses it, for example for lack of space.
        """
        temporary = (
            self.temporary / uuid.uuid4().hex
        )  # made by who writes it, with the permissions that the umask leaves
        try:
            with naming_file(self.where(name), temporary):
                rows = write(temporary)
            return self.adopt(name, temporary, rows=rows)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise

    def adopt(self, name: str, temporary: Path, *, rows: int) -> OutputFile:
        """Publish a finished file of the folder `temporary`, and remove it there.

        Raises:
            IntegrityError: If the name contains a unit's key and another writer has published other bytes under it.
            ResourceError: If the machine refuses it, for example for lack of space.
        """
        with naming_file(self.where(name), temporary):
            digest, size = sha256_file(temporary), temporary.stat().st_size
            self.store.put(name, temporary, sha256=digest)
        self._forget(name)
        return OutputFile(path=name, sha256=digest, num_bytes=size, rows=rows)

    def publish_bytes(self, name: str, data: bytes) -> OutputFile:
        """Publish `data` as a file."""

        def write(path: Path) -> int:
            path.write_bytes(data)
            return 0

        return self.publish(name, write)

    def publish_changed(self, name: str, data: bytes) -> None:
        """Publish `data` as a file, unless the file has these bytes already: flushing it to disk takes a while."""
        if self.store.status(name) is None or self.read_bytes(name) != data:
            self.publish_bytes(name, data)

    def hold_receipts(self, recorded: Mapping[str, str]) -> None:
        """Hold unit receipts and the tokenizer to the record of the finished run or export, until they are published.

        From now on a receipt is valid only if the record names its bytes, or if the record does not name it and it has
        a digest of itself. Workers, which get the place alone, trust what the holder of the lock has left there.

        Args:
            recorded: SHA-256 by path of the files that the record names; empty without a record.
        """
        self._recorded = {current_path(name): digest for name, digest in recorded.items()}

    def is_recorded(self, name: str) -> bool:
        """Return whether the record that `hold_receipts` was given names a file that was not published since."""
        return self.recorded_digest(name) is not None

    def recorded_digest(self, name: str) -> str | None:
        """Return the SHA-256 that the record has of a file; None if it has none, or the file was published since."""
        return (self._recorded or {}).get(name)

    def recorded_receipts(self, stage: Stage) -> list[str]:
        """Return the paths of a stage's unit receipts for which `is_recorded` is true."""
        return [name for name in self._recorded or () if is_unit_receipt(name, stage)]

    def publish_receipt(self, receipt: UnitReceipt) -> None:
        """Publish a unit's receipt: this commits its outputs."""
        self.publish_bytes(receipt.path, receipt.to_bytes())

    def replace_receipt(self, receipt: UnitReceipt) -> None:
        """Publish a unit's receipt in place of the one that is there; only for the holder of the lock."""
        if not self.store.overwrites:
            self.remove(receipt.path)
        self.publish_receipt(receipt)

    def find_receipt(self, unit: Unit) -> UnitReceipt | None:
        """Return the unit's receipt if it is valid and every output still has its digest, else None."""
        try:
            receipt = self.read_receipt(unit)
        except (FileNotFoundError, IntegrityError):
            return None
        is_whole = all(map(self._is_whole, receipt.outputs))
        return receipt if is_whole and (self.is_recorded(receipt.path) or self._has_rows(receipt)) else None

    def _has_rows(self, receipt: UnitReceipt) -> bool:
        """Return whether the counts of a shard, whose rows no total says, have the rows that their receipt says."""
        if receipt.stage is not Stage.SCAN or not receipt.inputs:
            return True
        try:
            return all(self.num_rows(output.path) == output.rows for output in receipt.outputs)
        except (FileNotFoundError, IntegrityError):
            return False

    def num_rows(self, name: str) -> int:
        """Return how many rows the footer of a Parquet file says.

        Raises:
            FileNotFoundError: If there is no such file.
            IntegrityError: If Arrow finds that it is damaged.
        """
        with self.open_ranges(name) as file, pq.ParquetFile(file) as table:
            return int(table.metadata.num_rows)

    def _is_whole(self, output: OutputFile) -> bool:
        """Return whether a file has the size and the digest that a receipt says."""
        status = self.store.status(output.path)
        if status is None or status.num_bytes != output.num_bytes:
            return False
        return self._digest(output.path, status) == output.sha256

    def read_receipt(self, unit: Unit) -> UnitReceipt:
        """Return the unit's receipt, whatever became of its outputs.

        Raises:
            FileNotFoundError: If there is none.
            IntegrityError: If it is damaged, another unit's, or not the one that the record of the run names.
        """
        name = unit.receipt_path
        data, where = self.read_receipt_bytes(name), self.where(name)
        receipt = UnitReceipt.from_bytes(data, where=where)
        self.check_recorded(name, data)
        receipt.check_facts(where=where)
        receipt.check_name(name, where=where)
        planned = unit.planned_inputs
        # By content: the same shard of another unit has another name, and its own unit need not run again. Receipts
        # of older versions may have no inputs.
        has_inputs = bool(receipt.inputs) or is_sealed(data)
        if planned is not None and has_inputs and set(receipt.inputs.values()) != set(planned.values()):
            raise IntegrityError(f"{where}: its inputs are {receipt.inputs}, the unit is planned for {planned}")
        return receipt

    @contextmanager
    def open_ranges(self, name: str) -> Iterator[pa.NativeFile]:
        """Open a file to read parts of it, as those of Parquet, within the block.

        Raises:
            FileNotFoundError: If there is none.
            IntegrityError: If Arrow finds in the block that it is damaged.
        """
        with self.store.open_ranges(name) as file, naming_damage(self.where(name)):
            yield file

    def read_receipt_bytes(self, name: str) -> bytes:
        """Return the bytes of a unit receipt, by its path; where a run before receipts were apart left it, too.

        Raises:
            FileNotFoundError: If there is none.
        """
        old = old_receipt_path(name)
        try:
            return self.read_bytes(name)
        except FileNotFoundError:
            if old is None:
                raise
            return self.read_bytes(old)

    def move_receipts(self) -> None:
        """Put unit receipts of an older run where they are now; only for the holder of the lock.

        They stay where they were too, because the record of that run names them, until a new one replaces it. A link in
        the place of a receipt goes: it would count, and `verify` refuses it.
        """
        for stage in Stage:
            for name in [name for name in self.strangers(receipt_folder(stage)) if is_unit_receipt(name, stage)]:
                self.remove(name)
        for stage in APART:
            names = [name for name in self.files(RECEIPT_FOLDERS[stage]) if current_path(name) != name]
            self.each(lambda name: self.store.link(current_path(name), self.where(name)), names)

    def receipts(self, stage: Stage) -> list[str]:
        """Return the paths of all unit receipts of a stage, sorted."""
        folders = {receipt_folder(stage), RECEIPT_FOLDERS[stage]}
        found = (name for folder in folders for name in self.files(folder))
        return sorted({current_path(name) for name in found if is_unit_receipt(name, stage)})

    def check_recorded(self, name: str, data: bytes) -> None:
        """Check the bytes of a readable unit receipt against the record that `hold_receipts` was given.

        Raises:
            IntegrityError: If the record names other bytes, or if nothing shows that they are whole.
        """
        if self._recorded is None:
            return
        expected, found = self._recorded.get(current_path(name)), hashlib.sha256(data).hexdigest()
        if expected is None and not is_sealed(data):
            raise UnsealedError(f"{self.where(name)}: of an older version, without a digest, and no record names it")
        if expected not in (None, found):
            raise IntegrityError(f"{self.where(name)}: its SHA-256 is {found}, the record of the run says {expected}")

    def withdraw(self, units: Sequence[Unit]) -> list[str]:
        """Allow units to publish their files again; return a line for each receipt that was found damaged.

        A damaged receipt is set aside below `.cache/set-aside`. Where files cannot be overwritten, receipts and outputs
        are removed too. Only for the holder of the lock, and for units without a valid receipt.
        """
        present = self.store.present(unit.receipt_path for unit in units)
        stale = [unit for unit in units if unit.receipt_path in present]
        damaged = [line for unit in stale for line in self._set_aside(unit)]
        for old in filter(None, (old_receipt_path(unit.receipt_path) for unit in stale)):
            self.remove(old)  # or a worker would take it for that of a finished unit
        if not self.store.overwrites:
            # By the keys in their names: a damaged receipt may name anything.
            keys = {unit.key for unit in stale}
            for folder in {RECEIPT_FOLDERS[unit.stage] for unit in stale}:
                for name in [name for name in self.files(folder) if keys.intersection(HEX_DIGEST.findall(name))]:
                    self.remove(name)
            for unit in stale:
                self.remove(unit.receipt_path)
        for unit in units:
            self._forget(unit.receipt_path)
        return damaged

    def _set_aside(self, unit: Unit) -> Iterator[str]:
        """Remove a receipt that is not valid, keep a copy if it is damaged, and yield what is wrong with it."""
        try:
            self.read_receipt(unit)
        except UnsealedError:
            self.remove(unit.receipt_path)
        except IntegrityError as error:
            self.set_aside(unit.receipt_path)
            yield str(error)

    def set_aside(self, name: str) -> None:
        """Remove a receipt, so that it is made again, and keep a copy below `.cache/set-aside`."""
        self.publish_bytes(f"{SET_ASIDE}/{name}", self.read_bytes(name))
        self.remove(name)

    def _forget(self, name: str) -> None:
        if self._recorded is not None:
            self._recorded.pop(name, None)

    def describe(self, name: str, *, rows: int = 0) -> OutputFile:
        """Return the description of a file; FileNotFoundError if there is none."""
        status = self.store.status(name)
        if status is None:
            raise FileNotFoundError(2, "No such file", self.where(name))
        return OutputFile(path=name, sha256=self._digest(name, status), num_bytes=status.num_bytes, rows=rows)

    def digest(self, name: str) -> str | None:
        """Return the SHA-256 of a file, remembered if size and version are unchanged; None if there is no file."""
        status = self.store.status(name)
        return None if status is None else self._digest(name, status)

    def hash(self, name: str) -> str:
        """Return the SHA-256 of a file by reading all its bytes."""
        with self.open_local(name) as path:
            return sha256_file(path)

    def check_bytes(self, files: Mapping[str, str]) -> None:
        """Compare files from which something else is about to be made with what their receipts say, read or not before.

        Bits that rot on a disk change no time. A store has checksums of its own, and its objects are not read twice.

        Args:
            files: The SHA-256 of each, by name.

        Raises:
            IntegrityError: Naming the first that is missing or another one.
        """
        for name, sha256 in {} if is_remote(self.root) else files.items():
            if not self.exists(name):
                raise IntegrityError(f"{self.where(name)}: missing; run again")
            with self.open_local(name) as path:
                check_sha256(path, sha256, where=self.where(name), advice="remove it and run again")

    def load_digests(self) -> None:
        """Load the digests that earlier runs remembered, if they are whole: a receipt would take them for true.

        Those of a local tokenizer, of unit receipts, and of files at the top, are left out: they are small, and bits
        that rot on a disk change no time.
        """
        try:
            remembered = parse_json(self.read_bytes(_DIGESTS))
            entries: dict[str, list[Any]] = remembered["files"]
            if remembered["digest"] != _digest_of(entries):
                return
            unread = (f"{UNITS}/", *(f"{receipt_folder(stage)}/" for stage in (Stage.BUILD, Stage.VALIDATE)))
            for name, (size, version, digest) in entries.items():
                if is_remote(self.root) or ("/" in name and not name.startswith(unread)):
                    self._digests[name] = (size, version, digest)
        except (FileNotFoundError, ValueError, AttributeError, TypeError, LookupError, IntegrityError):
            self._digests.clear()  # only a cache: missing digests are computed again

    def save_digests(self) -> None:
        """Save the digests of the files that still exist."""
        present = self.store.present(self._digests)
        entries = {name: entry for name, entry in sorted(self._digests.items()) if name in present}
        self.publish_changed(_DIGESTS, json.dumps({"digest": _digest_of(entries), "files": entries}).encode())

    def link(self, source: OutputFolder, names: Iterable[str]) -> None:
        """Share published files of another folder, in the same kind of place, under the same names.

        By hard links, or copies within the object store; names that exist here stay as they are.
        """
        self.each(lambda name: self.store.link(name, source.where(name)), names)

    def _digest(self, name: str, status: Status) -> str:
        known = self._digests.get(name)
        if known and known[:2] == (status.num_bytes, status.version):
            return known[2]
        digest = status.sha256 or self.hash(name)
        self._digests[name] = (status.num_bytes, status.version, digest)
        return digest
