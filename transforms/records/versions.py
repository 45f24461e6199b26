"""A store of versions: finished runs side by side, and a pointer to the current one.

    STORE/versions/v000001/  v000002/ …    whole output folders; files that are the same share their bytes
    STORE/current                          names one of them: a symbolic link, or a small object
    STORE/changes/v000002.json             what that version changed
    STORE/trend/v000002.json  .parquet     what it held (`trend`)
    STORE/drift/v000002.json               how far it is from what its tokenizer was made for (`transforms.drift`)
    STORE/drift/v000002.proposals.toml     what its new text proposes for a vocabulary
                                           these stay when the version is removed
    STORE/building.json                    names the unfinished version; it exists only while there is one

The pointer is changed when a version is finished, and no file of a finished version changes. So after a crash, the
pointer still names a complete version. Only the holder of the store's lock may change anything.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from schemas.digests import parse_json, seal
from schemas.errors import ConfigError, IntegrityError
from schemas.places import OUTPUT_PACKAGES, is_remote
from schemas.units import RECEIPT_FOLDERS, UNITS, Stage, UnitReceipt, is_sealed, is_unit_receipt
from transforms.records.manifests import MANIFEST
from transforms.records.receipts import RECEIPT
from transforms.records.record import check_form, read_sealed, reads_record
from transforms.records.recorded import recorded_files
from transforms.storage.folder import CACHE, FIRST_PASS, OutputFolder

VERSIONS, CHANGES, TREND, DRIFT = "versions", "changes", "trend", "drift"
CHANGES_FORMAT = "cppmill-changes-1"
_BOTH = {"before": int, "after": int}
CHANGES_FORM: dict[str, Any] = {
    "version": str,
    "previous": (None, str),
    "receipt": {"before": (None, str), "after": str},
    "documents": _BOTH | dict.fromkeys(("added", "removed", "changed", "same"), int),
    **dict.fromkeys(("bytes", "tokens"), _BOTH),
    "shards": dict.fromkeys(("after", "written", "removed", "kept"), int),
    "ids": {
        **dict.fromkeys(("kept", "moved", "added", "removed"), int),
        "tokenizer": {"before": (None, str), "after": str},
        "largest": {"after": int},
    },
}
"""What every record of changes has, which commands read without looking whether it is there."""

CURRENT, BUILDING = "current", "building.json"

_NAME = re.compile(r"v(\d{6,})")
_SHARED_STAGES = (Stage.INGEST, Stage.BUILD, Stage.TOKENIZE, Stage.VALIDATE)
_UNSHARED = (Stage.SCAN, Stage.BUILD)
_SHARED_FOLDERS = (UNITS, *(RECEIPT_FOLDERS[stage] for stage in _SHARED_STAGES))
_SHARED_CACHE = (*FIRST_PASS, f"{CACHE}/drift")
_SHARED_FILES = (f"{CACHE}/digests.json",)
_RUN_FOLDERS = frozenset({UNITS, *(folder.partition("/")[0] for folder in RECEIPT_FOLDERS.values())}) - {CACHE}


def proposals_path(name: str) -> str:
    """Return the path of what a version's new text proposes for a vocabulary, relative to the store."""
    return f"{DRIFT}/{name}.proposals.toml"


def follow_current(place: str) -> str:
    """Return a place with the version that is current now in place of `STORE/current`, in a path or a URL.

    On an object store the pointer is an object that names the version. Other places are returned as they are.

    Raises:
        IntegrityError: If `current` is an object, but no pointer.
    """
    store, found, below = f"{place.rstrip('/')}/".partition(f"/{CURRENT}/")
    if not found or not is_remote(store) or store.partition("://")[0] not in OUTPUT_PACKAGES:
        return place
    versions = Versions(store)
    current = versions.current
    return place if current is None else f"{versions.out(current).root}/{below}".rstrip("/")


def find_run(place: str) -> str:
    """Return the place of a run: `follow_current`, and of a store itself the place of its current version.

    Raises:
        IntegrityError: If `current` is there, but no pointer.
    """
    followed = follow_current(place)
    if followed != place or (is_remote(place) and place.partition("://")[0] not in OUTPUT_PACKAGES):
        return followed
    folder = OutputFolder(place)
    if folder.exists(RECEIPT) or folder.exists(MANIFEST):
        return place
    versions = Versions(place)
    current = versions.current
    return place if current is None else versions.out(current).root


def is_before(name: object, other: str) -> bool:
    """Return whether a value is the name of a version before another one.

    Example:
        >>> is_before("v000001", "v000002"), is_before("v000002", "v000002"), is_before(1, "v000002")
        (True, False, False)
    """
    return isinstance(name, str) and bool(_NAME.fullmatch(name)) and _number(name) < _number(other)


def store_of(out: str) -> str | None:
    """Return the place of the store that a version lies in, going by its path alone; None for any other place.

    Example:
        >>> store_of("s3://bucket/llvm/versions/v000002"), store_of("out/llvm")
        ('s3://bucket/llvm', None)
    """
    above, _, name = out.rpartition("/")
    store, _, folder = above.rpartition("/")
    return store if folder == VERSIONS and store and _NAME.fullmatch(name) else None


