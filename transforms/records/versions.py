"""A store of versions: finished runs side by side, and a pointer to the one that counts.

    STORE/versions/v000001/  v000002/ …    whole output folders; files that are the same share their bytes
    STORE/current                          names one of them: a symbolic link, or a small object
    STORE/changes/v000002.json             what that version changed
    STORE/building.json                    names the version that is being made; it is there only meanwhile

The pointer is moved when a version is finished, and nothing that it names changes afterwards: whatever dies, it names
a whole version. Only for the holder of the store's lock, but for reading.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from schemas.digests import canonical_json
from schemas.errors import ConfigError, IntegrityError
from schemas.places import is_remote
from schemas.units import RECEIPT_FOLDERS, Stage, is_unit_receipt
from transforms.records.manifests import MANIFEST
from transforms.records.receipts import RECEIPT
from transforms.storage.folder import CACHE, OutputFolder

VERSIONS, CHANGES = "versions", "changes"
CURRENT, BUILDING = "current", "building.json"

_NAME = re.compile(r"v(\d{6,})")
_TAKEN_FOLDERS = tuple(RECEIPT_FOLDERS[stage] for stage in (Stage.INGEST, Stage.BUILD, Stage.TOKENIZE, Stage.VALIDATE))
_TAKEN_CACHE = tuple(f"{CACHE}/{name}" for name in ("fingerprints", "duplicates", "signatures", "near_duplicates"))
_TAKEN_FILES = (f"{CACHE}/digests.json",)
_OF_A_RUN = frozenset(folder.partition("/")[0] for folder in RECEIPT_FOLDERS.values()) - {CACHE}


class Versions:
    """The versions of a store.

    Args:
        place: The store, a path or a URL.
    """

    def __init__(self, place: str | Path) -> None:
        """Name the place; nothing is looked at."""
        self.folder = OutputFolder(place)

    @property
    def current(self) -> str | None:
        """The name of the version that counts; None before the first one is finished.

        Raises:
            IntegrityError: If the pointer names something else.
        """
        target = self.folder.store.read_pointer(CURRENT)
        if target is None:
            return None
        name = target.removeprefix(f"{VERSIONS}/")
        if not _NAME.fullmatch(name):
            raise IntegrityError(f"{self.folder.where(CURRENT)}: it names {target}, which is no version of this store")
        return name

    @property
    def building(self) -> str | None:
        """The name of the version that is being made, or was when its maker died.

        Raises:
            IntegrityError: If the file names something else.
        """
        try:
            data = self.folder.read_bytes(BUILDING)
        except FileNotFoundError:
            return None
        try:
            name = json.loads(data)["version"]
            if _NAME.fullmatch(name):
                return str(name)
        except (ValueError, KeyError, TypeError):
            pass
        raise IntegrityError(
            f"{self.folder.where(BUILDING)}: it names no version of this store; remove it and run again: what was "
            "begun is begun anew"
        )

    @property
    def names(self) -> list[str]:
        """The names of all versions, oldest first, finished or not."""
        return sorted(filter(_NAME.fullmatch, self.folder.store.folders(VERSIONS)), key=_number)

    def out(self, name: str) -> OutputFolder:
        """Return the output folder of a version."""
        return OutputFolder(f"{self.folder.root}/{VERSIONS}/{name}")

    def check_place(self) -> None:
        """Check that the place is not the folder of a run or an export.

        Raises:
            ConfigError: Naming what shows it.
        """
        found = [name for name in (RECEIPT, MANIFEST) if self.folder.exists(name)]
        found += [f"{name}/" for name in self.folder.store.folders("") if name in _OF_A_RUN]
        if found:
            raise ConfigError(
                f"--store {self.folder.root}: it holds {found[0]}: the folder of a run or an export, and no store of "
                "versions; name another one (a run can become the first version of one: docs/how-to/scheduling.md)"
            )

    def check_pointer(self) -> None:
        """Check that no finished version stands without a pointer: which one counts is then not known.

        Raises:
            IntegrityError: Saying how to let the pointer name the newest.
        """
        if self.current is not None:
            return
        whole = [name for name in self.names if name != self.building and self.out(name).exists(RECEIPT)]
        if whole:
            target, place = f"{VERSIONS}/{whole[-1]}", self.folder.where(CURRENT)
            link = f"ln -s {target} {shlex.quote(place)}"
            advice = f"put {json.dumps({'target': target})} there" if is_remote(place) else link
            raise IntegrityError(f"{place}: it is gone, and {', '.join(whole)} stand; let it name one: {advice}")

    def begin(self, base: str | None) -> str:
        """Return the version to be made: the one that was begun and not finished, else a new one.

        It has the files of the base that may stand in it too; its receipt is not among them.
        """
        name = self.building
        if name is None or name == base:
            name = f"v{max(map(_number, self.names), default=0) + 1:06}"
            self.folder.publish_bytes(BUILDING, json.dumps({"version": name}).encode())
        if base is not None:
            source = self.out(base)
            self.out(name).link(source, _taken(source))
        return name

    def finish(self, name: str, changes: dict[str, object], *, replaced: str | None) -> None:
        """Write down what a version changed, and let the pointer name it.

        Raises:
            LockedError: If the pointer does not name the version that is replaced any more.
        """
        self.folder.publish_bytes(f"{CHANGES}/{name}.json", canonical_json(changes))
        expected = None if replaced is None else f"{VERSIONS}/{replaced}"
        self.folder.store.set_pointer(CURRENT, f"{VERSIONS}/{name}", expected=expected)
        self.folder.remove(BUILDING)

    def discard(self) -> None:
        """Remove the version that was begun, unless it became the current one; do nothing if none was."""
        name = self.building
        if name is not None and name != self.current:
            self._remove(name)
            self.folder.remove(f"{CHANGES}/{name}.json")
        self.folder.remove(BUILDING)

    def prune(self, keep: int) -> list[str]:
        """Remove the oldest finished versions but so many, and the unfinished ones; never the current one.

        Args:
            keep: How many stay, the current one included; at least 1.

        Returns:
            The versions that were removed.
        """
        others = [name for name in self.names if name not in (self.current, self.building)]
        finished = [name for name in others if self.out(name).exists(RECEIPT)]
        kept = set(finished[max(0, len(finished) - (keep - 1)) :])
        removed = [name for name in others if name not in kept]
        for name in removed:
            self._remove(name)
        return removed

    def _remove(self, name: str) -> None:
        """Remove a version, its receipt first: what is left of it if this is not finished is no finished run."""
        self.folder.remove(f"{VERSIONS}/{name}/{RECEIPT}")
        self.folder.remove_folder(f"{VERSIONS}/{name}")


def _taken(source: OutputFolder) -> Iterator[str]:
    """Yield the files of a version that the next one may keep: no logs, no counts, no build that was not its own."""
    for folder in (*_TAKEN_FOLDERS, *_TAKEN_CACHE):
        yield from (name for name in source.files(folder) if not is_unit_receipt(name, Stage.BUILD))
    yield from (name for name in _TAKEN_FILES if source.exists(name))


def _number(name: str) -> int:
    return int(name[1:])