class Versions:
    """The versions of a store."""

    def __init__(self, place: str | Path) -> None:
        """Keep the place; it is not accessed."""
        self.folder = OutputFolder(place)

    @property
    def current(self) -> str | None:
        """The name of the current version; None before the first one is finished.

        Raises:
            IntegrityError: If the pointer names something else.
        """
        target = self.folder.store.read_pointer(CURRENT)
        if target is None:
            return None
        name = target.removeprefix(f"{VERSIONS}/")
        if not _NAME.fullmatch(name) or name == target:
            raise IntegrityError(
                f"{self.folder.where(CURRENT)}: it names {target}, which is not a version of this store"
            )
        return name

    @property
    def building(self) -> str | None:
        """The name of the unfinished version, also after a crash; None if there is none.

        Raises:
            IntegrityError: If the file names something else, or a version before the current one, which is finished.
        """
        try:
            data = self.folder.read_bytes(BUILDING)
        except FileNotFoundError:
            return None
        try:
            name = parse_json(data)["version"]
            if _NAME.fullmatch(name) and not is_before(name, self.current or name):
                return str(name)
        except (ValueError, KeyError, TypeError):
            pass
        raise IntegrityError(
            f"{self.folder.where(BUILDING)}: it does not name an unfinished version of this store; remove it and run "
            "again: the unfinished version is started again"
        )

    @property
    def names(self) -> list[str]:
        """The names of all versions, oldest first, finished or not."""
        return sorted(filter(_NAME.fullmatch, self.folder.store.folders(VERSIONS)), key=_number)

    @property
    def recorded(self) -> list[str]:
        """The names of all versions that exist or that something was recorded of, oldest first, finished or not."""
        files = [path.rpartition("/")[2] for folder in (CHANGES, TREND) for path in self.folder.files(folder)]
        names = {name.removesuffix(".json") for name in files if name.endswith(".json")}
        return sorted({*self.names, *filter(_NAME.fullmatch, names)}, key=_number)

    def out(self, name: str) -> OutputFolder:
        """Return the output folder of a version."""
        return OutputFolder(f"{self.folder.root}/{VERSIONS}/{name}")

    def read_changes(self, name: str) -> dict[str, Any] | None:
        """Return what was recorded of the changes of a version, as `read`."""
        return self.read(CHANGES, name, CHANGES_FORMAT, CHANGES_FORM)

    def read(self, folder: str, name: str, record_format: str, form: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return what was recorded of a version in `CHANGES`, `TREND` or `DRIFT`; None if nothing was.

        Args:
            folder: One of these.
            name: The version.
            record_format: The format that the record must have.
            form: What it must have, for `check_form`.

        Raises:
            IntegrityError: If the record is not of this format or of another version, or was changed; older ones have
                no digest.
        """
        file, advice = f"{folder}/{name}.json", "remove the file"
        record = read_sealed(self.folder, file, kind="record", record_format=record_format, advice=advice)
        if record is not None and (version := record.get("version", name)) != name:
            raise IntegrityError(f"{self.folder.where(file)}: it is of {version}; {advice}")
        if record is not None:
            with reads_record(self.folder.where(file), kind="record"):
                check_form(record, form)
        return record

    def write_record(self, folder: str, name: str, record: Mapping[str, Any]) -> None:
        """Record something of a version in `CHANGES`, `TREND` or `DRIFT`, with a digest of the record."""
        self.folder.publish_bytes(f"{folder}/{name}.json", seal(record))

    def check_place(self) -> None:
        """Check that the place is not the folder of a run or an export, and that none of its folders is a link.

        Raises:
            ConfigError: Naming what shows it, or the link.
        """
        for name in () if is_remote(self.folder.root) else (VERSIONS, CHANGES, TREND, DRIFT):
            if Path(self.folder.where(name)).is_symlink():
                raise ConfigError(
                    f"{self.folder.where(name)}: a link, behind which nothing is written; put the folder that it leads "
                    "to in its place"
                )
        found = [name for name in (RECEIPT, MANIFEST) if self.folder.exists(name)]
        found += [f"{name}/" for name in self.folder.store.folders("") if name in _RUN_FOLDERS]
        if found:
            raise ConfigError(
                f"--store {self.folder.root}: it holds {found[0]}: the folder of a run or an export, not a store of "
                "versions; name another one (a run can become the first version of one: docs/how-to/scheduling.md)"
            )

    def check_pointer(self) -> None:
        """Check that the pointer exists if there are finished versions: else it is unknown which one is current.

        Raises:
            IntegrityError: Saying how to set the pointer to the newest.
        """
        if self.current is not None:
            return
        finished = [name for name in self.names if name != self.building and self.out(name).exists(RECEIPT)]
        if finished:
            target, place = f"{VERSIONS}/{finished[-1]}", self.folder.where(CURRENT)
            link = f"ln -s {target} {shlex.quote(place)}"
            advice = f"write {json.dumps({'target': target})} to it" if is_remote(place) else link
            raise IntegrityError(f"{place}: missing, though {', '.join(finished)} exist; let it name one: {advice}")

    def begin(self, base: str | None) -> str:
        """Return the version to make: the unfinished one, else a new one.

        It shares the files of the base that it may reuse; the base's receipt is not among them. A file that is removed
        from it afterwards, as it was damaged, is not shared again. Links in it are removed, as nothing is written
        behind one.

        Raises:
            ConfigError: If the version itself is a link.
        """
        name = self.building
        if name is None or name == base:
            name = f"v{max(map(_number, self.names), default=0) + 1:06}"
            self.folder.publish_bytes(BUILDING, json.dumps({"version": name}).encode())
        version = self.out(name)
        if not is_remote(version.root) and Path(version.root).is_symlink():
            raise ConfigError(
                f"{version.root}: a link, behind which nothing is written; remove it and what it leads to"
            )
        for stranger in list(version.strangers()):
            version.remove(stranger)
        if base is not None and parse_json(self.folder.read_bytes(BUILDING)).get("shares") != base:
            _share(self.out(base), version)
            self.folder.publish_bytes(BUILDING, json.dumps({"version": name, "shares": base}).encode())
        return name

    def finish(self, name: str, changes: dict[str, object], *, replaced: str | None) -> None:
        """Record what a version changed, and make it the current one.

        Raises:
            LockedError: If the pointer no longer names the version to replace.
        """
        self.write_record(CHANGES, name, changes)
        expected = None if replaced is None else f"{VERSIONS}/{replaced}"
        self.folder.store.set_pointer(CURRENT, f"{VERSIONS}/{name}", expected=expected)
        self.folder.remove(BUILDING)

    def keep_first_pass(self, name: str, current: str) -> None:
        """Give the current version what an unfinished one, which came out the same, found in the first pass.

        Otherwise each command would read sources again that were only touched.
        """
        made, kept = self.out(name), self.out(current)
        for folder in FIRST_PASS:
            names, before = set(made.files(folder)), set(kept.files(folder))
            kept.link(made, sorted(names - before))
            for stale in sorted(before - names):
                kept.remove(stale)

    def discard(self) -> None:
        """Remove the unfinished version, if there is one, unless it became the current one."""
        name = self.building
        if name is not None and name != self.current:
            self._remove(name)
            for record in (f"{TREND}/{name}.json", f"{TREND}/{name}.parquet", f"{CHANGES}/{name}.json"):
                self.folder.remove(record)
            for record in (f"{DRIFT}/{name}.json", proposals_path(name)):
                self.folder.remove(record)
        self.folder.remove(BUILDING)

    def prune(self, keep: int) -> list[str]:
        """Remove all but the newest finished versions, and abandoned ones; never the current one.

        Args:
            keep: How many versions to keep, the current one included; at least 1.

        Returns:
            The removed versions.

        Raises:
            ConfigError: If one of them is a link.
        """
        others = [name for name in self.names if name not in (self.current, self.building)]
        finished = [name for name in others if self.out(name).exists(RECEIPT)]
        kept = set(finished[max(0, len(finished) - (keep - 1)) :])
        removed = [name for name in others if name not in kept]
        for place in (self.folder.where(f"{VERSIONS}/{name}") for name in removed):
            if Path(place).is_symlink():
                raise ConfigError(f"{place}: a link, behind which nothing is removed; remove it and what it leads to")
        for name in removed:
            self._remove(name)
        return removed

    def _remove(self, name: str) -> None:
        """Remove a version, its receipt first: if this is interrupted, the rest does not count as a finished run."""
        self.folder.remove(f"{VERSIONS}/{name}/{RECEIPT}")
        self.folder.remove_folder(f"{VERSIONS}/{name}")


def _share(source: OutputFolder, version: OutputFolder) -> None:
    """Let a version begin with the files of its base that it may reuse; a damaged unit receipt is not among them.

    The receipt of the base, which is not shared, vouches for unit receipts of older versions: they get a digest of
    their own.
    """
    source.hold_receipts(recorded_files(source))
    names = list(_shared_files(source))
    receipts = [name for name in names if any(is_unit_receipt(name, stage) for stage in _SHARED_STAGES)]
    linked = set(names).difference(receipts)

    def check(name: str) -> str | None:
        try:
            data = source.read_bytes(name)
            receipt = UnitReceipt.from_bytes(data, where=source.where(name))
            source.check_recorded(name, data)
        except IntegrityError:
            return None  # its unit runs again
        if is_sealed(data) and name == receipt.path:
            return name
        if not version.exists(receipt.path):
            version.publish_receipt(receipt)
        return None

    linked.update(name for name in source.each(check, receipts) if name is not None)
    version.link(source, sorted(linked))


def _shared_files(source: OutputFolder) -> Iterator[str]:
    """Yield the files of a version that the next one may reuse: no logs, no counts, no receipt of the build."""
    for folder in (*_SHARED_FOLDERS, *_SHARED_CACHE):
        names = source.files(folder)
        yield from (name for name in names if not any(is_unit_receipt(name, stage) for stage in _UNSHARED))
    yield from (name for name in _SHARED_FILES if source.exists(name))


def _number(name: str) -> int:
    return int(name[1:])
